"use strict";
var __createBinding = (this && this.__createBinding) || (Object.create ? (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    var desc = Object.getOwnPropertyDescriptor(m, k);
    if (!desc || ("get" in desc ? !m.__esModule : desc.writable || desc.configurable)) {
      desc = { enumerable: true, get: function() { return m[k]; } };
    }
    Object.defineProperty(o, k2, desc);
}) : (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    o[k2] = m[k];
}));
var __setModuleDefault = (this && this.__setModuleDefault) || (Object.create ? (function(o, v) {
    Object.defineProperty(o, "default", { enumerable: true, value: v });
}) : function(o, v) {
    o["default"] = v;
});
var __importStar = (this && this.__importStar) || (function () {
    var ownKeys = function(o) {
        ownKeys = Object.getOwnPropertyNames || function (o) {
            var ar = [];
            for (var k in o) if (Object.prototype.hasOwnProperty.call(o, k)) ar[ar.length] = k;
            return ar;
        };
        return ownKeys(o);
    };
    return function (mod) {
        if (mod && mod.__esModule) return mod;
        var result = {};
        if (mod != null) for (var k = ownKeys(mod), i = 0; i < k.length; i++) if (k[i] !== "default") __createBinding(result, mod, k[i]);
        __setModuleDefault(result, mod);
        return result;
    };
})();
Object.defineProperty(exports, "__esModule", { value: true });
exports.sendFailures = sendFailures;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const iam = __importStar(require("aws-cdk-lib/aws-iam"));
const lambda = __importStar(require("aws-cdk-lib/aws-lambda"));
const allow_key_1 = require("./allow-key");
const shown_1 = require("./shown");
const target_1 = require("./target");
/** Sends the failures of a function's asynchronous invocations to the retry queue, instead of to Lambda's own retries. */
function sendFailures(target, queue, handler, options) {
    const fn = (0, target_1.unqualified)(target);
    const resource = (0, target_1.resourceOf)(fn);
    const granted = grantSend(fn, queue);
    const configured = (0, target_1.configurable)(target);
    configured.configureAsyncInvoke({
        // Not SqsDestination, which grants more than sending.
        onFailure: { bind: () => ({ destination: queue.queueArn }) },
        onSuccess: options.onSuccess,
        maxEventAge: options.maxEventAge ?? aws_cdk_lib_1.Duration.minutes(1),
        retryAttempts: 0,
    });
    const configuration = configured.node.findChild('EventInvokeConfig').node;
    configuration.addMetadata(target_1.ATTACHED_TO, handler.node.scope?.node.path);
    // The handler dead-letters the events of a function that it does not allow yet.
    configuration.addDependency(handler.function, handler.role);
    if (resource !== undefined) {
        // This loop is a Lambda→SQS→Lambda chain, which Lambda would cut after 16 rounds. The policy bounds it.
        resource.recursiveLoop = lambda.RecursiveLoop.ALLOW;
    }
    else if (granted !== undefined) {
        // Lambda checks the permission when the destination is set. A function made here depends on its role itself.
        configuration.addDependency(granted);
    }
    const duties = [
        ...(granted === undefined ? [sendDuty(queue)] : []),
        ...(resource === undefined ? [recursionDuty(fn)] : []),
    ];
    if (duties.length > 0) {
        const text = `attached, but not all that it needs can be done from here; its owner must ${duties.join('; and ')}`;
        aws_cdk_lib_1.Annotations.of(target).addWarningV2('comeback-cdk:ownerMust', text);
    }
}
/** Lets the function's role, if it is known, send to the queue, and returns the policy that allows it. */
function grantSend({ role }, queue) {
    if (role === undefined) {
        return undefined;
    }
    (0, allow_key_1.allowKey)(queue, role, 'kms:GenerateDataKey', 'kms:Decrypt');
    const statement = new iam.PolicyStatement({ actions: ['sqs:SendMessage'], resources: [queue.queueArn] });
    return role.addToPrincipalPolicy(statement).policyDependable;
}
function sendDuty(queue) {
    const stack = aws_cdk_lib_1.Stack.of(queue);
    const name = `${(0, shown_1.literal)(stack.stackName)}-${(0, target_1.logicalIdOf)(queue.node.defaultChild)}-`;
    const key = queue.encryptionMasterKey && ", and kms:GenerateDataKey and kms:Decrypt on the queue's key";
    return (`allow sqs:SendMessage on the retry queue (its name will begin with ${name})${key ?? ''} in the function's ` +
        'execution role, before this is deployed, or Lambda refuses the destination (import the function with its role, ' +
        'by Function.fromFunctionAttributes, and this is done for you, unless that role is an immutable one)');
}
function recursionDuty(fn) {
    const name = aws_cdk_lib_1.Token.isUnresolved(fn.functionName) ? `NAME, the name of ${fn.node.path}` : fn.functionName;
    return ('set its recursive loop detection, or Lambda stops each event after 16 rounds: ' +
        `aws lambda put-function-recursion-config --recursive-loop Allow --function-name ${name}`);
}
