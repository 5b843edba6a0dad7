import { CfnResource, type Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';

import { givenName } from './target';
import { generatedName } from './target-functions';

/** Lambda's limit, in bytes, on the size of a function's environment variables when written as JSON. */
const LIMIT = 4_096;

/** Suggestions for shortening the variables that have no length limit of their own. */
const REMEDIES: Record<string, string> = {
  TARGET_FUNCTIONS: 'one pattern in targetFunctions can allow many functions',
  NON_RETRYABLE_ERRORS: 'one glob in nonRetryableErrors can match many errors',
  POLICIES: 'attach functions with a policy of their own to another AsyncRetries, or give them shorter names',
};

const PSEUDO_PARAMETERS: Record<string, string> = {
  'AWS::AccountId': '000000000000',
  'AWS::Partition': 'aws',
  'AWS::Region': 'eu-west-1',
};

/** Returns one error message if even the shortest possible environment is too large, otherwise an empty list. */
export function environmentProblems(stack: Stack, variables: Record<string, string>): string[] {
  const { texts, bytes } = shortest(stack, variables);
  if (bytes <= LIMIT) {
    return [];
  }
  const [remedy = ''] = texts
    .sort(([, left], [, right]) => right.length - left.length)
    .flatMap(([name]) => REMEDIES[name] ?? []);
  return [
    `the retry handler's environment has at least ${bytes} bytes, and Lambda allows ${LIMIT}; ${remedy}`,
  ];
}

export function environmentLeft(stack: Stack, variables: Record<string, string>): string {
  const { bytes } = shortest(stack, variables);
  const left = String(Math.max(0, LIMIT - bytes));
  return `the retry handler's environment has at least ${bytes} bytes of ${LIMIT}; at most ${left} are left`;
}

/** Returns the shortest possible values of the variables, and their total size in bytes. */
function shortest(
  stack: Stack,
  variables: Record<string, string>,
): { texts: [string, string][]; bytes: number } {
  const resolved = Object.entries(stack.resolve(variables) as Record<string, unknown>);
  const texts = resolved.map(([name, value]): [string, string] => [name, shortestText(stack, value)]);
  return { texts, bytes: Buffer.byteLength(JSON.stringify(Object.fromEntries(texts))) };
}

function shortestText(stack: Stack, value: unknown): string {
  if (typeof value === 'string') {
    return value;
  }
  const [[intrinsic, argument] = ['', undefined]] = Object.entries(value as Record<string, unknown>);
  switch (intrinsic) {
    case 'Ref':
      return PSEUDO_PARAMETERS[argument as string] ?? shortestName(stack, argument as string);
    case 'Fn::Join': {
      const [separator, parts] = argument as [string, unknown[]];
      return parts.map((part) => shortestText(stack, part)).join(separator);
    }
    case 'Fn::Sub': {
      const [text, values] = (Array.isArray(argument) ? argument : [argument, {}]) as [string, object];
      return text.replace(/\$\{(!?)([^}]*)\}/g, (_, escaped: string, name: string) => {
        if (escaped !== '') {
          return `\${${name}}`;
        }
        const attribute = name.includes('.') ? { 'Fn::GetAtt': name.split('.') } : { Ref: name };
        return shortestText(stack, name in values ? (values as Record<string, unknown>)[name] : attribute);
      });
    }
    case 'Fn::GetAtt': {
      const name = shortestName(stack, (argument as [string, string])[0]);
      return name && `arn:aws:lambda:eu-west-1:000000000000:function:${name}`;
    }
    default:
      return '';
  }
}

/** Returns the shortest possible name of a function in the stack; an empty string for any other resource. */
function shortestName(stack: Stack, logicalId: string): string {
  const resource = stack.node
    .findAll()
    .find((each) => CfnResource.isCfnResource(each) && stack.resolve(each.logicalId) === logicalId);
  if (!(resource instanceof lambda.CfnFunction)) {
    return '';
  }
  // The last character is removed, because CloudFormation's random part has 12 or 13 characters.
  return givenName(resource) ?? generatedName(stack.stackName, logicalId).slice(0, -1);
}
