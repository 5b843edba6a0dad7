import { Duration, Token, Tokenization } from 'aws-cdk-lib';

import { isOutside, wholeNumber } from './numbers';
import { shown } from './shown';

/** How a backoff is drawn under its ceiling: `JITTER`. */
export enum Jitter {
  /** Evenly from one second to the ceiling. */
  FULL = 'full',

  /** Evenly from half the ceiling to the ceiling. */
  EQUAL = 'equal',

  /** Evenly from the base to three times the backoff before. */
  DECORRELATED = 'decorrelated',

  /** The ceiling itself. */
  NONE = 'none',
}

/** How a retry carries its metadata to the function: `ENVELOPE`. */
export enum EnvelopeStyle {
  /** The payload moves into `_original_payload`, beside `_retry_metadata`. */
  WRAP = 'wrap',

  /** An object payload gets one more key, `_retry_metadata`; any other payload is wrapped. */
  INLINE = 'inline',
}

/** Which metrics the handler writes: `METRICS`. Each is billed by the month. */
export enum HandlerMetrics {
  /** None. */
  OFF = 'off',

  /** Those of the handler as a whole. */
  STACK = 'stack',

  /** Also those of each function, and dead-letters by reason. */
  TARGET = 'target',
}

/** The retry policy: each property is an environment variable of the retry handler. */
export interface PolicyProps {
  /**
   * The time from an event's first failure after which no retry is made; 60 seconds to 14 days.
   *
   * @default Duration.hours(24)
   */
  readonly maxAge?: Duration;

  /**
   * The most retries of one chain; 0 to 10,000.
   *
   * A chain is the retries that descend from one failure. A re-invocation that Lambda did not answer may start a second
   * one. With the other defaults, age ends first, after about 19 retries.
   *
   * @default 185
   */
  readonly maxRetries?: number;

  /**
   * The ceiling of the first backoff, which doubles with every retry; 1 second to `maxBackoff`.
   *
   * @default Duration.seconds(1)
   */
  readonly baseBackoff?: Duration;

  /**
   * The cap of every ceiling; 1 second to 43,170 seconds, which is 12 hours less 30 seconds: the most SQS can hide a
   * message.
   *
   * @default Duration.seconds(43_170)
   */
  readonly maxBackoff?: Duration;

  /**
   * How a backoff is drawn under its ceiling.
   *
   * @default Jitter.FULL
   */
  readonly jitter?: Jitter;

  /**
   * How a retry carries its metadata. It may be changed while events wait: both styles are always understood.
   *
   * @default EnvelopeStyle.WRAP
   */
  readonly envelope?: EnvelopeStyle;

  /**
   * Whether a function's own words are obeyed: an error named `RetryAfter`, whose message says when to retry, or
   * `NonRetryable`.
   *
   * @default true
   */
  readonly directives?: boolean;

  /**
   * Which metrics the handler writes into its log, in CloudWatch's embedded metric format.
   *
   * @default HandlerMetrics.OFF
   */
  readonly metrics?: HandlerMetrics;

  /**
   * Globs (`*`, `?`) of the `errorType`s that go straight to the dead-letter queue. Each is compared with the whole type,
   * and with its simple name: `Refused` matches `com.acme.RefusedException` too.
   *
   * @default []
   */
  readonly nonRetryableErrors?: string[];
}

/** SQS counts its 12 hours from the receive and refuses 43,200 s in practice, hence 30 s less. */
const LONGEST_BACKOFF = 43_170;

/**
 * The policy as the retry handler's environment.
 *
 * @param refusals receives a line for each property that the handler would refuse when it starts
 */
export function policyVariables(props: PolicyProps, refusals: string[]): Record<string, string> {
  const maxAge = seconds('maxAge (MAX_AGE)', props.maxAge ?? Duration.hours(24), refusals);
  const maxRetries = wholeNumber('maxRetries (MAX_RETRIES)', props.maxRetries ?? 185, refusals);
  const baseBackoff = seconds(
    'baseBackoff (BASE_BACKOFF)',
    props.baseBackoff ?? Duration.seconds(1),
    refusals,
  );
  const maxBackoff = seconds(
    'maxBackoff (MAX_BACKOFF)',
    props.maxBackoff ?? Duration.seconds(43_170),
    refusals,
  );
  const jitter = props.jitter ?? Jitter.FULL;
  if (!isOneOf(Jitter, jitter)) {
    refusals.push(`jitter (JITTER) is ${shown(jitter)}; it must be full, equal, decorrelated or none`);
  }
  const envelope = props.envelope ?? EnvelopeStyle.WRAP;
  if (!isOneOf(EnvelopeStyle, envelope)) {
    refusals.push(`envelope (ENVELOPE) is ${shown(envelope)}; it must be wrap or inline`);
  }
  const metrics = props.metrics ?? HandlerMetrics.OFF;
  if (!isOneOf(HandlerMetrics, metrics)) {
    refusals.push(`metrics (METRICS) is ${shown(metrics)}; it must be off, stack or target`);
  }
  if (isOutside(maxAge, 60, 1_209_600)) {
    refusals.push(`maxAge (MAX_AGE) is ${maxAge} s; it must be 60 s to 1209600 s (14 days)`);
  }
  if (isOutside(maxRetries, 0, 10_000)) {
    refusals.push(`maxRetries (MAX_RETRIES) is ${maxRetries}; it must be 0 to 10000`);
  }
  if (isOutside(maxBackoff, 1, LONGEST_BACKOFF)) {
    refusals.push(
      `maxBackoff (MAX_BACKOFF) is ${maxBackoff} s; it must be 1 s to 43170 s (12 hours less 30 s)`,
    );
  }
  // A base is not refused for a cap that is refused itself, or not known yet.
  const cap = Math.min(LONGEST_BACKOFF, Number(maxBackoff) || LONGEST_BACKOFF);
  if (isOutside(baseBackoff, 1, cap)) {
    refusals.push(
      `baseBackoff (BASE_BACKOFF) is ${baseBackoff} s; it must be 1 s to maxBackoff (${String(cap)} s)`,
    );
  }
  for (const glob of props.nonRetryableErrors ?? []) {
    // The handler would read two globs where there is a comma, and ignore a blank one.
    if (!Token.isUnresolved(glob) && (glob.includes(',') || glob.trim() === '')) {
      refusals.push(
        `nonRetryableErrors (NON_RETRYABLE_ERRORS) has ${shown(glob)}; each must be one errorType glob`,
      );
    }
  }
  return {
    MAX_AGE: maxAge,
    MAX_RETRIES: maxRetries,
    BASE_BACKOFF: baseBackoff,
    MAX_BACKOFF: maxBackoff,
    JITTER: jitter,
    ENVELOPE: envelope,
    DIRECTIVES: props.directives === false ? 'off' : 'on',
    METRICS: metrics,
    NON_RETRYABLE_ERRORS: (props.nonRetryableErrors ?? []).join(','),
  };
}

/** The number of seconds as text, or the token if the duration is one. */
function seconds(label: string, duration: Duration, refusals: string[]): string {
  if (duration.isUnresolved()) {
    return Tokenization.stringifyNumber(duration.toSeconds());
  }
  const value = duration.toSeconds({ integral: false });
  if (!Number.isInteger(value)) {
    refusals.push(`${label} is "${String(value)}"; it must be whole seconds`);
    return '';
  }
  return String(value);
}

/** Only the handler can check a token. */
function isOneOf(values: object, value: string): boolean {
  return Token.isUnresolved(value) || Object.values(values).includes(value);
}
