import { inspect } from 'node:util';
import { Token, Tokenization } from 'aws-cdk-lib';
import { Construct } from 'constructs';

/** What stands in a message for all that only the deployment knows. */
const UNKNOWN = '…';

/** A value as a message names it. */
export function shown(value: unknown): string {
  if (Construct.isConstruct(value)) {
    return value.node.path;
  }
  if (typeof value === 'string') {
    return JSON.stringify(literal(value));
  }
  return Token.isUnresolved(value) ? UNKNOWN : inspect(value, { depth: -1 });
}

/** A text as a message names it, without quotes. */
export function literal(text: string): string {
  return replaceTokens(text, UNKNOWN);
}

export function replaceTokens(text: string, by: string): string {
  if (!Token.isUnresolved(text)) {
    return text;
  }
  const mapped = Tokenization.reverseString(text).mapTokens({ mapToken: () => by });
  return String(mapped.join({ join: (left: string, right: string) => left + right }));
}
