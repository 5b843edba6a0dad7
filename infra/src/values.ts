import { inspect } from 'node:util';
import { Token, Tokenization } from 'aws-cdk-lib';
import { Construct } from 'constructs';

/** The placeholder in messages for a value that is known only at deployment. */
const UNKNOWN = '…';

/** The maximum length of a string in a message. No ARN of a function is longer. */
const LONGEST_SHOWN = 256;

/** Formats a value for messages. */
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

/** Formats a string for messages, without quotes. */
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
 * Returns the problem with a string for the handler's environment; undefined for a valid string. Tokens count as empty.
 */
export function textProblem(text: string, longest: number): string | undefined {
  const known = replaceTokens(text, '');
  if (/\p{Cc}/u.test(known)) {
    return 'it must not have control characters';
  }
  // An environment variable cannot contain half a surrogate pair.
  if (/\p{Cs}/u.test(known)) {
    return 'it must be well-formed Unicode';
  }
  return known.length > longest
    ? `it has ${String(known.length)} characters, and must have at most ${String(longest)}`
    : undefined;
}

/** Returns a whole number as a string. A token stays a token. For a refused value, returns an empty string. */
export function wholeNumber(
  label: string,
  value: number,
  refusals: string[],
  expected = 'it must be a whole number',
): string {
  if (Token.isUnresolved(value)) {
    return Tokenization.stringifyNumber(value);
  }
  if (!Number.isInteger(value) || value < 0) {
    refusals.push(`${label} is "${String(value)}"; ${expected}`);
    return '';
  }
  return String(value);
}

/**
 * Returns true if a number is out of range. Returns false for an empty value, which was refused before, and for a
 * token.
 */
export function isOutside(value: string, min: number, max: number): boolean {
  return value !== '' && !Token.isUnresolved(value) && (Number(value) < min || Number(value) > max);
}
