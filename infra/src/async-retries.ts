import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

import { type AttachOptions, sendFailures } from './attach';
import { checkTopic, Monitor, type MonitorOptions } from './monitor';
import { type FunctionPolicy } from './function-policy';
import { type PolicyProps, policySettings, policyVariables, waitingVariables } from './policy';
import {
  type AsyncRetriesProps,
  checkProps,
  LARGEST_MESSAGE,
  LONGEST_RETENTION,
  warnOfShortRetention,
} from './props';
import { RetryHandler } from './retry-handler';
import { checkTarget, entryFor, patternFor, unqualified } from './target';
import { targetFunctions } from './target-functions';
import { checkIsFunction, FUNCTION_POLICY, MONITOR_OPTIONS, OPTIONS, PROPS, wellTyped } from './types';
import { type Refusals } from './values';

/**
 * The retry queue's visibility timeout. SQS dead-letters a message after 1,000 receives. With this timeout, 1,000
 * receives take longer than the retention period of 14 days, even if the handler never starts.
 */
const VISIBILITY_TIMEOUT = Duration.seconds(1_230);

/** The time for which SQS reuses a data key. SQS notices a disabled KMS key within this time. */
const DATA_KEY_REUSE = Duration.hours(1);

/**
 * Durable retries for asynchronous Lambda functions, with exponential backoff and jitter.
 *
 * Creates a retry queue, a dead-letter queue, and the retry handler between them.
 *
 * @example
 * import { Duration } from 'aws-cdk-lib';
 * import { AsyncRetries } from 'comeback-cdk';
 *
 * const retries = new AsyncRetries(this, 'Retries', { maxAge: Duration.hours(24) });
 * retries.attach(orders);
 */
export class AsyncRetries extends Construct {
  /** The failure destination of every attached function. */
  readonly queue: sqs.IQueue;

  /** The queue for dead-letters, each with its reason. */
  readonly deadLetterQueue: sqs.IQueue;

  /** The function that defers, retries or dead-letters the messages in the retry queue. */
  readonly handler: lambda.IFunction;

  private readonly retryHandler: RetryHandler;
  private readonly patterns: string[];
  private readonly hideUpTo: string;
  private readonly policy: PolicyProps;
  private readonly attached: lambda.IFunction[] = [];
  private monitoring?: Monitor;

  /** @throws if any property is refused; the error lists every refused property */
  constructor(scope: Construct, id: string, props: AsyncRetriesProps = {}) {
    super(scope, id);
    const refusals: Refusals = [];
    const typed = wellTyped(props, PROPS, refusals);
    checkProps(typed, Stack.of(this), refusals);
    const waiting = waitingVariables(typed, refusals);
    const settings = { ...policyVariables(typed, refusals), ...waiting };
    this.hideUpTo = waiting.HIDE_UP_TO;
    this.policy = typed;
    this.patterns = targetFunctions(Stack.of(this), typed.targetFunctions ?? [], refusals);
    throwAll(refusals);
    const deadLetterQueue = props.deadLetterQueue ?? this.newQueue('DeadLetterQueue', props);
    warnOfShortRetention(deadLetterQueue);
    this.queue = this.newQueue('Queue', props, {
      visibilityTimeout: VISIBILITY_TIMEOUT,
      // The maximum that SQS allows, so that the handler dead-letters an event with a reason before SQS would move it
      // without one.
      deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: 1_000 },
    });
    this.retryHandler = new RetryHandler(this, 'Handler', {
      ...props,
      queue: this.queue,
      deadLetterQueue,
      settings,
    });
    for (const entry of this.patterns) {
      this.retryHandler.allow(entry);
    }
    this.deadLetterQueue = deadLetterQueue;
    this.handler = this.retryHandler.function;
  }

  /**
   * Retries the failed asynchronous invocations of a function, or of one of its versions or aliases.
   *
   * Allows the retry handler to invoke the function, and the function's role to send to the retry queue. Also makes
   * Lambda's recursive loop detection allow the retries. If callers invoke an alias or a version, attach that instead.
   *
   * A function in another stack needs a `functionName`, or a pattern in `targetFunctions` that allows the function. For
   * an imported function, a warning lists the steps that its owner must take.
   *
   * @throws if the function is already attached, has an invoke configuration or `recursiveLoop: TERMINATE`, is in another
   *   account or region, or cannot be allowed
   */
  attach(target: lambda.IFunction, options: AttachOptions = {}): void {
    checkIsFunction(target);
    const refusals: Refusals = [];
    const { policy } = wellTyped(options, OPTIONS, refusals);
    const settings = policy && this.settingsOf(target, policy, refusals);
    throwAll(refusals);
    const stack = Stack.of(this);
    const fn = unqualified(target);
    if (fn === this.handler) {
      throw new Error(
        `targetFunctions (TARGET_FUNCTIONS) entry ${JSON.stringify(target.node.path)} is the retry handler itself, which cannot be its own target`,
      );
    }
    checkTarget(target, stack);
    const entry = entryFor(fn, stack, this.patterns);
    if (entry !== undefined) {
      this.retryHandler.allow(entry);
    }
    if (settings !== undefined) {
      this.retryHandler.setPolicy(patternFor(target, stack), settings);
    }
    sendFailures(target, this.queue, this.retryHandler, options);
    this.attached.push(target);
    this.monitoring?.watch(target);
  }

  /**
   * Creates alarms on both queues, the retry handler and all attached functions, present and future. Also saves queries
   * for the handler's log, and creates a dashboard if requested. See the repository's page `docs/alarms.md`.
   *
   * @throws if `monitor` was already called, or the topic is a FIFO topic
   */
  monitor(options: MonitorOptions = {}): void {
    const refusals: Refusals = [];
    checkTopic(wellTyped(options, MONITOR_OPTIONS, refusals), refusals);
    throwAll(refusals);
    if (this.monitoring !== undefined) {
      throw new Error(`monitor was already called on ${this.node.path}; call it once, with all options`);
    }
    const { queue, deadLetterQueue, retryHandler: handler, hideUpTo } = this;
    this.monitoring = new Monitor(this, { queue, deadLetterQueue, handler, hideUpTo }, options);
    for (const target of this.attached) {
      this.monitoring.watch(target);
    }
  }

  /** The number of messages sent to the retry queue: failed invocations, and messages that the handler sends again. */
  metricFailures(props?: cloudwatch.MetricOptions): cloudwatch.Metric {
    return this.queue.metricNumberOfMessagesSent(props);
  }

  /**
   * The number of events hidden until their next retry. Those beyond `hideUpTo` are delayed: see
   * `queue.metricApproximateNumberOfMessagesDelayed()`.
   */
  metricWaiting(props?: cloudwatch.MetricOptions): cloudwatch.Metric {
    return this.queue.metricApproximateNumberOfMessagesNotVisible(props);
  }

  /** The number of unresolved dead-letters: the messages in the dead-letter queue. */
  metricDeadLetters(props?: cloudwatch.MetricOptions): cloudwatch.Metric {
    return this.deadLetterQueue.metricApproximateNumberOfMessagesVisible(props);
  }

  private settingsOf(target: lambda.IFunction, policy: FunctionPolicy, refusals: Refusals): string {
    const ofPolicy: Refusals = [];
    const settings = policySettings(wellTyped(policy, FUNCTION_POLICY, ofPolicy), this.policy, ofPolicy);
    const { path } = target.node;
    refusals.push(...ofPolicy.map((refusal) => `the policy of ${path} (POLICIES) is refused: ${refusal}`));
    return settings;
  }

  private newQueue(
    id: string,
    { encryptionKey, removalPolicy }: AsyncRetriesProps,
    props: sqs.QueueProps = {},
  ): sqs.Queue {
    return new sqs.Queue(this, id, {
      ...props,
      removalPolicy: removalPolicy ?? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
      maxMessageSizeBytes: LARGEST_MESSAGE,
      retentionPeriod: LONGEST_RETENTION,
      enforceSSL: true,
      encryption: encryptionKey ? sqs.QueueEncryption.KMS : sqs.QueueEncryption.SQS_MANAGED,
      encryptionMasterKey: encryptionKey,
      dataKeyReuse: encryptionKey && DATA_KEY_REUSE,
    });
  }
}

function throwAll(refusals: Refusals): void {
  if (refusals.length > 0) {
    throw new Error(refusals.join('\n'));
  }
}
