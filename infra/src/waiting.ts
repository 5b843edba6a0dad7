import { isOutside, wholeNumber } from './numbers';

/** What bounds the messages that are hidden at once. */
export interface WaitingProps {
  /**
   * The messages hidden at once before waits are performed by sending the message again, with a delay; 0 to 55,000.
   *
   * A hidden message costs nothing, but SQS allows about 120,000 of them. With 0 every message is sent again.
   *
   * @default 50_000
   */
  readonly hideUpTo?: number;

  /**
   * Whether messages are always hidden, however many there are. It excludes `hideUpTo`.
   *
   * @default false
   */
  readonly alwaysHide?: boolean;

  /**
   * The most invocations of the retry handler at a time; 2 to 1,000.
   *
   * It limits the pollers, which share what may be hidden. Reserved concurrency would throttle them, which raises receive
   * counts.
   *
   * @default 10
   */
  readonly maxConcurrency?: number;
}

/** Also the mapping's. */
export const DEFAULT_MAX_CONCURRENCY = 10;

const HIDE_UP_TO = 'it must be 0 to 55000; to hide without a limit, set alwaysHide';

/**
 * How the retry handler performs waits, as its environment.
 *
 * @param refusals receives a line for each property that the handler would refuse when it starts
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
  if (isOutside(maxConcurrency, 2, 1_000)) {
    refusals.push(`maxConcurrency (MAXIMUM_CONCURRENCY) is ${maxConcurrency}; it must be 2 to 1000`);
  }
  return { HIDE_UP_TO: hideUpTo(props, refusals), MAXIMUM_CONCURRENCY: maxConcurrency };
}

function hideUpTo({ hideUpTo, alwaysHide = false }: WaitingProps, refusals: string[]): string {
  if (alwaysHide && hideUpTo !== undefined) {
    refusals.push('hideUpTo and alwaysHide (HIDE_UP_TO) are both set; leave one of them out');
  }
  const number = wholeNumber('hideUpTo (HIDE_UP_TO)', hideUpTo ?? 50_000, refusals, HIDE_UP_TO);
  if (isOutside(number, 0, 55_000)) {
    refusals.push(`hideUpTo (HIDE_UP_TO) is ${number}; ${HIDE_UP_TO}`);
  }
  return alwaysHide ? 'always' : number;
}
