import { type Stack } from 'aws-cdk-lib';
/**
 * The ARN of a function in this stack's account and region, without making the stack depend on the function.
 *
 * @param name the function's name, or a pattern with `*`
 */
export declare function functionArn(stack: Stack, name: string): string;
/**
 * The `TARGET_FUNCTIONS` entries for name patterns and ARNs.
 *
 * @param refusals receives a line for each entry that the handler would refuse when it starts
 */
export declare function targetFunctions(stack: Stack, patterns: string[], refusals: string[]): string[];
/** Returns whether an entry surely allows a function of this name in the stack's account and region. */
export declare function allows(stack: Stack, entry: string, name: string): boolean;
/**
 * The name that CloudFormation will give a function: stack, logical id and 12 or 13 random characters. If that is too
 * long, CloudFormation shortens the parts in a way of its own, and only the beginning is known: `?` stands for the rest.
 */
export declare function generatedName(stackName: string, logicalId: string): string;
