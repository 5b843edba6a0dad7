import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { type AsyncRetriesProps } from './props';
/** The two queues between which the retry handler stands, and its settings as environment variables. */
export interface RetryHandlerProps extends AsyncRetriesProps {
    readonly queue: sqs.IQueue;
    readonly deadLetterQueue: sqs.IQueue;
    readonly settings: Record<string, string>;
}
/** The Lambda function between the two queues, its role, its log and the event source mapping that feeds it. */
export declare class RetryHandler extends Construct {
    readonly function: lambda.Function;
    readonly role: iam.Role;
    /** The SSM parameter that holds the pauses, without its first slash. */
    private readonly pauses;
    private readonly targets;
    private readonly reinvokeTargets;
    constructor(scope: Construct, id: string, props: RetryHandlerProps);
    /** Allows one more `TARGET_FUNCTIONS` entry to be re-invoked. */
    allow(entry: string): void;
    /** Exactly the calls that the retry handler makes. The queues' own grants would allow more. */
    private grant;
}
