import { Duration, Token, Tokenization } from 'aws-cdk-lib';

import { type FunctionPolicy, VARIABLES } from './function-policy';
import * as SETTINGS from './settings.json';
import { isOutside, replaceTokens, shown, textProblem, wholeNumber } from './values';

/** The metrics that the handler writes. Sets `METRICS`. CloudWatch bills each metric by the month. */
export enum HandlerMetrics {
  /** No metrics. */
  OFF = 'off',

  /** Metrics for the whole handler. */
  STACK = 'stack',

  /** Metrics for the whole handler and for each function, and dead-letters by reason. */
  TARGET = 'target',
}

/** The retry policy of all functions, and the metrics that the handler writes. */
export interface PolicyProps extends FunctionPolicy {
  /**
   * The metrics that the handler writes into its log, in CloudWatch's embedded metric format.
   *
   * @default HandlerMetrics.OFF
   */
  readonly metrics?: HandlerMetrics;
}

/** Limits on hidden messages and on the handler's concurrency. */
export interface WaitingProps {
  /**
   * The number of messages that may be hidden at once; 0 to 55,000. Beyond this number, the handler sends messages
   * again with a delay.
   *
   * A hidden message costs nothing, but SQS allows only about 120,000 hidden messages. With 0, every message is sent
   * again.
   *
   * @default 50_000
   */
  readonly hideUpTo?: number;

  /**
   * Whether to always hide messages, regardless of their number. Cannot be combined with `hideUpTo`.
   *
   * @default false
   */
  readonly alwaysHide?: boolean;

  /**
   * The maximum concurrent invocations of the retry handler; 2 to 1,000.
   *
   * This property limits the pollers, which share the limit on hidden messages. Do not limit the handler by reserved
   * concurrency: throttled pollers raise the receive counts of messages.
   *
   * @default 10
   */
  readonly maxConcurrency?: number;
}

/** The default maximum concurrency of the handler and of its event source mapping. */
export const DEFAULT_MAX_CONCURRENCY = SETTINGS.MAXIMUM_CONCURRENCY.default;

/** The maximum number of characters of an `errorType` in a dead-letter. */
const LONGEST_GLOB = 256;

const PROPERTIES = {
  ...VARIABLES,
  metrics: 'METRICS',
  hideUpTo: 'HIDE_UP_TO',
  maxConcurrency: 'MAXIMUM_CONCURRENCY',
} as const;

type Property = keyof typeof PROPERTIES;

/** Returns a property's name for messages, such as `maxAge (MAX_AGE)`. */
function label(property: Property): string {
  return `${property} (${PROPERTIES[property]})`;
}

/**
 * Converts the retry policy to environment variables of the retry handler.
 *
 * @param refusals receives a line for each property that the handler would refuse at startup
 */
export function policyVariables(props: PolicyProps, refusals: string[]): Record<string, string> {
  const maxAge = duration('maxAge', props, refusals);
  const maxRetries = number('maxRetries', props.maxRetries, refusals);
  const baseBackoff = duration('baseBackoff', props, refusals);
  const maxBackoff = duration('maxBackoff', props, refusals);
  const backoffs = props.backoffs?.map((ceiling) => seconds('backoffs', ceiling, refusals));
  if (backoffs?.length === 0) {
    refusals.push(`${label('backoffs')} is ""; it must be a list of Durations`);
  }
  const jitter = choice('jitter', props, refusals);
  const envelope = choice('envelope', props, refusals);
  const metrics = choice('metrics', props, refusals);
  for (const replaced of ['baseBackoff', 'maxBackoff'] as const) {
    if (backoffs !== undefined && props[replaced] !== undefined) {
      refusals.push(
        `${label(replaced)} is set together with ${label('backoffs')}, which replaces it; set only one of the two`,
      );
    }
  }
  checkRange('maxAge', maxAge, refusals);
  checkRange('maxRetries', maxRetries, refusals);
  if (backoffs === undefined) {
    checkBaseAndCap(baseBackoff, maxBackoff, refusals);
  } else {
    checkCeilings(backoffs, jitter, refusals);
  }
  for (const glob of props.nonRetryableErrors ?? []) {
    const problem = globProblem(glob);
    if (problem !== undefined) {
      refusals.push(`${label('nonRetryableErrors')} has ${shown(glob)}; ${problem}`);
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

/**
 * Returns the settings for a function's entry in `POLICIES`. In the entry, they follow the pattern.
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
      const problem = 'it must not have white space or a semicolon';
      refusals.push(`${label('nonRetryableErrors')} has ${JSON.stringify(glob)}; ${problem}`);
    }
  }
  return given.map((name) => `${VARIABLES[name]}=${values[VARIABLES[name]] ?? ''}`).join(' ');
}

/**
 * Converts the limits on waiting messages to environment variables of the retry handler.
 *
 * @param refusals receives a line for each property that the handler would refuse at startup
 */
export function waitingVariables(
  props: WaitingProps,
  refusals: string[],
): Record<'HIDE_UP_TO' | 'MAXIMUM_CONCURRENCY', string> {
  const maxConcurrency = number('maxConcurrency', props.maxConcurrency, refusals);
  checkRange('maxConcurrency', maxConcurrency, refusals);
  return {
    HIDE_UP_TO: hideUpTo(props, refusals),
    MAXIMUM_CONCURRENCY: maxConcurrency,
  };
}

function hideUpTo({ hideUpTo, alwaysHide = false }: WaitingProps, refusals: string[]): string {
  if (alwaysHide && hideUpTo !== undefined) {
    refusals.push('hideUpTo and alwaysHide (HIDE_UP_TO) are both set; leave one of them out');
  }
  const { default: unset, min, max, range } = SETTINGS.HIDE_UP_TO;
  const expected = `it must be ${range.replace(', or always', '; to hide without a limit, set alwaysHide')}`;
  const value = wholeNumber(label('hideUpTo'), hideUpTo ?? unset, refusals, expected);
  if (isOutside(value, min, max)) {
    refusals.push(`${label('hideUpTo')} is ${value}; ${expected}`);
  }
  return alwaysHide ? 'always' : value;
}

function globProblem(glob: string): string | undefined {
  // The handler would split a glob at a comma, and ignore a blank glob.
  if (!Token.isUnresolved(glob) && (glob.includes(',') || glob.trim() === '')) {
    return 'each must be one errorType glob';
  }
  // CloudFormation replaces other characters with `?`, which would match more than intended.
  const isAscii = /^[ -~]*$/.test(replaceTokens(glob, ''));
  const onlyAscii = isAscii ? undefined : 'it must be ASCII; write ? for any other character';
  return textProblem(glob, LONGEST_GLOB) ?? onlyAscii;
}

function checkBaseAndCap(baseBackoff: string, maxBackoff: string, refusals: string[]): void {
  checkRange('maxBackoff', maxBackoff, refusals);
  const { min, max } = SETTINGS.BASE_BACKOFF;
  // Do not refuse a base because of a cap that is itself refused, or known only at deployment.
  const cap = Math.min(max, Number(maxBackoff) || max);
  if (isOutside(baseBackoff, min, cap)) {
    const range = SETTINGS.BASE_BACKOFF.range.replace('MAX_BACKOFF', `maxBackoff (${String(cap)} s)`);
    const wayOut = Number(baseBackoff) > cap ? ': lower it, or raise maxBackoff' : '';
    refusals.push(`${label('baseBackoff')} is ${baseBackoff} s; it must be ${range}${wayOut}`);
  }
}

function checkCeilings(ceilings: string[], jitter: string, refusals: string[]): void {
  const { min, max, entries, range } = SETTINGS.BACKOFFS;
  if (ceilings.length > entries) {
    refusals.push(
      `${label('backoffs')} has ${String(ceilings.length)} ceilings; the maximum is ${String(entries)}`,
    );
  }
  const outside = ceilings.find((ceiling) => isOutside(ceiling, min, max));
  if (outside !== undefined) {
    refusals.push(`${label('backoffs')} has a ceiling of ${outside} s; each must be ${range}`);
  }
  for (const [index, ceiling] of ceilings.entries()) {
    const before = ceilings[index - 1] ?? '0';
    if (isOutside(ceiling, Number(before) || 0, Infinity)) {
      refusals.push(
        `${label('backoffs')} falls from ${before} s to ${ceiling} s; no ceiling may be shorter than the one before it`,
      );
      break;
    }
  }
  if (jitter === 'decorrelated') {
    refusals.push(
      `${label('jitter')} is decorrelated; with ${label('backoffs')} it must be full, equal or none`,
    );
  }
}

/** Returns a duration in seconds, as a string. A token stays a token. */
function seconds(property: Property, duration: Duration, refusals: string[]): string {
  if (duration.isUnresolved()) {
    return Tokenization.stringifyNumber(duration.toSeconds());
  }
  const value = duration.toSeconds({ integral: false });
  if (!Number.isInteger(value)) {
    refusals.push(`${label(property)} is "${String(value)}"; it must be whole seconds`);
    return '';
  }
  return String(value);
}

/** Returns a duration property in seconds, or the setting's default. */
function duration(
  property: 'maxAge' | 'baseBackoff' | 'maxBackoff',
  props: FunctionPolicy,
  refusals: string[],
): string {
  const unset = SETTINGS[PROPERTIES[property]].default;
  return seconds(property, props[property] ?? Duration.seconds(unset), refusals);
}

/** Returns a number property, or the setting's default, as a string. */
function number(
  property: 'maxRetries' | 'maxConcurrency',
  given: number | undefined,
  refusals: string[],
): string {
  return wholeNumber(label(property), given ?? SETTINGS[PROPERTIES[property]].default, refusals);
}

/** Returns a property with fixed choices, or the setting's default. Only the handler can check a token. */
function choice(property: 'jitter' | 'envelope' | 'metrics', props: PolicyProps, refusals: string[]): string {
  const { default: unset, choices, range } = SETTINGS[PROPERTIES[property]];
  const value: string = props[property] ?? unset;
  if (!Token.isUnresolved(value) && !choices.includes(value)) {
    refusals.push(`${label(property)} is ${shown(value)}; it must be ${range}`);
  }
  return value;
}

function checkRange(
  property: 'maxAge' | 'maxRetries' | 'maxBackoff' | 'maxConcurrency',
  value: string,
  refusals: string[],
): void {
  const { min, max, range } = SETTINGS[PROPERTIES[property]];
  if (isOutside(value, min, max)) {
    const unit = property === 'maxAge' || property === 'maxBackoff' ? ' s' : '';
    refusals.push(`${label(property)} is ${value}${unit}; it must be ${range}`);
  }
}
