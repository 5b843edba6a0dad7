import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
/**
 * Lets a role use the key of a queue, if the queue has one.
 *
 * @throws if the key cannot be granted from here: without the permission, events would be lost in silence
 */
export declare function allowKey({ encryptionMasterKey: key }: sqs.IQueue, role: iam.IRole, ...actions: string[]): void;
