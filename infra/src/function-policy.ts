import { type Duration } from 'aws-cdk-lib';

/** The distribution of a backoff under its ceiling: `JITTER`. */
export enum Jitter {
  /** Uniform between one second and the ceiling. */
  FULL = 'full',

  /** Uniform between half the ceiling and the ceiling. */
  EQUAL = 'equal',

  /** Uniform between the base and three times the previous backoff. */
  DECORRELATED = 'decorrelated',

  /** The ceiling itself. */
  NONE = 'none',
}

/** The place of the metadata in a retry's payload: `ENVELOPE`. */
export enum EnvelopeStyle {
  /** The payload moves into `_original_payload`, beside `_retry_metadata`. */
  WRAP = 'wrap',

  /** An object payload gets an additional key, `_retry_metadata`; any other payload is wrapped. */
  INLINE = 'inline',
}

/**
 * The retry policy: each property is an environment variable of the retry handler.
 *
 * A function can be attached with a policy of its own. Properties that this policy does not set have the values of the
 * `AsyncRetries`, with one exception: `backoffs` also replaces the `baseBackoff` and `maxBackoff` of the `AsyncRetries`,
 * and each of these two also replaces its `backoffs`.
 */
export interface FunctionPolicy {
  /**
   * The time for which an event is retried, counted from its first failure; 60 seconds to 14 days.
   *
   * @default Duration.hours(24)
   */
  readonly maxAge?: Duration;

  /**
   * The maximum retries of one chain; 0 to 10,000.
   *
   * A chain is a failed event and its retries. A re-invocation that Lambda did not answer may start a second
   * chain. With the other defaults, `maxAge` ends first, after about 56 retries.
   *
   * @default 1000
   */
  readonly maxRetries?: number;

  /**
   * The ceiling of the first backoff, which doubles with every retry; 1 second to `maxBackoff`.
   *
   * @default Duration.seconds(10)
   */
  readonly baseBackoff?: Duration;

  /**
   * The cap of every ceiling; 1 second to 43,170 seconds. That is 12 hours less 30 seconds, the longest time for which
   * SQS can hide a message.
   *
   * @default Duration.hours(1)
   */
  readonly maxBackoff?: Duration;

  /**
   * The ceilings of the backoffs, the last one repeated, instead of `baseBackoff` and `maxBackoff`; at most 64, each
   * 1 second to 43,170 seconds, and none shorter than the one before. Cannot be combined with `Jitter.DECORRELATED`.
   *
   * @default - they double from `baseBackoff` to `maxBackoff`
   */
  readonly backoffs?: Duration[];

  /**
   * The distribution of a backoff under its ceiling.
   *
   * @default Jitter.FULL
   */
  readonly jitter?: Jitter;

  /**
   * The place of the metadata in a retry's payload. You can change it while events wait, because both styles are always
   * understood.
   *
   * @default EnvelopeStyle.WRAP
   */
  readonly envelope?: EnvelopeStyle;

  /**
   * Whether the handler obeys a function's own errors: `RetryAfter`, whose message sets the time of the retry, and
   * `NonRetryable`.
   *
   * @default true
   */
  readonly directives?: boolean;

  /**
   * Globs (`*`, `?`) for `errorType`s that go straight to the dead-letter queue. Each is compared with the whole type,
   * its class name and its simple name: `Refused` and `RefusedException` both match `com.acme.RefusedException`.
   *
   * @default []
   */
  readonly nonRetryableErrors?: string[];
}

/** The variable of each property, in the order of an entry of `POLICIES`. */
export const VARIABLES = {
  maxAge: 'MAX_AGE',
  maxRetries: 'MAX_RETRIES',
  baseBackoff: 'BASE_BACKOFF',
  maxBackoff: 'MAX_BACKOFF',
  backoffs: 'BACKOFFS',
  jitter: 'JITTER',
  envelope: 'ENVELOPE',
  directives: 'DIRECTIVES',
  nonRetryableErrors: 'NON_RETRYABLE_ERRORS',
} as const satisfies Record<keyof FunctionPolicy, string>;
