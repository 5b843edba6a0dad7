import { type CfnElement, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
/** Metadata of an invoke configuration: the path of the `AsyncRetries` that made it. */
export declare const ATTACHED_TO = "comeback-cdk:attachedTo";
/** The function of a version or an alias; of a function, itself. */
export declare function unqualified(target: lambda.IFunction): lambda.IFunction;
/** The target of an invoke configuration: `$LATEST` shares the function's own. */
export declare function configurable(target: lambda.IFunction): lambda.IFunction;
/** The function's own resource, if this app makes it. */
export declare function resourceOf(fn: lambda.IFunction): lambda.CfnFunction | undefined;
/** As the template will have it, even if the app overrides it. */
export declare function logicalIdOf(resource: CfnElement): string;
/**
 * The ARN that allows every version and alias of a function to be re-invoked from this stack.
 *
 * A function of another stack refers to this one, for the queue's ARN, so this one must not refer to the function.
 *
 * @param entries the `TARGET_FUNCTIONS` entries that were given as patterns
 * @returns nothing if the function has no name yet, and one of the patterns allows it
 * @throws if the function is in another stack, has no name yet, and none of the patterns allows it
 */
export declare function entryFor(fn: lambda.IFunction, stack: Stack, entries: string[]): string | undefined;
/**
 * Refuses a function whose retries could not be deployed, or would never happen.
 *
 * @throws if the function is elsewhere, its asynchronous invocation is configured already, or its loops are to be stopped
 */
export declare function checkTarget(target: lambda.IFunction, stack: Stack): void;
