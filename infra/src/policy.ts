import { type Duration, Token, Tokenization } from 'aws-cdk-lib';

import { type FunctionPolicy, VARIABLES } from './function-policy';
import * as SETTINGS from './settings.json';
import { isOutside, type Refusals, replaceTokens, shown } from './values';

/** The metrics that the handler publishes: the values of its variable `METRICS`. CloudWatch charges for each metric. */
export enum HandlerMetrics {
  /** No metrics. */
  OFF = 'off',

  /** Metrics for the whole handler. */
  STACK = 'stack',

  /** Metrics for the whole handler and for each function, and the number of dead-letters for each reason. */
  TARGET = 'target',
}

/** The retry policy for all functions, and the metrics that the handler publishes. */
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
   * The maximum number of messages that are hidden at the same time; 0 to 55,000.
   *
   * The handler sends all other waiting messages again with a delay. With 0, it sends every message again. Hiding a
   * message costs nothing, but SQS allows only about 120,000 hidden messages per queue.
   *
   * @default 50_000
   */
  readonly hideUpTo?: number;

  /**
   * Whether to hide waiting messages without limiting their number; cannot be combined with `hideUpTo`.
   *
   * @default false
   */
  readonly alwaysHide?: boolean;

  /**
   * The maximum number of concurrent invocations of the retry handler; 2 to 1,000. It also limits the SQS pollers.
   *
   * Do not use reserved concurrency instead: throttling a poller raises the receive counts of its messages.
   *
   * @default 10
   */
  readonly maxConcurrency?: number;
}

/** The default maximum concurrency of the handler and of its event source mapping. */
export const DEFAULT_MAX_CONCURRENCY = SETTINGS.MAXIMUM_CONCURRENCY.default;

const PROPERTIES = {
  ...VARIABLES,
  metrics: 'METRICS',
  hideUpTo: 'HIDE_UP_TO',
  maxConcurrency: 'MAXIMUM_CONCURRENCY',
} as const;

type Property = keyof typeof PROPERTIES;
type Ranged = 'maxAge' | 'maxRetries' | 'baseBackoff' | 'maxBackoff' | 'hideUpTo' | 'maxConcurrency';

/** The range of a setting. A plain number has no unit. */
interface Range {
  min: number;
  max: number;
  range: string;
  unit?: string;
}

/** Returns a property's name for messages, such as `maxAge (MAX_AGE)`. */
function label(property: Property): string {
  return `${property} (${PROPERTIES[property]})`;
}

export function policyVariables(props: PolicyProps, refusals: Refusals): Record<string, string> {
  const ranged = (property: Ranged & keyof PolicyProps) =>
    whole(property, props[property] ?? SETTINGS[PROPERTIES[property]].default, refusals);
  const maxAge = ranged('maxAge');
  const maxRetries = ranged('maxRetries');
  const baseBackoff = ranged('baseBackoff');
  const maxBackoff = ranged('maxBackoff');
  const backoffs = props.backoffs?.map((ceiling) => whole('backoffs', ceiling, refusals));
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

/** Returns a function's settings as text for `POLICIES`. `inherited` is the policy of the `AsyncRetries` construct. */
export function policySettings(policy: FunctionPolicy, inherited: PolicyProps, refusals: Refusals): string {
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

export function waitingVariables(
  { hideUpTo, alwaysHide = false, maxConcurrency = DEFAULT_MAX_CONCURRENCY }: WaitingProps,
  refusals: Refusals,
): Record<'HIDE_UP_TO' | 'MAXIMUM_CONCURRENCY', string> {
  const concurrency = whole('maxConcurrency', maxConcurrency, refusals);
  checkRange('maxConcurrency', concurrency, refusals);
  if (alwaysHide && hideUpTo !== undefined) {
    refusals.push('hideUpTo and alwaysHide (HIDE_UP_TO) are both set; leave one of them out');
  }
  const row = SETTINGS.HIDE_UP_TO;
  const range = row.range.replace(', or always', '; to hide without a limit, set alwaysHide');
  const hidden = whole('hideUpTo', hideUpTo ?? row.default, refusals, range);
  checkRange('hideUpTo', hidden, refusals, { ...row, range });
  return { HIDE_UP_TO: alwaysHide ? 'always' : hidden, MAXIMUM_CONCURRENCY: concurrency };
}

/**
 * Converts a whole number, or a duration in whole seconds, to a string; a token stays a token.
 *
 * For any other value, adds an error to `refusals` and returns an empty string.
 */
function whole(
  property: Property,
  given: number | Duration,
  refusals: Refusals,
  expected = typeof given === 'number' ? 'a whole number' : 'whole seconds',
): string {
  const value = typeof given === 'number' ? given : given.toSeconds({ integral: false });
  if (Token.isUnresolved(value)) {
    return Tokenization.stringifyNumber(value);
  }
  if (!Number.isInteger(value) || value < 0) {
    refusals.push(`${label(property)} is "${value}"; it must be ${expected}`);
    return '';
  }
  return String(value);
}

function checkRange(
  property: Ranged,
  value: string,
  refusals: Refusals,
  { min, max, range, unit }: Range = SETTINGS[PROPERTIES[property]],
): void {
  if (isOutside(value, min, max)) {
    const given = unit === undefined ? value : `${value} ${unit}`;
    refusals.push(`${label(property)} is ${given}; it must be ${range}`);
  }
}

function checkBaseAndCap(baseBackoff: string, maxBackoff: string, refusals: Refusals): void {
  checkRange('maxBackoff', maxBackoff, refusals);
  const row = SETTINGS.BASE_BACKOFF;
  // Do not refuse a base because of a cap that is itself refused, or known only at deployment.
  const max = Math.min(row.max, Number(maxBackoff) || row.max);
  const range = row.range.replace('MAX_BACKOFF', `maxBackoff (${max} s)`);
  const wayOut = Number(baseBackoff) > max ? ': lower it, or raise maxBackoff' : '';
  checkRange('baseBackoff', baseBackoff, refusals, { ...row, max, range: `${range}${wayOut}` });
}

function checkCeilings(ceilings: string[], jitter: string, refusals: Refusals): void {
  const { min, max, entries, range } = SETTINGS.BACKOFFS;
  if (ceilings.length > entries) {
    refusals.push(`${label('backoffs')} has ${ceilings.length} ceilings; the maximum is ${entries}`);
  }
  const outside = ceilings.find((ceiling) => isOutside(ceiling, min, max));
  if (outside !== undefined) {
    refusals.push(`${label('backoffs')} has a ceiling of ${outside} s; each must be ${range}`);
  }
  const before = (index: number) => ceilings[index - 1] ?? '0';
  const fall = ceilings.findIndex((ceiling, n) => isOutside(ceiling, Number(before(n)) || 0, Infinity));
  if (fall !== -1) {
    refusals.push(
      `${label('backoffs')} falls from ${before(fall)} s to ${ceilings[fall]} s; ` +
        'no ceiling may be shorter than the one before it',
    );
  }
  if (jitter === 'decorrelated') {
    const others = SETTINGS.JITTER.range.replace(', decorrelated', '');
    refusals.push(`${label('jitter')} is decorrelated; with ${label('backoffs')} it must be ${others}`);
  }
}

/** Returns the value of a property with a fixed set of choices, or the setting's default. */
function choice(property: 'jitter' | 'envelope' | 'metrics', props: PolicyProps, refusals: Refusals): string {
  const { default: unset, choices, range } = SETTINGS[PROPERTIES[property]];
  const value: string = props[property] ?? unset;
  if (!Token.isUnresolved(value) && !choices.includes(value)) {
    refusals.push(`${label(property)} is ${shown(value)}; it must be ${range}`);
  }
  return value;
}

/** Returns the problem with a glob, or undefined if the glob is valid. Unresolved tokens count as empty strings. */
function globProblem(glob: string): string | undefined {
  // The handler would split a glob at a comma, and ignore a blank glob.
  if (!Token.isUnresolved(glob) && (glob.includes(',') || glob.trim() === '')) {
    return 'each must be one errorType glob';
  }
  const known = replaceTokens(glob, '');
  if (/\p{Cc}/u.test(known)) {
    return 'it must not have control characters';
  }
  // An environment variable cannot contain half a surrogate pair.
  if (/\p{Cs}/u.test(known)) {
    return 'it must be well-formed Unicode';
  }
  const { characters } = SETTINGS.NON_RETRYABLE_ERRORS;
  if (known.length > characters) {
    return `it has ${known.length} characters, and must have at most ${characters}`;
  }
  // CloudFormation replaces other characters with `?`, which would match more than intended.
  return /^[ -~]*$/.test(known) ? undefined : 'it must be ASCII; write ? for any other character';
}
