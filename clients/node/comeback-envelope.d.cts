/** An opened event. */
export interface Opened<Payload = unknown> {
  payload: Payload;
  /** The number of the attempt: 0 on the first invocation, 1 on the first retry. */
  attempt: number;
  /** An idempotency key, which is the same on every attempt. */
  key: string;
}

/**
 * Opens the event that a handler received. Returns the payload, the attempt number and the idempotency key.
 *
 * @param event the event that the handler received
 * @param requestId `context.awsRequestId`
 * @throws Error if the envelope is malformed. Let this error fail the invocation: the retry handler then dead-letters
 * the event as `malformed_envelope`.
 */
export function openEvent<Payload = unknown>(event: unknown, requestId: string): Opened<Payload>;

/** Middleware for middy that opens each event, so that the handler receives an {@link Opened}. */
export function opened(): {
  before(request: { event: unknown; context: { awsRequestId: string } }): void;
};

/**
 * Throw this error to choose when the event is retried, instead of using the ordinary backoff. The constructor never
 * throws. The handler ignores a value that is not a wait, logs the reason, and retries with the ordinary backoff.
 */
export class RetryAfter extends Error {
  /**
   * @param when the seconds to wait, counted from the failure; a date; or a string such as an HTTP `Retry-After` header
   * @param text an explanation for people
   */
  constructor(when: number | bigint | Date | string, text?: string);
  readonly name: 'RetryAfter';
}

/** Throw this error if no retry can help. The event is dead-lettered with this error's message. */
export class NonRetryable extends Error {
  constructor(message?: string, options?: { cause?: unknown });
  readonly name: 'NonRetryable';
}
