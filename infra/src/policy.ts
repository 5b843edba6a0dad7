import { Duration, Token, Tokenization } from 'aws-cdk-lib';

import * as SETTINGS from './settings.json';
import { isOutside, replaceTokens, shown, textProblem, wholeNumber } from './values';

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

/** The metrics that the handler writes: `METRICS`. Each is billed by the month. */
export enum HandlerMetrics {
  /** No metrics. */
  OFF = 'off',

  /** Metrics of the handler as a whole. */
  STACK = 'stack',

  /** Metrics of each function as well, and dead-letters by reason. */
  TARGET = 'target',
}

/** The retry policy: each property is an environment variable of the retry handler. */
export interface PolicyProps {
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
   * The metrics that the handler writes into its log, in CloudWatch's embedded metric format.
   *
   * @default HandlerMetrics.OFF
   */
  readonly metrics?: HandlerMetrics;

  /**
   * Globs (`*`, `?`) for `errorType`s that go straight to the dead-letter queue. Each is compared with the whole type,
   * its class name and its simple name: `Refused` and `RefusedException` both match `com.acme.RefusedException`.
   *
   * @default []
   */
  readonly nonRetryableErrors?: string[];
}

/** Limits on the messages that wait hidden. */
export interface WaitingProps {
  /**
   * The number of messages that may be hidden at once; 0 to 55,000. Beyond it, the handler sends messages again with a
   * delay.
   *
   * A hidden message costs nothing, but SQS allows only about 120,000 of them. With 0, every message is sent again.
   *
   * @default 50_000
   */
  readonly hideUpTo?: number;

  /**
   * Whether to hide messages always, regardless of their number. Cannot be combined with `hideUpTo`.
   *
   * @default false
   */
  readonly alwaysHide?: boolean;

  /**
   * The maximum concurrent invocations of the retry handler; 2 to 1,000.
   *
   * It limits the pollers, which share the room for hidden messages. Reserved concurrency would throttle the pollers,
   * which raises receive counts.
   *
   * @default 10
   */
  readonly maxConcurrency?: number;
}

/** The default for the handler and its event source mapping. */
export const DEFAULT_MAX_CONCURRENCY = SETTINGS.MAXIMUM_CONCURRENCY.default;

const HIDE_UP_TO = `it must be ${SETTINGS.HIDE_UP_TO.range.replace(', or always', '')}; to hide without a limit, set alwaysHide`;

/** The number of characters of an `errorType` in a dead-letter. */
const LONGEST_GLOB = 256;

/**
 * The retry policy, as environment variables of the retry handler.
 *
 * @param refusals receives a line for each property that the handler would refuse at startup
 */
export function policyVariables(props: PolicyProps, refusals: string[]): Record<string, string> {
  const maxAge = duration('maxAge', 'MAX_AGE', props.maxAge, refusals);
  const maxRetries = wholeNumber(
    'maxRetries (MAX_RETRIES)',
    props.maxRetries ?? SETTINGS.MAX_RETRIES.default,
    refusals,
  );
  const baseBackoff = duration('baseBackoff', 'BASE_BACKOFF', props.baseBackoff, refusals);
  const maxBackoff = duration('maxBackoff', 'MAX_BACKOFF', props.maxBackoff, refusals);
  const backoffs = props.backoffs?.map((ceiling) => seconds('backoffs (BACKOFFS)', ceiling, refusals));
  if (backoffs?.length === 0) {
    refusals.push('backoffs (BACKOFFS) is ""; it must be a list of Durations');
  }
  const jitter = choice('jitter', 'JITTER', props.jitter, refusals);
  const envelope = choice('envelope', 'ENVELOPE', props.envelope, refusals);
  const metrics = choice('metrics', 'METRICS', props.metrics, refusals);
  for (const [name, given] of [
    ['baseBackoff (BASE_BACKOFF)', props.baseBackoff],
    ['maxBackoff (MAX_BACKOFF)', props.maxBackoff],
  ] as const) {
    if (backoffs !== undefined && given !== undefined) {
      refusals.push(
        `${name} is set together with backoffs (BACKOFFS), which replaces it; set only one of the two`,
      );
    }
  }
  checkRange('maxAge', 'MAX_AGE', maxAge, ' s', refusals);
  checkRange('maxRetries', 'MAX_RETRIES', maxRetries, '', refusals);
  if (backoffs === undefined) {
    checkBaseAndCap(baseBackoff, maxBackoff, refusals);
  } else {
    checkCeilings(backoffs, jitter, refusals);
  }
  for (const glob of props.nonRetryableErrors ?? []) {
    // The handler would split a glob at a comma, and ignore a blank glob.
    const isOne = Token.isUnresolved(glob) || !(glob.includes(',') || glob.trim() === '');
    const problem = isOne ? globProblem(glob) : 'each must be one errorType glob';
    if (problem !== undefined) {
      refusals.push(`nonRetryableErrors (NON_RETRYABLE_ERRORS) has ${shown(glob)}; ${problem}`);
    }
  }
  return {
    MAX_AGE: maxAge,
    MAX_RETRIES: maxRetries,
    ...(backoffs === undefined
      ? { BASE_BACKOFF: baseBackoff, MAX_BACKOFF: maxBackoff }
      : { BACKOFFS: backoffs.join(',') }),
    JITTER: jitter,
    ENVELOPE: envelope,
    DIRECTIVES: props.directives === false ? 'off' : 'on',
    METRICS: metrics,
    NON_RETRYABLE_ERRORS: (props.nonRetryableErrors ?? []).join(','),
  };
}

/** CloudFormation returns other characters as `?`, which would match more than intended. */
function globProblem(glob: string): string | undefined {
  const isAscii = /^[ -~]*$/.test(replaceTokens(glob, ''));
  return (
    textProblem(glob, LONGEST_GLOB) ??
    (isAscii ? undefined : 'it must be ASCII; write ? for any other character')
  );
}

function checkBaseAndCap(baseBackoff: string, maxBackoff: string, refusals: string[]): void {
  checkRange('maxBackoff', 'MAX_BACKOFF', maxBackoff, ' s', refusals);
  const { min, max } = SETTINGS.BASE_BACKOFF;
  // Do not refuse a base because of a cap that is itself refused, or not yet known.
  const cap = Math.min(max, Number(maxBackoff) || max);
  if (isOutside(baseBackoff, min, cap)) {
    const range = SETTINGS.BASE_BACKOFF.range.replace('MAX_BACKOFF', `maxBackoff (${String(cap)} s)`);
    const wayOut = Number(baseBackoff) > cap ? ': lower it, or raise maxBackoff' : '';
    refusals.push(`baseBackoff (BASE_BACKOFF) is ${baseBackoff} s; it must be ${range}${wayOut}`);
  }
}

function checkCeilings(ceilings: string[], jitter: string, refusals: string[]): void {
  const { min, max, entries, range } = SETTINGS.BACKOFFS;
  if (ceilings.length > entries) {
    refusals.push(
      `backoffs (BACKOFFS) has ${String(ceilings.length)} ceilings; the maximum is ${String(entries)}`,
    );
  }
  const outside = ceilings.find((ceiling) => isOutside(ceiling, min, max));
  if (outside !== undefined) {
    refusals.push(`backoffs (BACKOFFS) has a ceiling of ${outside} s; each must be ${range}`);
  }
  for (const [index, ceiling] of ceilings.entries()) {
    const before = ceilings[index - 1] ?? '0';
    if (isOutside(ceiling, Number(before) || 0, Infinity)) {
      refusals.push(
        `backoffs (BACKOFFS) falls from ${before} s to ${ceiling} s; no ceiling may be shorter than the one before it`,
      );
      break;
    }
  }
  if (jitter === 'decorrelated') {
    refusals.push('jitter (JITTER) is decorrelated; with backoffs (BACKOFFS) it must be full, equal or none');
  }
}

/**
 * The limits on waiting messages, as environment variables of the retry handler.
 *
 * @param refusals receives a line for each property that the handler would refuse at startup
 */
export function waitingVariables(
  props: WaitingProps,
  refusals: string[],
): Record<'HIDE_UP_TO' | 'MAXIMUM_CONCURRENCY', string> {
  const maxConcurrency = wholeNumber(
    'maxConcurrency (MAXIMUM_CONCURRENCY)',
    props.maxConcurrency ?? DEFAULT_MAX_CONCURRENCY,
    refusals,
  );
  checkRange('maxConcurrency', 'MAXIMUM_CONCURRENCY', maxConcurrency, '', refusals);
  return {
    HIDE_UP_TO: hideUpTo(props, refusals),
    MAXIMUM_CONCURRENCY: maxConcurrency,
  };
}

function hideUpTo({ hideUpTo, alwaysHide = false }: WaitingProps, refusals: string[]): string {
  if (alwaysHide && hideUpTo !== undefined) {
    refusals.push('hideUpTo and alwaysHide (HIDE_UP_TO) are both set; leave one of them out');
  }
  const { default: unset, min, max } = SETTINGS.HIDE_UP_TO;
  const number = wholeNumber('hideUpTo (HIDE_UP_TO)', hideUpTo ?? unset, refusals, HIDE_UP_TO);
  if (isOutside(number, min, max)) {
    refusals.push(`hideUpTo (HIDE_UP_TO) is ${number}; ${HIDE_UP_TO}`);
  }
  return alwaysHide ? 'always' : number;
}

/** The number of seconds as text. A token stays a token. */
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

/** A duration in seconds, or the setting's default. */
function duration(
  property: string,
  variable: 'MAX_AGE' | 'BASE_BACKOFF' | 'MAX_BACKOFF',
  given: Duration | undefined,
  refusals: string[],
): string {
  return seconds(
    `${property} (${variable})`,
    given ?? Duration.seconds(SETTINGS[variable].default),
    refusals,
  );
}

/** One of a setting's words, or its default. A token can be checked only by the handler. */
function choice(
  property: string,
  variable: 'JITTER' | 'ENVELOPE' | 'METRICS',
  given: string | undefined,
  refusals: string[],
): string {
  const { default: unset, choices, range } = SETTINGS[variable];
  const value = given ?? unset;
  if (!Token.isUnresolved(value) && !choices.includes(value)) {
    refusals.push(`${property} (${variable}) is ${shown(value)}; it must be ${range}`);
  }
  return value;
}

function checkRange(
  property: string,
  variable: 'MAX_AGE' | 'MAX_RETRIES' | 'MAX_BACKOFF' | 'MAXIMUM_CONCURRENCY',
  value: string,
  unit: string,
  refusals: string[],
): void {
  const { min, max, range } = SETTINGS[variable];
  if (isOutside(value, min, max)) {
    refusals.push(`${property} (${variable}) is ${value}${unit}; it must be ${range}`);
  }
}
