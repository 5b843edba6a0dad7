import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { type AttachOptions } from './attach';
import { type AsyncRetriesProps } from './props';
/** Whether a value has the right type, and what a message says that it must be. */
type Type = readonly [is: (value: unknown) => boolean, expected: string];
/** The type of each property, for code that no compiler checks. The two enums of the policy are checked by value. */
export declare const PROPS: Readonly<Record<Exclude<keyof AsyncRetriesProps, 'jitter' | 'envelope'>, Type>>;
/** The type of each option of `attach`. */
export declare const OPTIONS: Readonly<Record<keyof AttachOptions, Type>>;
/**
 * The values that have the right type. The others are left out, so that the rest is still checked.
 *
 * @param refusals receives a line for each value of a wrong type
 */
export declare function wellTyped<T extends object>(given: T, types: Readonly<Partial<Record<keyof T, Type>>>, refusals: string[]): T;
/** @throws if it is no function */
export declare function checkIsFunction(target: lambda.IFunction): void;
export {};
