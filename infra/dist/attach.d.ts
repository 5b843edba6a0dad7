import { Duration } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { type RetryHandler } from './retry-handler';
/** How a function is attached. */
export interface AttachOptions {
    /**
     * How long Lambda itself keeps an event that it cannot deliver because the function is throttled; 60 seconds to 6
     * hours. After that the event is retried like a failed one.
     *
     * @default Duration.minutes(1)
     */
    readonly maxEventAge?: Duration;
    /**
     * The destination of the records of successful invocations.
     *
     * @default - nowhere
     */
    readonly onSuccess?: lambda.IDestination;
}
/** Sends the failures of a function's asynchronous invocations to the retry queue, instead of to Lambda's own retries. */
export declare function sendFailures(target: lambda.IFunction, queue: sqs.Queue, handler: RetryHandler, options: AttachOptions): void;
