import { inspect } from 'node:util';
import { Token, Tokenization } from 'aws-cdk-lib';
import { Construct } from 'constructs';

/** The reasons for refusing properties, one line for each property, so that one error can name them all. */
export type Refusals = string[];

/** The placeholder in messages for a value that is known only at deployment. */
const UNKNOWN = '…';

/** The maximum length of a value in an error message. No function ARN is longer. */
const LONGEST_SHOWN = 256;

export function shown(value: unknown): string {
  if (Construct.isConstruct(value)) {
    return value.node.path;
  }
  if (typeof value === 'string') {
    const text = literal(value);
    const cut = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
    // `JSON.stringify` escapes only the control characters below U+0020.
    return JSON.stringify(cut).replace(/\p{Cc}/gu, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
  }
  return Token.isUnresolved(value) ? UNKNOWN : inspect(value, { depth: -1 });
}

/** Replaces each CDK token in a string with `…`, without adding quotes. */
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

/**
 * Returns true if a number is out of range. Returns false for a token, and for the empty string that stands for a
 * refused value.
 */
export function isOutside(value: string, min: number, max: number): boolean {
  return value !== '' && !Token.isUnresolved(value) && (Number(value) < min || Number(value) > max);
}
