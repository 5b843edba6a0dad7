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
exports.AsyncRetries = void 0;
const aws_cdk_lib_1 = require("aws-cdk-lib");
const sqs = __importStar(require("aws-cdk-lib/aws-sqs"));
const constructs_1 = require("constructs");
const attach_1 = require("./attach");
const policy_1 = require("./policy");
const props_1 = require("./props");
const retry_handler_1 = require("./retry-handler");
const target_1 = require("./target");
const target_functions_1 = require("./target-functions");
const types_1 = require("./types");
const waiting_1 = require("./waiting");
/**
 * A thousand receives of it outlast the 14 days that the queue keeps a message, even if the handler never starts. (Lambda
 * asks for six times the handler's timeout, which is less.)
 */
const VISIBILITY_TIMEOUT = aws_cdk_lib_1.Duration.seconds(1_230);
/**
 * Durable retries for asynchronous Lambda functions, with exponential backoff and jitter.
 *
 * A retry queue, a dead-letter queue, and the retry handler between them: it hides a failed event in the retry queue
 * for a backoff, then invokes the function again, until that succeeds or the event is given up.
 *
 * @example
 * const retries = new AsyncRetries(this, 'Retries', { maxAge: Duration.hours(24) });
 * retries.attach(ordersFunction);
 */
class AsyncRetries extends constructs_1.Construct {
    /** The failure destination of every attached function. */
    queue;
    /** The queue that receives the events that are given up, with the reason. */
    deadLetterQueue;
    /** The function that defers, re-invokes or dead-letters the messages of the retry queue. */
    handler;
    retryQueue;
    retryHandler;
    patterns;
    /** @throws with every refused property, not only the first */
    constructor(scope, id, props = {}) {
        super(scope, id);
        const refusals = [];
        const typed = (0, types_1.wellTyped)(props, types_1.PROPS, refusals);
        (0, props_1.checkProps)(typed, aws_cdk_lib_1.Stack.of(this), refusals);
        const settings = { ...(0, policy_1.policyVariables)(typed, refusals), ...(0, waiting_1.waitingVariables)(typed, refusals) };
        this.patterns = (0, target_functions_1.targetFunctions)(aws_cdk_lib_1.Stack.of(this), typed.targetFunctions ?? [], refusals);
        throwAll(refusals);
        const deadLetterQueue = props.deadLetterQueue ?? this.newQueue('DeadLetterQueue', props);
        this.retryQueue = this.newQueue('Queue', props, {
            visibilityTimeout: VISIBILITY_TIMEOUT,
            // The most SQS allows: the handler gives an event up, with the reason, long before SQS would do so without one.
            deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: 1_000 },
        });
        this.retryHandler = new retry_handler_1.RetryHandler(this, 'Handler', {
            ...props,
            queue: this.retryQueue,
            deadLetterQueue,
            settings,
        });
        for (const entry of this.patterns) {
            this.retryHandler.allow(entry);
        }
        this.queue = this.retryQueue;
        this.deadLetterQueue = deadLetterQueue;
        this.handler = this.retryHandler.function;
    }
    /**
     * Retries the failed asynchronous invocations of a function, or of one of its versions or aliases.
     *
     * The retry handler may invoke the function, whose role may send to the retry queue; Lambda's recursive loop
     * detection lets the retries pass; and, once all that is deployed, the function's failures go to the retry queue. If
     * the function is invoked by an alias or a version, attach that alias or version.
     *
     * A function of another stack needs a `functionName`, or a pattern in `targetFunctions` that allows it. For an
     * imported function, a warning lists the steps left to its owner.
     *
     * @throws if the function is attached already, has an invoke configuration or `recursiveLoop: TERMINATE`, is in another
     *   account or region, or cannot be allowed
     */
    attach(target, options = {}) {
        (0, types_1.checkIsFunction)(target);
        const refusals = [];
        (0, types_1.wellTyped)(options, types_1.OPTIONS, refusals);
        throwAll(refusals);
        const stack = aws_cdk_lib_1.Stack.of(this);
        const fn = (0, target_1.unqualified)(target);
        if (fn === this.handler) {
            throw new Error(`targetFunctions (TARGET_FUNCTIONS) entry ${JSON.stringify(target.node.path)} is the retry handler itself, which must never be its own target`);
        }
        (0, target_1.checkTarget)(target, stack);
        const entry = (0, target_1.entryFor)(fn, stack, this.patterns);
        if (entry !== undefined) {
            this.retryHandler.allow(entry);
        }
        (0, attach_1.sendFailures)(target, this.retryQueue, this.retryHandler, options);
    }
    /**
     * Failed invocations of attached functions, retries included: messages sent to the retry queue. Past `hideUpTo`, messages
     * that are sent again count too.
     */
    metricFailures(props) {
        return this.queue.metricNumberOfMessagesSent(props);
    }
    /**
     * Events that are hidden until their next retry: messages in flight in the retry queue, of which SQS allows about
     * 120,000. Past `hideUpTo`, events wait in `queue.metricApproximateNumberOfMessagesDelayed()` instead.
     */
    metricWaiting(props) {
        return this.queue.metricApproximateNumberOfMessagesNotVisible(props);
    }
    /** Events that were given up and still await somebody: messages in the dead-letter queue. */
    metricDeadLetters(props) {
        return this.deadLetterQueue.metricApproximateNumberOfMessagesVisible(props);
    }
    newQueue(id, { encryptionKey, removalPolicy }, props = {}) {
        return new sqs.Queue(this, id, {
            ...props,
            removalPolicy: removalPolicy ?? aws_cdk_lib_1.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            // Lambda's and SQS's limit alike.
            maxMessageSizeBytes: 1_048_576,
            retentionPeriod: aws_cdk_lib_1.Duration.days(14),
            enforceSSL: true,
            encryption: encryptionKey ? sqs.QueueEncryption.KMS : sqs.QueueEncryption.SQS_MANAGED,
            encryptionMasterKey: encryptionKey,
        });
    }
}
exports.AsyncRetries = AsyncRetries;
function throwAll(refusals) {
    if (refusals.length > 0) {
        throw new Error(refusals.join('\n'));
    }
}
