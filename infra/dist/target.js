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
exports.ATTACHED_TO = void 0;
exports.unqualified = unqualified;
exports.configurable = configurable;
exports.resourceOf = resourceOf;
exports.logicalIdOf = logicalIdOf;
exports.entryFor = entryFor;
exports.checkTarget = checkTarget;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const lambda = __importStar(require("aws-cdk-lib/aws-lambda"));
const target_functions_1 = require("./target-functions");
/** Metadata of an invoke configuration: the path of the `AsyncRetries` that made it. */
exports.ATTACHED_TO = 'comeback-cdk:attachedTo';
/** The function of a version or an alias; of a function, itself. */
function unqualified(target) {
    return 'lambda' in target ? target.lambda : target;
}
/** The target of an invoke configuration: `$LATEST` shares the function's own. */
function configurable(target) {
    return qualifierOf(target) === '$LATEST' ? unqualified(target) : target;
}
/** The function's own resource, if this app makes it. */
function resourceOf(fn) {
    const resource = fn.node.defaultChild;
    return resource instanceof lambda.CfnFunction ? resource : undefined;
}
/** As the template will have it, even if the app overrides it. */
function logicalIdOf(resource) {
    return resource.stack.resolve(resource.logicalId);
}
/**
 * The ARN that allows every version and alias of a function to be re-invoked from this stack.
 *
 * A function of another stack refers to this one, for the queue's ARN, so this one must not refer to the function.
 *
 * @param entries the `TARGET_FUNCTIONS` entries that were given as patterns
 * @returns nothing if the function has no name yet, and one of the patterns allows it
 * @throws if the function is in another stack, has no name yet, and none of the patterns allows it
 */
function entryFor(fn, stack, entries) {
    const resource = resourceOf(fn);
    if (resource === undefined) {
        return (0, target_functions_1.functionArn)(stack, fn.functionName);
    }
    if (resource.stack === stack) {
        return fn.functionArn;
    }
    if (resource.functionName !== undefined && !aws_cdk_lib_1.Token.isUnresolved(resource.functionName)) {
        return (0, target_functions_1.functionArn)(stack, resource.functionName);
    }
    const { stackName } = resource.stack;
    const name = (0, target_functions_1.generatedName)(stackName, logicalIdOf(resource));
    if (entries.some((entry) => (0, target_functions_1.allows)(stack, entry, name))) {
        return undefined;
    }
    throw new Error(`${fn.node.path} is in another stack, has no functionName, and no pattern of targetFunctions allows it; allowing ` +
        'it by its generated name would make the two stacks depend on each other: give it a functionName, or give ' +
        `targetFunctions a pattern that matches what CloudFormation will name it (${name.replace(/[?0]+$/, '…')})`);
}
/**
 * Refuses a function whose retries could not be deployed, or would never happen.
 *
 * @throws if the function is elsewhere, its asynchronous invocation is configured already, or its loops are to be stopped
 */
function checkTarget(target, stack) {
    const fn = unqualified(target);
    for (const place of ['account', 'region']) {
        if (aws_cdk_lib_1.Token.compareStrings(fn.env[place], stack[place]) === aws_cdk_lib_1.TokenComparison.DIFFERENT) {
            throw new Error(`${target.node.path} is in ${place} ${fn.env[place]}, and these retries are in ${stack[place]}; ` +
                "make an AsyncRetries in the function's own account and region");
        }
    }
    if (target === fn && resourceOf(fn) === undefined && fn.functionArn.split(':').length > 7) {
        throw new Error(`${target.node.path} was imported by the ARN of a version or an alias; import it with ` +
            'Version.fromVersionArn or Alias.fromAliasAttributes instead');
    }
    if (resourceOf(fn)?.recursiveLoop === lambda.RecursiveLoop.TERMINATE) {
        throw new Error(`${fn.node.path} has recursiveLoop: TERMINATE, with which Lambda would stop each event after 16 rounds; leave ` +
            'recursiveLoop out, and attach allows the loop');
    }
    const existing = invokeConfigOf(target);
    if (existing !== undefined) {
        const retries = attachedTo(existing);
        if (retries !== undefined) {
            throw new Error(`${target.node.path} is already attached to ${retries}`);
        }
        throw new Error(`${target.node.path} already has an invoke configuration, ${existing.node.path}, and can have only one; ` +
            'remove that one, and give its onSuccess and maxEventAge to attach');
    }
}
/** The `AsyncRetries` that made a configuration, if one did. */
function attachedTo(config) {
    const metadata = config.node.scope?.node.metadata.find(({ type }) => type === exports.ATTACHED_TO);
    return metadata?.data;
}
/** The target's invoke configuration, made by the function's props, by `configureAsyncInvoke` or as a construct of its own. */
function invokeConfigOf(target) {
    const fn = unqualified(target);
    const stack = aws_cdk_lib_1.Stack.of(target);
    const text = (value) => JSON.stringify(stack.resolve(value));
    const names = [fn.functionName, fn.functionArn, resourceOf(fn)?.functionName].map(text);
    const own = configurable(target).node.tryFindChild('EventInvokeConfig');
    return stack.node
        .findAll()
        .filter((construct) => construct instanceof lambda.CfnEventInvokeConfig)
        .find((config) => config.node.scope === own ||
        (names.includes(text(config.functionName)) && text(config.qualifier) === text(qualifierOf(target))));
}
function qualifierOf(target) {
    const { aliasName, version } = target;
    return aliasName ?? version ?? '$LATEST';
}
