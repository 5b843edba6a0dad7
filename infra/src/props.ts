import { Annotations, Duration, type RemovalPolicy, type Stack, Token, TokenComparison } from 'aws-cdk-lib';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as logs from 'aws-cdk-lib/aws-logs';
import * as sqs from 'aws-cdk-lib/aws-sqs';

import { type PolicyProps, type WaitingProps } from './policy';
import { isOutside, type Refusals, shown } from './values';

/** The properties of {@link AsyncRetries}. */
export interface AsyncRetriesProps extends PolicyProps, WaitingProps {
  /**
   * Names of functions that may be re-invoked, in addition to the attached functions.
   *
   * `*` matches any characters. A name without `:QUALIFIER` also allows all versions and aliases of the function. A
   * name refers to a function in this stack's account and region; an ARN is used unchanged. The handler's environment
   * variables are limited to 4 KB in total, so use patterns to allow many functions.
   *
   * If no function is listed here or attached, the handler leaves every message in the retry queue.
   *
   * @default []
   */
  readonly targetFunctions?: string[];

  /**
   * A folder or zip file with the retry handler's `bootstrap`, built for `architecture`.
   *
   * @default - the retry handler in this package
   */
  readonly bootstrap?: string;

  /**
   * The processor architecture of the retry handler.
   *
   * @default lambda.Architecture.ARM_64
   */
  readonly architecture?: lambda.Architecture;

  /**
   * The retry handler's memory size, in MiB; 128 to 10,240.
   *
   * With less than the default, ten concurrent TLS handshakes are slow.
   *
   * @default 256
   */
  readonly memorySize?: number;

  /**
   * The maximum number of messages per invocation of the retry handler; 1 to 10.
   *
   * @default 10
   */
  readonly batchSize?: number;

  /**
   * The retention period for the retry handler's log.
   *
   * @default logs.RetentionDays.ONE_MONTH
   */
  readonly logRetention?: logs.RetentionDays;

  /**
   * The removal policy of the two queues. It applies if their stack is deleted, or if this construct is removed or
   * renamed. Each queue may contain events from the last 14 days.
   *
   * @default RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
   */
  readonly removalPolicy?: RemovalPolicy;

  /**
   * The key that encrypts the two queues; it must be in this stack's account and region.
   *
   * The roles of the handler and of attached functions are allowed to use it. Before you change the key, read
   * `docs/encryption.md` in the repository.
   *
   * @default - a key that SQS manages (SSE-SQS)
   */
  readonly encryptionKey?: kms.IKey;

  /**
   * The standard queue for dead-letters.
   *
   * @default - a new queue that keeps them for 14 days
   */
  readonly deadLetterQueue?: sqs.IQueue;
}

/** The maximum size of an SQS message, and of an asynchronous Lambda payload, in bytes. */
export const LARGEST_MESSAGE = 1_048_576;

/** The longest retention period of an SQS queue. */
export const LONGEST_RETENTION = Duration.days(14);

/** SQS's default retention period for a queue, in seconds. */
const DEFAULT_RETENTION = 345_600;

/** The end of the error message for an `encryptionKey` in another account or region. */
const KEY_ELSEWHERE =
  ', because a role that may not use the key cannot send to the queue, and Lambda then silently drops the failed event';

const DEAD_LETTER_KEY_ELSEWHERE =
  ', because a handler that may not use the key cannot send to the queue, and keeps each dead-letter until it expires';

/** Checks the dead-letter queue, the encryption keys, and the numbers that are not settings of the retry handler. */
export function checkProps(props: AsyncRetriesProps, stack: Stack, refusals: Refusals): void {
  const { deadLetterQueue, encryptionKey } = props;
  if (deadLetterQueue?.fifo === true) {
    const queue = Token.isUnresolved(deadLetterQueue.queueUrl) ? deadLetterQueue : deadLetterQueue.queueUrl;
    refusals.push(
      `deadLetterQueue (DEAD_LETTER_QUEUE_URL) is ${shown(queue)}; it must be a standard queue, not a FIFO one`,
    );
  }
  for (const [name, resource, reason] of [
    ['deadLetterQueue', deadLetterQueue, ''],
    ['the key of deadLetterQueue', deadLetterQueue?.encryptionMasterKey, DEAD_LETTER_KEY_ELSEWHERE],
    ['encryptionKey', encryptionKey, KEY_ELSEWHERE],
  ] as const) {
    for (const place of ['account', 'region'] as const) {
      const [theirs, own] = [resource?.env[place], stack[place]];
      if (theirs !== undefined && Token.compareStrings(theirs, own) === TokenComparison.DIFFERENT) {
        refusals.push(
          `${name} is in ${place} ${theirs}; it must be in ${own}, like this AsyncRetries${reason}`,
        );
      }
    }
  }
  const { maximumMessageSize } = resourceOf(deadLetterQueue) ?? {};
  if (maximumMessageSize !== undefined && isOutside(String(maximumMessageSize), LARGEST_MESSAGE, Infinity)) {
    refusals.push(
      `deadLetterQueue accepts messages of up to ${maximumMessageSize} bytes; it must accept ` +
        `${LARGEST_MESSAGE} (maxMessageSizeBytes), because SQS would refuse a larger dead-letter every time`,
    );
  }
  for (const [name, min, max] of [
    ['memorySize', 128, 10_240],
    ['batchSize', 1, 10],
  ] as const) {
    const value = props[name] ?? min;
    if (!Token.isUnresolved(value) && !(Number.isInteger(value) && value >= min && value <= max)) {
      refusals.push(`${name} is ${value}; it must be a whole number from ${min} to ${max}`);
    }
  }
}

export function warnOfShortRetention(deadLetterQueue: sqs.IQueue): void {
  const own = resourceOf(deadLetterQueue);
  const retention = own?.messageRetentionPeriod ?? DEFAULT_RETENTION;
  if (own !== undefined && isOutside(String(retention), LONGEST_RETENTION.toSeconds(), Infinity)) {
    Annotations.of(deadLetterQueue).addWarningV2(
      'comeback-cdk:deadLettersExpire',
      `SQS deletes dead-letters from this queue after ${retention} s; with retentionPeriod: ` +
        'Duration.days(14) there is more time to redrive them',
    );
  }
}

function resourceOf(queue?: sqs.IQueue): sqs.CfnQueue | undefined {
  const resource = queue?.node.defaultChild;
  return resource instanceof sqs.CfnQueue ? resource : undefined;
}
