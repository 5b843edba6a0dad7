import type * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { type AttachOptions } from './attach';
import { type AsyncRetriesProps } from './props';
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
export declare class AsyncRetries extends Construct {
    /** The failure destination of every attached function. */
    readonly queue: sqs.IQueue;
    /** The queue that receives the events that are given up, with the reason. */
    readonly deadLetterQueue: sqs.IQueue;
    /** The function that defers, re-invokes or dead-letters the messages of the retry queue. */
    readonly handler: lambda.IFunction;
    private readonly retryQueue;
    private readonly retryHandler;
    private readonly patterns;
    /** @throws with every refused property, not only the first */
    constructor(scope: Construct, id: string, props?: AsyncRetriesProps);
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
    attach(target: lambda.IFunction, options?: AttachOptions): void;
    /**
     * Failed invocations of attached functions, retries included: messages sent to the retry queue. Past `hideUpTo`, messages
     * that are sent again count too.
     */
    metricFailures(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
    /**
     * Events that are hidden until their next retry: messages in flight in the retry queue, of which SQS allows about
     * 120,000. Past `hideUpTo`, events wait in `queue.metricApproximateNumberOfMessagesDelayed()` instead.
     */
    metricWaiting(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
    /** Events that were given up and still await somebody: messages in the dead-letter queue. */
    metricDeadLetters(props?: cloudwatch.MetricOptions): cloudwatch.Metric;
    private newQueue;
}
