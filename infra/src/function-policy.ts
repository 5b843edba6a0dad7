import { type Duration } from 'aws-cdk-lib';

import { type EnvelopeStyle, type Jitter, type PolicyProps, policyVariables } from './policy';

/** The retry policy of a single function. Properties that are not set come from the `AsyncRetries`. */
export interface FunctionPolicy {
  /**
   * The time for which an event is retried, counted from its first failure; 60 seconds to 14 days.
   *
   * @default - that of the AsyncRetries
   */
  readonly maxAge?: Duration;

  /**
   * The maximum retries of one chain; 0 to 10,000.
   *
   * @default - that of the AsyncRetries
   */
  readonly maxRetries?: number;

  /**
   * The ceiling of the first backoff; 1 second to `maxBackoff`. Replaces the `backoffs` of the AsyncRetries.
   *
   * @default - that of the AsyncRetries
   */
  readonly baseBackoff?: Duration;

  /**
   * The cap of every ceiling; 1 second to 43,170 seconds. Replaces the `backoffs` of the AsyncRetries.
   *
   * @default - that of the AsyncRetries
   */
  readonly maxBackoff?: Duration;

  /**
   * The ceilings of the backoffs, the last one repeated. Replaces the `baseBackoff` and `maxBackoff` of the AsyncRetries.
   *
   * @default - that of the AsyncRetries
   */
  readonly backoffs?: Duration[];

  /**
   * The distribution of a backoff under its ceiling.
   *
   * @default - that of the AsyncRetries
   */
  readonly jitter?: Jitter;

  /**
   * The place of the metadata in a retry's payload.
   *
   * @default - that of the AsyncRetries
   */
  readonly envelope?: EnvelopeStyle;

  /**
   * Whether the handler obeys the function's own `RetryAfter` and `NonRetryable` errors.
   *
   * @default - that of the AsyncRetries
   */
  readonly directives?: boolean;

  /**
   * Globs (`*`, `?`) for `errorType`s that go straight to the dead-letter queue. Replaces those of the AsyncRetries.
   *
   * @default - that of the AsyncRetries
   */
  readonly nonRetryableErrors?: string[];
}

/** The variable of each property, in the order of an entry. */
const VARIABLES: Readonly<Record<keyof FunctionPolicy, string>> = {
  maxAge: 'MAX_AGE',
  maxRetries: 'MAX_RETRIES',
  baseBackoff: 'BASE_BACKOFF',
  maxBackoff: 'MAX_BACKOFF',
  backoffs: 'BACKOFFS',
  jitter: 'JITTER',
  envelope: 'ENVELOPE',
  directives: 'DIRECTIVES',
  nonRetryableErrors: 'NON_RETRYABLE_ERRORS',
};

/**
 * A function's entry of `POLICIES`, after the pattern.
 *
 * @param inherited the policy of the AsyncRetries
 * @param refusals receives a line for each property that the handler would refuse at startup
 */
export function policySettings(policy: FunctionPolicy, inherited: PolicyProps, refusals: string[]): string {
  const names = Object.keys(VARIABLES) as (keyof FunctionPolicy)[];
  const given = names.filter((name) => policy[name] !== undefined);
  if (given.length === 0) {
    refusals.push('it sets nothing; leave it out, or set at least one property');
  }
  const { baseBackoff, maxBackoff, backoffs, ...others } = inherited;
  const waits = {
    ...(policy.backoffs === undefined ? { baseBackoff, maxBackoff } : {}),
    ...(policy.baseBackoff === undefined && policy.maxBackoff === undefined ? { backoffs } : {}),
  };
  const own = Object.fromEntries(given.map((name) => [name, policy[name]]));
  const values = policyVariables({ ...others, ...waits, ...own }, refusals);
  for (const glob of policy.nonRetryableErrors ?? []) {
    if (/[\s;]/.test(glob)) {
      refusals.push(
        `nonRetryableErrors (NON_RETRYABLE_ERRORS) has ${JSON.stringify(glob)}; it must not have white space or a semicolon`,
      );
    }
  }
  return given.map((name) => `${VARIABLES[name]}=${values[VARIABLES[name]] ?? ''}`).join(' ');
}
