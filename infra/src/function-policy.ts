import { type Duration } from 'aws-cdk-lib';

/**
 * The random distribution of a backoff: the values of the handler's variable `JITTER`. Except with `DECORRELATED`, each
 * backoff has a maximum, called its ceiling. The ceilings follow from `baseBackoff` and `maxBackoff`, or from
 * `backoffs`.
 */
export enum Jitter {
  /** The backoff is drawn uniformly from the range between one second and the retry's ceiling. */
  FULL = 'full',

  /** The backoff is drawn uniformly from the range between half of the retry's ceiling and the whole ceiling. */
  EQUAL = 'equal',

  /**
   * The backoff is drawn uniformly from the range between the base backoff and three times the previous backoff, but is
   * at most `maxBackoff`.
   */
  DECORRELATED = 'decorrelated',

  /** The backoff is not random: it always equals the retry's ceiling. */
  NONE = 'none',
}

/** The location of the metadata in a retry's payload: the values of the handler's variable `ENVELOPE`. */
export enum EnvelopeStyle {
  /** The payload moves into `_original_payload`, beside `_retry_metadata`. */
  WRAP = 'wrap',

  /**
   * An object payload gets the metadata as an additional key, `_retry_metadata`. Any other payload is wrapped, as with
   * `WRAP`.
   */
  INLINE = 'inline',
}

/**
 * The retry policy. Each property corresponds to an environment variable of the retry handler.
 *
 * A function can be attached with its own policy. Properties that this policy does not set are inherited from the
 * `AsyncRetries` construct, with one exception: `backoffs` replaces an inherited `baseBackoff` and `maxBackoff`, and
 * either of these replaces an inherited `backoffs`.
 */
export interface FunctionPolicy {
  /**
   * The time for which an event is retried, counted from its first failure; 60 seconds to 14 days.
   *
   * @default Duration.hours(24)
   */
  readonly maxAge?: Duration;

  /**
   * The maximum number of retries in one chain; 0 to 10,000.
   *
   * A chain is a failed event and its retries. If Lambda does not respond to a re-invocation, a second chain may start.
   * If all other properties have their defaults, `maxAge` is reached first, after about 56 retries.
   *
   * @default 1000
   */
  readonly maxRetries?: number;

  /**
   * The ceiling for the first backoff; 1 second to `maxBackoff`. The ceiling doubles with each retry.
   *
   * @default Duration.seconds(10)
   */
  readonly baseBackoff?: Duration;

  /**
   * The highest ceiling for a backoff; 1 second to 43,170 seconds. SQS can hide a message for up to 12 hours, which is
   * 30 seconds more.
   *
   * @default Duration.hours(1)
   */
  readonly maxBackoff?: Duration;

  /**
   * The ceilings for the backoffs, instead of `baseBackoff` and `maxBackoff`. The last ceiling applies to all further
   * backoffs. Up to 64 ceilings are allowed. Each ceiling must be from 1 to 43,170 seconds, and at least as long as the
   * one before it. Cannot be combined with `Jitter.DECORRELATED`.
   *
   * @default - they double from `baseBackoff` to `maxBackoff`
   */
  readonly backoffs?: Duration[];

  /**
   * The random distribution that each backoff is drawn from. Except with `Jitter.DECORRELATED`, a backoff is never
   * longer than the retry's ceiling.
   *
   * @default Jitter.FULL
   */
  readonly jitter?: Jitter;

  /**
   * The location of the metadata in a retry's payload. You can change this property while events are waiting, because
   * the handler finds the metadata in either location.
   *
   * @default EnvelopeStyle.WRAP
   */
  readonly envelope?: EnvelopeStyle;

  /**
   * Whether a function can control its retries through its errors: the message of a `RetryAfter` error sets the time of
   * the retry, and a `NonRetryable` error prevents further retries.
   *
   * @default true
   */
  readonly directives?: boolean;

  /**
   * Globs (`*`, `?`) that are matched against an error's `errorType`. If one matches, the event is dead-lettered
   * without further retries. Each glob is compared with the whole type, with its class name and with its simple name.
   * For example, `Refused` and `RefusedException` both match `com.acme.RefusedException`.
   *
   * @default []
   */
  readonly nonRetryableErrors?: string[];
}

/** The environment variable for each property, in the order that an entry in `POLICIES` uses. */
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
