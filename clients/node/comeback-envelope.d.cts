/** An event out of its envelope. */
export interface Opened<Payload = unknown> {
  payload: Payload;
  /** 0 on the first invocation, 1 on the first retry. */
  attempt: number;
  /** The same on every attempt: an idempotency key. */
  key: string;
}

/**
 * The payload, the number of the attempt and the idempotency key of what a handler received.
 *
 * @param event what the handler received
 * @param requestId `context.awsRequestId`
 * @throws Error if the envelope is malformed. Let it fail the invocation: the event is then dead-lettered as
 * `malformed_envelope`.
 */
export function openEvent<Payload = unknown>(event: unknown, requestId: string): Opened<Payload>;

/** A middleware of middy, which opens each event before the handler, so that the handler's event is an {@link Opened}. */
export function opened(): {
  before(request: { event: unknown; context: { awsRequestId: string } }): void;
};

/** Throw it to have the event retried then, instead of after the ordinary backoff. */
export class RetryAfter extends Error {
  /**
   * @param when a wait in seconds from the failure on, or a moment
   * @param text for people
   * @throws RangeError for a wait of no time, and for a date that is none
   */
  constructor(when: number | Date, text?: string);
  readonly name: 'RetryAfter';
}

/** Throw it if no retry can help: the event is dead-lettered, with this error's message. */
export class NonRetryable extends Error {
  constructor(message?: string, options?: { cause?: unknown });
  readonly name: 'NonRetryable';
}
