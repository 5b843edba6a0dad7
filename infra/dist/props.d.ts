import { type RemovalPolicy, type Stack } from 'aws-cdk-lib';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as logs from 'aws-cdk-lib/aws-logs';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { type PolicyProps } from './policy';
import { type WaitingProps } from './waiting';
/** The properties of {@link AsyncRetries}. */
export interface AsyncRetriesProps extends PolicyProps, WaitingProps {
    /**
     * The names of functions that may be re-invoked, besides those that are attached.
     *
     * Without any, and with nothing attached, the handler keeps what arrives until there is one.
     *
     * `*` stands for any characters, and a name without `:QUALIFIER` for all its versions and aliases. A name means a
     * function of this stack's account and region; an ARN is used as it is given. The handler's environment holds 4 KB, so
     * use patterns to allow a large number of functions.
     *
     * @default []
     */
    readonly targetFunctions?: string[];
    /**
     * A folder, or a zip file, with the retry handler's `bootstrap`, built for `architecture`.
     *
     * @default - built with cargo-lambda, from the checkout of Comeback that this package lies in
     */
    readonly bootstrap?: string;
    /**
     * The processor of the retry handler.
     *
     * @default lambda.Architecture.ARM_64
     */
    readonly architecture?: lambda.Architecture;
    /**
     * The memory of the retry handler in MiB; 128 to 10,240.
     *
     * It buys processor share, not room: ten TLS handshakes at once are slow with less than the default.
     *
     * @default 256
     */
    readonly memorySize?: number;
    /**
     * The messages handed to one invocation of the retry handler; 1 to 10.
     *
     * @default 10
     */
    readonly batchSize?: number;
    /**
     * How long the retry handler's log is kept.
     *
     * @default logs.RetentionDays.ONE_MONTH
     */
    readonly logRetention?: logs.RetentionDays;
    /**
     * What becomes of the two queues when their stack is deleted, or when they leave it because this construct was removed
     * or renamed. Each may hold 14 days of events.
     *
     * @default RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
     */
    readonly removalPolicy?: RemovalPolicy;
    /**
     * The key that encrypts the two queues. Attached functions' roles are allowed to use it.
     *
     * @default - a key that SQS manages (SSE-SQS)
     */
    readonly encryptionKey?: kms.IKey;
    /**
     * The standard queue that receives the events that are given up.
     *
     * @default - a new queue that keeps them for 14 days
     */
    readonly deadLetterQueue?: sqs.IQueue;
}
/**
 * Checks the dead-letter queue, and the figures that are no variables of the retry handler.
 *
 * @param refusals receives a line for each one that is refused
 */
export declare function checkProps(props: AsyncRetriesProps, stack: Stack, refusals: string[]): void;
