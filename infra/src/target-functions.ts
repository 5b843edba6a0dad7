import { ArnFormat, type Stack, Token, Tokenization } from 'aws-cdk-lib';

import { type Refusals, replaceTokens, shown } from './values';

/** Lambda's maximum length of a function's name. */
const LONGEST_NAME = 64;

const NOT_AN_ARN =
  'is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER)';
const BLANK = "is blank; it must be a function's name, a pattern of names, or a function ARN";

/**
 * Returns the ARN of a function in this stack's account and region, without depending on the function.
 *
 * @param name the function's name, or a pattern with `*`
 */
export function functionArn(stack: Stack, name: string): string {
  return stack.formatArn({
    service: 'lambda',
    resource: 'function',
    resourceName: name,
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });
}

export function targetFunctions(stack: Stack, patterns: string[], refusals: Refusals): string[] {
  return patterns.map((pattern) => {
    const isBlank = pattern.trim() === '';
    const isName = !isBlank && !isToken(pattern) && !pattern.startsWith('arn:');
    const arn = isName ? functionArn(stack, pattern) : pattern;
    const problem = isBlank ? BLANK : problemOf(arn);
    if (problem !== undefined) {
      refusals.push(`targetFunctions (TARGET_FUNCTIONS) entry ${shown(pattern)} ${problem}`);
    }
    return arn;
  });
}

/**
 * Returns true if an allow-list entry is known to cover the function with this name in the stack's account and region.
 */
export function allows(stack: Stack, entry: string, name: string): boolean {
  const [, , , region, account, , pattern, qualifier] = entry.split(':');
  if (region !== stack.region || account !== stack.account || qualifier !== undefined) {
    return false;
  }
  const literals = (pattern ?? '').split('*').map((literal) => literal.replace(/[^\w-]/g, '\\$&'));
  return new RegExp(`^${literals.join('.*')}$`).test(name);
}

/** Returns an example of the name that CloudFormation will generate; `?` stands for what cannot be predicted. */
export function generatedName(stackName: string, logicalId: string): string {
  if (Token.isUnresolved(stackName)) {
    return '?';
  }
  const name = `${stackName}-${logicalId}-0000000000000`;
  return name.length > LONGEST_NAME ? `${stackName.slice(0, 20)}?` : name;
}

/** Returns the problem that the handler's `FunctionPattern` would report for an entry; undefined for a valid one. */
function problemOf(arn: string): string | undefined {
  if (isToken(arn)) {
    return undefined;
  }
  // Twelve digits are valid in every field, so they can stand for any token.
  const fields = replaceTokens(arn, '000000000000').split(':');
  const [prefix, partition = '', service, region = '', account = '', resource, name = '', qualifier] = fields;
  const isFunction = prefix === 'arn' && service === 'lambda' && resource === 'function';
  if (!isFunction || fields.length > 8 || fields.includes('')) {
    return NOT_AN_ARN;
  }
  if ([partition, region, account, qualifier ?? ''].some((field) => field.includes('*'))) {
    return "has a * outside the function's name";
  }
  if (name.replaceAll('*', '').length > LONGEST_NAME) {
    return `has a name of more than ${LONGEST_NAME} characters`;
  }
  if (!/^[\w*-]+$/.test(name) || !/^([\w-]+|\$LATEST(\.PUBLISHED)?)$/.test(qualifier ?? '1')) {
    return "has a character that is not allowed in a function's name or qualifier";
  }
  const isPlace = [partition, region].every((field) => /^[a-z\d-]+$/.test(field));
  return isPlace && /^\d{12}$/.test(account) ? undefined : NOT_AN_ARN;
}

/** Returns true if an entry is a single token, which only the handler can check. */
function isToken(entry: string): boolean {
  const { length, firstToken } = Tokenization.reverseString(entry);
  return length === 1 && firstToken !== undefined;
}
