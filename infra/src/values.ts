import { inspect } from 'node:util';
import { Token, Tokenization } from 'aws-cdk-lib';
import { Construct } from 'constructs';

/** The placeholder in messages for a value known only at deployment. */
const UNKNOWN = '…';

/** Longer than any ARN of a function. */
const LONGEST_SHOWN = 256;

/** A value as messages show it. */
export function shown(value: unknown): string {
  if (Construct.isConstruct(value)) {
    return value.node.path;
  }
  if (typeof value === 'string') {
    const text = literal(value);
    const cut = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
    // JSON escapes only the older control characters.
    return JSON.stringify(cut).replace(/\p{Cc}/gu, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
  }
  return Token.isUnresolved(value) ? UNKNOWN : inspect(value, { depth: -1 });
}

/** A string as messages show it, without quotes. */
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

/** The problem with a string in the handler's environment. Tokens count as empty. */
export function textProblem(text: string, longest: number): string | undefined {
  const known = replaceTokens(text, '');
  if (/\p{Cc}/u.test(known)) {
    return 'it must not have control characters';
  }
  // No environment can contain half a surrogate pair.
  if (/\p{Cs}/u.test(known)) {
    return 'it must be well-formed Unicode';
  }
  return known.length > longest
    ? `it has ${String(known.length)} characters, and must have at most ${String(longest)}`
    : undefined;
}

/** A whole number as a string. A token stays a token; a refused value becomes empty. */
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

/** Returns true if a number is out of range. False for an empty value, which was refused before, and for a token. */
export function isOutside(value: string, min: number, max: number): boolean {
  return value !== '' && !Token.isUnresolved(value) && (Number(value) < min || Number(value) > max);
}
