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
exports.RetryHandler = void 0;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const iam = __importStar(require("aws-cdk-lib/aws-iam"));
const lambda = __importStar(require("aws-cdk-lib/aws-lambda"));
const logs = __importStar(require("aws-cdk-lib/aws-logs"));
const constructs_1 = require("constructs");
const allow_key_1 = require("./allow-key");
const handler_code_1 = require("./handler-code");
const waiting_1 = require("./waiting");
const NO_TARGET = 'comeback-cdk:noTarget';
/** The Lambda function between the two queues, its role, its log and the event source mapping that feeds it. */
class RetryHandler extends constructs_1.Construct {
    function;
    role;
    /** The SSM parameter that holds the pauses, without its first slash. */
    pauses;
    targets = new Set();
    reinvokeTargets = new iam.PolicyStatement({
        sid: 'ReinvokeTargets',
        actions: ['lambda:InvokeFunction'],
    });
    constructor(scope, id, props) {
        super(scope, id);
        const logGroup = new logs.LogGroup(this, 'Logs', {
            retention: props.logRetention ?? logs.RetentionDays.ONE_MONTH,
            removalPolicy: aws_cdk_lib_1.RemovalPolicy.DESTROY,
        });
        this.pauses = `comeback/${aws_cdk_lib_1.Aws.STACK_NAME}/${aws_cdk_lib_1.Names.uniqueResourceName(scope, { maxLength: 64 })}/pauses`;
        this.role = new iam.Role(this, 'Role', { assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com') });
        this.grant(props, logGroup);
        this.function = (0, handler_code_1.handlerFunction)(this, 'Function', props.bootstrap, {
            description: 'Defers, re-invokes or dead-letters the messages of the retry queue.',
            architecture: props.architecture ?? lambda.Architecture.ARM_64,
            memorySize: props.memorySize ?? 256,
            timeout: aws_cdk_lib_1.Duration.seconds(60),
            role: this.role,
            logGroup,
            // This loop is a Lambda→SQS→Lambda chain, which Lambda would cut after 16 rounds. The policy bounds it.
            recursiveLoop: lambda.RecursiveLoop.ALLOW,
            environment: {
                RETRY_QUEUE_URL: props.queue.queueUrl,
                DEAD_LETTER_QUEUE_URL: props.deadLetterQueue.queueUrl,
                TARGET_FUNCTIONS: aws_cdk_lib_1.Lazy.string({ produce: () => [...this.targets].join(',') }),
                // It is made by the first pause, and read twice a minute by each environment.
                PAUSES: `/${this.pauses}`,
                ...props.settings,
            },
        });
        new lambda.EventSourceMapping(this, 'Mapping', {
            target: this.function,
            eventSourceArn: props.queue.queueArn,
            batchSize: props.batchSize ?? 10,
            // A window would add its length to every short backoff on a quiet queue.
            maxBatchingWindow: aws_cdk_lib_1.Duration.seconds(0),
            reportBatchItemFailures: true,
            maxConcurrency: props.maxConcurrency ?? waiting_1.DEFAULT_MAX_CONCURRENCY,
        });
        aws_cdk_lib_1.Annotations.of(this).addWarningV2(NO_TARGET, 'targetFunctions (TARGET_FUNCTIONS) is empty, and no function is attached; the handler will keep what arrives, ' +
            'and retry nothing');
    }
    /** Allows one more `TARGET_FUNCTIONS` entry to be re-invoked. */
    allow(entry) {
        if (this.targets.size === 0) {
            this.role.addToPrincipalPolicy(this.reinvokeTargets);
            aws_cdk_lib_1.Annotations.of(this).acknowledgeWarning(NO_TARGET);
        }
        if (!this.targets.has(entry)) {
            this.targets.add(entry);
            // An invocation record's ARN carries a qualifier.
            this.reinvokeTargets.addResources(entry, `${entry}:*`);
        }
    }
    /** Exactly the calls that the retry handler makes. The queues' own grants would allow more. */
    grant({ queue, deadLetterQueue }, logGroup) {
        const statements = {
            TakeFromTheRetryQueue: {
                actions: [
                    'sqs:ReceiveMessage',
                    'sqs:DeleteMessage',
                    'sqs:GetQueueAttributes',
                    'sqs:ChangeMessageVisibility',
                ],
                resources: [queue.queueArn],
            },
            DeadLetter: { actions: ['sqs:SendMessage'], resources: [deadLetterQueue.queueArn] },
            // Past HIDE_UP_TO a message is not hidden for its wait but sent to the retry queue again, with a delay.
            Move: { actions: ['sqs:SendMessage'], resources: [queue.queueArn] },
            ReadPauses: {
                actions: ['ssm:GetParameter'],
                resources: [
                    aws_cdk_lib_1.Stack.of(this).formatArn({ service: 'ssm', resource: 'parameter', resourceName: this.pauses }),
                ],
            },
            Log: { actions: ['logs:CreateLogStream', 'logs:PutLogEvents'], resources: [logGroup.logGroupArn] },
        };
        for (const [sid, statement] of Object.entries(statements)) {
            this.role.addToPrincipalPolicy(new iam.PolicyStatement({ sid, ...statement }));
        }
        for (const sentTo of [queue, deadLetterQueue]) {
            (0, allow_key_1.allowKey)(sentTo, this.role, 'kms:GenerateDataKey', 'kms:Decrypt');
        }
    }
}
exports.RetryHandler = RetryHandler;
