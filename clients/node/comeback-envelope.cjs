'use strict';
// Opens events that Comeback retries, and exports the errors that control a retry. Needs only Node.js 20. ES modules
// can import this CommonJS module too.

/** Throw this error to choose when the event is retried, instead of using the ordinary backoff. */
class RetryAfter extends Error {
  constructor(when, text) {
    super(text === undefined ? moment(when) : `${moment(when)}; ${words(text)}`);
    this.name = 'RetryAfter'; // spelled out, because bundlers rename classes
  }
}

/** Throw this error to dead-letter the event, with this error's message, instead of retrying it. */
class NonRetryable extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'NonRetryable';
  }
}

/** Returns the payload, the attempt number and the idempotency key of the event that a handler received. */
function openEvent(event, requestId) {
  if (!has(event, '_retry_metadata')) {
    return { payload: event, attempt: 0, key: requestId }; // this is the first invocation
  }
  const { _retry_metadata: metadata, ...rest } = event;
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata);
  check(isObject, '_retry_metadata is not an object');
  const { attempt, initial_timestamp: since, style } = metadata;
  const key = metadata.origin_request_id ?? requestId;
  check(isInteger(attempt) && attempt >= 1, 'attempt is not an integer of at least 1');
  check(isInteger(since) && since >= 0, 'initial_timestamp is not an integer of at least 0');
  // A key with a lone surrogate is refused, because no other system could store it.
  check(
    typeof key === 'string' && key !== '' && key.isWellFormed(),
    'origin_request_id is not a string that is not empty',
  );
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

/** Formats a number as whole seconds, or a `Date` in RFC 3339. Never throws: anything else becomes a string. */
function moment(when) {
  // `instanceof` is not used, because a date may come from another JavaScript context, as in Jest.
  if (Object.prototype.toString.call(when) === '[object Date]') {
    const text = words(when);
    try {
      const year = when.getUTCFullYear();
      return year >= 0 && year <= 9999 ? when.toISOString() : text;
    } catch {
      return text; // The value only looks like a date.
    }
  }
  const number = typeof when === 'bigint' ? when : typeof when === 'number' ? Math.ceil(when) + 0 : NaN;
  // A wait of over 14 days gets a unit. Without one, the number could be taken for a date.
  if (number > 1_209_600 && number < 1e9) return `${number}s`;
  // A larger number would be written with an exponent.
  return Number.isSafeInteger(number) ? `${number}` : words(when);
}

function words(thing) {
  try {
    return String(thing);
  } catch {
    return `an unprintable ${typeof thing}`;
  }
}

/** Returns true for an integer of at most 2⁶⁴. The actual maximum, 2⁶⁴ − 1, becomes 2⁶⁴ when parsed as a double. */
function isInteger(number) {
  return Number.isInteger(number) && number <= 2 ** 64;
}

function has(value, name) {
  return Object.hasOwn(value ?? {}, name);
}

function check(holds, problem) {
  if (!holds) throw new Error(`malformed envelope: ${problem}`);
}

module.exports = { NonRetryable, RetryAfter, openEvent, opened };
