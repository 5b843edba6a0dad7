import { CfnResource, type Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';

import { givenName } from './target';
import { generatedName } from './target-functions';

/** Lambda's limit on a function's environment, in bytes of its JSON. */
const LIMIT = 4_096;

/** What shortens the variables that have no limit of their own. */
const REMEDIES: Record<string, string> = {
  TARGET_FUNCTIONS: 'one pattern in targetFunctions can allow many functions',
  NON_RETRYABLE_ERRORS: 'one glob in nonRetryableErrors can match many errors',
};

/** The shortest values that these can have. */
const PSEUDO_PARAMETERS: Record<string, string> = {
  'AWS::AccountId': '000000000000',
  'AWS::Partition': 'aws',
  'AWS::Region': 'eu-west-1',
};

/** The refusal of an environment that is certainly too large. A value that only the deployment knows counts as short. */
export function environmentProblems(stack: Stack, variables: Record<string, string>): string[] {
  const resolved = Object.entries(stack.resolve(variables) as Record<string, unknown>);
  const shortest = resolved.map(([name, value]): [string, string] => [name, shortestText(stack, value)]);
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(shortest)));
  if (bytes <= LIMIT) {
    return [];
  }
  const [remedy = ''] = shortest
    .sort(([, left], [, right]) => right.length - left.length)
    .flatMap(([name]) => REMEDIES[name] ?? []);
  return [
    `the retry handler's environment has at least ${String(bytes)} bytes, and Lambda allows ${String(LIMIT)}; ${remedy}`,
  ];
}

function shortestText(stack: Stack, value: unknown): string {
  if (typeof value === 'string') {
    return value;
  }
  const [[intrinsic, argument] = ['', undefined]] = Object.entries(value as Record<string, unknown>);
  switch (intrinsic) {
    case 'Ref':
      return PSEUDO_PARAMETERS[argument as string] ?? '';
    case 'Fn::Join': {
      const [separator, parts] = argument as [string, unknown[]];
      return parts.map((part) => shortestText(stack, part)).join(separator);
    }
    case 'Fn::GetAtt':
      return shortestArn(stack, (argument as [string, string])[0]);
    default:
      return '';
  }
}

function shortestArn(stack: Stack, logicalId: string): string {
  const resource = stack.node
    .findAll()
    .find((each) => CfnResource.isCfnResource(each) && stack.resolve(each.logicalId) === logicalId);
  if (!(resource instanceof lambda.CfnFunction)) {
    return '';
  }
  // Without the last character, because CloudFormation's random part has 12 or 13.
  const name = givenName(resource) ?? generatedName(stack.stackName, logicalId).slice(0, -1);
  return `arn:aws:lambda:eu-west-1:000000000000:function:${name}`;
}
