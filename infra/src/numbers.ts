import { Token, Tokenization } from 'aws-cdk-lib';

/** A whole number as text, or the token if it is one; empty if it is refused. */
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

/** An empty value was refused already, and only the handler can check a token. */
export function isOutside(value: string, min: number, max: number): boolean {
  return value !== '' && !Token.isUnresolved(value) && (Number(value) < min || Number(value) > max);
}
