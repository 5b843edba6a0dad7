'use strict';
// Opens events that Comeback retries, and says how to be retried. Needs only Node.js 20. It is CommonJS, which both
// CommonJS and ECMAScript modules can load.

/** Throw it to set when the event is retried, instead of the ordinary backoff. */
class RetryAfter extends Error {
  constructor(when, text) {
    super(text === undefined ? moment(when) : `${moment(when)}; ${text}`);
    this.name = 'RetryAfter'; // spelled out, because bundlers rename classes
  }
}

/** Throw it if no retry can help. The event is dead-lettered with this error's message. */
class NonRetryable extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'NonRetryable';
  }
}

/** Opens what a handler received: the payload, the attempt number and the idempotency key. */
function openEvent(event, requestId) {
  if (!has(event, '_retry_metadata')) {
    return { payload: event, attempt: 0, key: requestId }; // the first invocation
  }
  const { _retry_metadata: metadata, ...rest } = event;
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata);
  check(isObject, '_retry_metadata is not an object');
  const { attempt, initial_timestamp: since, style } = metadata;
  const key = metadata.origin_request_id ?? requestId;
  check(Number.isInteger(attempt) && attempt >= 1, 'attempt is not an integer of at least 1');
  check(Number.isInteger(since) && since >= 0, 'initial_timestamp is not an integer of at least 0');
  check(typeof key === 'string' && key !== '', 'origin_request_id is not a string that is not empty');
  check([undefined, null, 'wrap', 'inline'].includes(style), 'style is neither wrap nor inline');
  if (style === 'inline') return { payload: rest, attempt, key };
  check(has(rest, '_original_payload'), '_original_payload is missing');
  check(Object.keys(rest).length === 1, 'another key stands beside _original_payload');
  const payload = rest._original_payload;
  check(!has(payload, '_retry_metadata'), '_original_payload is itself an envelope');
  return { payload, attempt, key };
}

/** Middleware for middy that opens each event, so that the handler receives `{ payload, attempt, key }`. */
function opened() {
  return {
    before(request) {
      request.event = openEvent(request.event, request.context.awsRequestId);
    },
  };
}

/** The time in the form that the retry handler reads: whole seconds, or RFC 3339. */
function moment(when) {
  // Not `instanceof`: a date may come from another context, as in Jest.
  if (Object.prototype.toString.call(when) === '[object Date]') {
    const year = when.getUTCFullYear();
    if (year >= 0 && year <= 9999) return when.toISOString();
    throw new RangeError(`RetryAfter needs a date in the years 0 to 9999, not ${when}`);
  }
  if (typeof when !== 'number')
    throw new TypeError(`RetryAfter takes seconds or a Date, not a ${typeof when}`);
  const seconds = Math.ceil(when);
  if (!(seconds > 0 && Number.isSafeInteger(seconds))) {
    throw new RangeError(`RetryAfter needs a positive wait, not ${when}`);
  }
  return String(seconds);
}

function has(value, name) {
  return Object.hasOwn(value ?? {}, name);
}

function check(holds, problem) {
  if (!holds) throw new Error(`malformed envelope: ${problem}`);
}

module.exports = { NonRetryable, RetryAfter, openEvent, opened };
