import { RemovalPolicy, Token } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';

import { type AttachOptions } from './attach';
import { type FunctionPolicy } from './function-policy';
import { type MonitorOptions } from './monitor';
import { type AsyncRetriesProps } from './props';
import { type Refusals, shown } from './values';

/** A check of a value's type, and the expected type in words, for error messages. */
type Type = readonly [is: (value: unknown) => boolean, expected: string];

const DURATION: Type = [has('toSeconds'), 'a Duration, such as Duration.hours(1)'];
const NUMBER: Type = [(value) => typeof value === 'number', 'a number'];
const BOOLEAN: Type = [(value) => typeof value === 'boolean', 'true or false'];
const STRINGS: Type = [listOf(isString), 'a list of strings'];
const DURATIONS: Type = [
  listOf(has('toSeconds')),
  'a list of Durations, such as [Duration.seconds(20), Duration.minutes(5)]',
];

/** The types of a policy's properties, except for enums, which `choice` checks. */
export const FUNCTION_POLICY: Readonly<Record<Exclude<keyof FunctionPolicy, 'jitter' | 'envelope'>, Type>> = {
  maxAge: DURATION,
  maxRetries: NUMBER,
  baseBackoff: DURATION,
  maxBackoff: DURATION,
  backoffs: DURATIONS,
  directives: BOOLEAN,
  nonRetryableErrors: STRINGS,
};

export const PROPS: Readonly<
  Record<Exclude<keyof AsyncRetriesProps, 'jitter' | 'envelope' | 'metrics'>, Type>
> = {
  ...FUNCTION_POLICY,
  targetFunctions: STRINGS,
  bootstrap: [(value) => isString(value) && !Token.isUnresolved(value), 'the path of a folder or a zip file'],
  architecture: [has('dockerPlatform'), 'a lambda.Architecture, such as lambda.Architecture.ARM_64'],
  memorySize: NUMBER,
  batchSize: NUMBER,
  hideUpTo: NUMBER,
  alwaysHide: BOOLEAN,
  maxConcurrency: NUMBER,
  logRetention: [
    (value) => Token.isUnresolved(value) || oneOf(logs.RetentionDays)(value),
    'a logs.RetentionDays, such as logs.RetentionDays.ONE_MONTH',
  ],
  removalPolicy: [oneOf(RemovalPolicy), 'a RemovalPolicy, such as RemovalPolicy.DESTROY'],
  encryptionKey: [has('keyArn'), 'a kms.IKey, such as Key.fromKeyArn gives'],
  deadLetterQueue: [has('queueArn'), 'an sqs.IQueue, such as Queue.fromQueueArn gives'],
};

export const OPTIONS: Readonly<Record<keyof AttachOptions, Type>> = {
  maxEventAge: DURATION,
  onSuccess: [has('bind'), 'a lambda.IDestination'],
  policy: [
    (value) => typeof value === 'object' && value !== null,
    'a policy, such as { maxAge: Duration.hours(2) }',
  ],
};

export const MONITOR_OPTIONS: Readonly<Record<keyof MonitorOptions, Type>> = {
  topic: [has('topicArn'), 'an sns.ITopic, such as Topic.fromTopicArn gives'],
  dashboard: BOOLEAN,
};

/** Returns `given` without the values of the wrong type. Adds an error to `refusals` for each of these values. */
export function wellTyped<T extends object>(
  given: T,
  types: Readonly<Partial<Record<keyof T, Type>>>,
  refusals: Refusals,
): T {
  const all = Object.entries(types) as [keyof T & string, Type][];
  const wrong = all.filter(([name, [is]]) => given[name] !== undefined && !is(given[name]));
  for (const [name, [, expected]] of wrong) {
    refusals.push(`${name} is ${shown(given[name])}; it must be ${expected}`);
  }
  return { ...given, ...Object.fromEntries(wrong.map(([name]) => [name, undefined])) };
}

export function checkIsFunction(target: lambda.IFunction): void {
  if (!(Construct.isConstruct(target) && has('functionArn')(target))) {
    throw new Error(`attach was given ${shown(target)}; it must be given a function (lambda.IFunction)`);
  }
}

/**
 * Returns a function that checks whether a value has this member. It does not check the value's class, because an app
 * may contain two copies of a library, each with its own class.
 */
function has(member: string): (value: unknown) => boolean {
  return (value) => typeof value === 'object' && value !== null && member in value;
}

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

function listOf(is: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.every(is);
}

function oneOf(values: object): (value: unknown) => boolean {
  return (value) => Object.values(values).includes(value);
}
