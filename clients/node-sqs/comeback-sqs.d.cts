/** The record of an SQS message in Lambda's event. `SQSRecord` from `@types/aws-lambda` is compatible. */
export interface MessageRecord {
  messageId: string;
  receiptHandle: string;
  body: string;
  attributes: object;
  messageAttributes: object;
  eventSourceARN: string;
}

/** The part of Lambda's context that the consumer uses. */
export interface FunctionContext {
  getRemainingTimeInMillis(): number;
  invokedFunctionArn: string;
}

/** The options of a consumer. Every duration is a number of seconds, or a string such as `'15m'` or `'14d'`. */
export interface ConsumerOptions {
  /**
   * The ceiling of the first backoff; 1 s to `maxBackoff`. It doubles with each receive.
   * @default 10
   */
  baseBackoff?: number | string;
  /**
   * The highest ceiling of a backoff; up to 43,170 s (12 hours less 30 s).
   * @default 3600; 60 for a FIFO queue, where a hidden message blocks its group
   */
  maxBackoff?: number | string;
  /**
   * The jitter of the backoff. `full` draws from 1 s to the ceiling, `equal` draws from the upper half, and `none` uses
   * the ceiling.
   * @default 'full'
   */
  jitter?: 'full' | 'equal' | 'none';
  /**
   * The age, counted from when the message was sent, at which a failing message is dead-lettered; 60 s to 14 days.
   * @default '14d'
   */
  maxAge?: number | string;
  /**
   * The number of receives after which a failing message is dead-lettered.
   * @default none: only the age matters
   */
  maxReceives?: number;
  /**
   * The URL of the dead-letter queue.
   * @default none: messages that get no retry are hidden for `maxBackoff` again and again, until the queue's redrive
   *   policy moves them or its retention period ends
   */
  deadLetterQueueUrl?: string;
  /**
   * The number of records that run at once. The records of a FIFO group always run one after another.
   * @default 1
   */
  concurrency?: number;
}

/** Lambda's partial batch response. */
export interface BatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

/**
 * Turns a function that handles one record into a Lambda handler for an SQS event source mapping. If the function
 * throws or rejects for a record, only that record's message is retried, after a jittered backoff. The mapping needs
 * `ReportBatchItemFailures`.
 *
 * @throws RangeError listing every problem with the options
 */
export function consumer<
  R extends MessageRecord = MessageRecord,
  C extends FunctionContext = FunctionContext,
>(
  options: ConsumerOptions,
  handler: (record: R, context: C) => unknown,
): (event: { Records: R[] }, context?: C) => Promise<BatchResponse>;

/** Throw this error to choose when the message is retried, instead of using the ordinary backoff. */
export class RetryAfter extends Error {
  /**
   * @param when the seconds to wait, counted from the failure; a date; or the value of a `Retry-After` header
   * @param text an explanation for people
   */
  constructor(when: number | string | Date, text?: string);
  readonly name: 'RetryAfter';
}

/** Throw this error if no retry can help. The message is dead-lettered. */
export class NonRetryable extends Error {
  constructor(message?: string, options?: { cause?: unknown });
  readonly name: 'NonRetryable';
}
