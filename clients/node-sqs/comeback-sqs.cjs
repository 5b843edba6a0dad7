'use strict';
// Backoff, jitter and dead-letters for the individual messages that a Lambda function reads from an SQS queue. Needs
// Node.js 20 and, if a message fails, the AWS SDK that comes with Lambda's runtime. ES modules can import this CommonJS
// module too.

// Durations are in seconds. SQS cannot hide a message for longer than 12 hours after it is received.
const LONGEST_BACKOFF = 43_170;
// The longest time to hide a message after its second or any later receive. SQS reports only the time of the first
// receive. A throttled poller may have held the message for 1,230 s of SQS's 12 hours.
const LONGEST_LATER_HIDING = 41_940;
const LONGEST_AGE = 1_209_600;
const MAX_BACKOFF = 3_600;
// While a message is hidden, a FIFO queue does not deliver other messages from the same group.
const FIFO_MAX_BACKOFF = 60;
// A requested wait is lengthened by up to a tenth, so that messages do not all become visible at the same time.
const SPREAD = 0.1;
// SQS limits a message, including its attributes, to 1 MiB.
const MOST_BYTES = 1_048_576;
const MOST_ATTRIBUTES = 10;
const MOST_ENTRIES = 10;
const ATTRIBUTE_CHARACTERS = 256;
const ERROR_CHARACTERS = 8_192;
const MOST_CAUSES = 16;
const LONGEST_TIMEOUT = 900_000; // Lambda's maximum
const MORE_TIME = "raise the function's timeout, or lower the batch size";
const NEVER_RUN = 'the function of a consumer must not be a generator: nothing would run it';
const UNRUN =
  'the function of a consumer returned what nobody runs or awaits: a function, an iterator or promises';
const NOT_SQS = '; comeback-sqs is for functions behind an SQS event source mapping';
// Domains of the AWS partitions that do not use amazonaws.com, from AWS's endpoint rules.
const SUFFIXES = {
  'aws-cn': 'amazonaws.com.cn',
  'aws-eusc': 'amazonaws.eu',
  'aws-iso': 'c2s.ic.gov',
  'aws-iso-b': 'sc2s.sgov.gov',
  'aws-iso-e': 'cloud.adc-e.uk',
  'aws-iso-f': 'csp.hci.ic.gov',
};
// The grammar of a requested wait.
const WAIT_CHARACTERS = 64;
const DECIMAL = String.raw`\d+(?:[.,]\d+)?`;
const UNITS = { d: 86_400, h: 3_600, m: 60, s: 1, ms: 0.001 };
const ISO_DAYS = { W: 604_800, D: 86_400 };
const ISO_TIME = { H: 3_600, M: 60, S: 1 };
const NOT_A_WAIT = { ignored: 'it does not begin with a duration or a date' };
const YEARS_OR_MONTHS = { ignored: 'years and months have no fixed length (minutes are a lower-case m)' };
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
const NUMERIC_ZONE = String.raw`[+-]\d\d(?::?\d\d)?`;
const DATES = [
  String.raw`(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[Tt ](?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d))?(?:[.,](?<fraction>\d+))?(?<zone>[Zz]|${NUMERIC_ZONE})`,
  String.raw`(?<weekday>[A-Z][a-z]{2}), (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) ${TIME} (?<zone>GMT|UTC|${NUMERIC_ZONE})`,
  String.raw`(?<weekday>[A-Z][a-z]+day), (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) ${TIME} (?<zone>GMT|UTC|${NUMERIC_ZONE})`,
  String.raw`(?<weekday>[A-Z][a-z]{2}) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) ${TIME} (?<year>\d{4})(?<zone> GMT| UTC| ${NUMERIC_ZONE})?`,
].map((form) => new RegExp(`^${form}$`));

const REASONS = ['max_retries', 'max_age', 'non_retryable_error'];

/** Throw this error to choose when the message is retried, instead of using the ordinary backoff. */
class RetryAfter extends Error {
  constructor(when, text) {
    super(text === undefined ? moment(when) : `${moment(when)}; ${words(text)}`);
    this.name = 'RetryAfter'; // spelled out, because bundlers rename classes
  }
}

/** Throw this error to dead-letter the message without a retry. */
class NonRetryable extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'NonRetryable';
  }
}

/** Turns a function that handles one record into a Lambda handler for an SQS event source mapping. */
function consumer(options, handler) {
  const policy = new Policy(options ?? {});
  if (typeof handler !== 'function') throw new TypeError('consumer takes its options, then a function');
  if (isGenerator(handler)) throw new TypeError(NEVER_RUN);
  return async (event, context) => {
    checkEvent(event);
    return new Batch(policy, handler, event, context).handle();
  };
}

class Policy {
  constructor({
    baseBackoff = 10,
    maxBackoff,
    jitter = 'full',
    maxAge = '14d',
    maxReceives,
    deadLetterQueueUrl,
    concurrency = 1,
    ...others
  }) {
    const problems = Object.keys(others).map((name) => `${name} is not an option`);
    const seconds = (name, value, least, most) => {
      const read = optionSeconds(value);
      if (read !== undefined && read >= least && read <= most) return read;
      problems.push(
        `${name} is ${shown(value)}; it must be ${least} s to ${most} s, as a number or text such as '15m'`,
      );
      return undefined;
    };
    const number = (name, value) => {
      if (Number.isInteger(value) && value >= 1 && value <= 1_000) return;
      problems.push(`${name} is ${shown(value)}; it must be a whole number from 1 to 1000`);
    };
    this.maxBackoff =
      maxBackoff === undefined ? undefined : seconds('maxBackoff', maxBackoff, 1, LONGEST_BACKOFF);
    this.baseBackoff = seconds('baseBackoff', baseBackoff, 1, this.maxBackoff ?? MAX_BACKOFF);
    this.maxAge = seconds('maxAge', maxAge, 60, LONGEST_AGE);
    if (!['full', 'equal', 'none'].includes(jitter))
      problems.push(`jitter is ${shown(jitter)}; it must be 'full', 'equal' or 'none'`);
    if (maxReceives !== undefined) number('maxReceives', maxReceives);
    number('concurrency', concurrency);
    const isUrl =
      typeof deadLetterQueueUrl === 'string' && /^https?:\/\/[^/\s]+\/\S+$/.test(deadLetterQueueUrl);
    if (deadLetterQueueUrl !== undefined && !isUrl)
      problems.push(`deadLetterQueueUrl is ${shown(deadLetterQueueUrl)}; it must be the URL of an SQS queue`);
    const elsewhere = isUrl && otherRegion(deadLetterQueueUrl);
    if (elsewhere)
      problems.push(`deadLetterQueueUrl is in ${elsewhere}; it must be in the function's region`);
    if (problems.length > 0) throw new RangeError(problems.join('; '));
    Object.assign(this, { jitter, maxReceives, deadLetterQueueUrl, concurrency });
  }

  cap(fifo) {
    return this.maxBackoff ?? (fifo ? Math.max(this.baseBackoff, FIFO_MAX_BACKOFF) : MAX_BACKOFF);
  }

  /** Draws a backoff in whole seconds. */
  draw(receives, fifo) {
    const ceiling = Math.min(this.cap(fifo), this.baseBackoff * 2 ** (receives - 1));
    const least = { full: 1, equal: Math.ceil(ceiling / 2), none: ceiling }[this.jitter];
    return least + Math.floor(Math.random() * (ceiling - least + 1));
  }

  /** Returns the reason not to retry a failed message; undefined if it may be retried. Does not check its age. */
  ends(message, { type, asks }) {
    if (['NonRetryable', 'NonRetriable', 'NeverRetry'].includes(asks))
      return { reason: 'non_retryable_error', detail: `${type} forbids retries` };
    if (this.maxReceives !== undefined && message.receives >= this.maxReceives) {
      const detail = `received ${message.receives} times; maxReceives is ${this.maxReceives}`;
      return { reason: 'max_retries', detail };
    }
    return undefined;
  }

  tooOld(message) {
    return { reason: 'max_age', detail: `sent at ${rfc3339(message.sent)}; maxAge is ${this.maxAge} s` };
  }

  /**
   * Returns when to retry a message that fails now, and the rule that set this time. `due` is undefined if the
   * message is too old.
   */
  due(message, asked, now, fifo) {
    const dueBy = asked === undefined ? 'policy' : 'retry_after';
    const due =
      asked === undefined
        ? now + this.draw(message.receives, fifo) * 1_000
        : asked + (asked - now) * SPREAD * Math.random();
    // The last receive is due shortly before the message reaches `maxAge`, so that the function has time to run.
    const margin = Math.min(60, this.maxAge / 10) * 1_000;
    const last = message.sent + this.maxAge * 1_000 - margin;
    if (due <= last) return { due, dueBy };
    return { due: last >= now + margin ? last : undefined, dueBy };
  }
}

class Message {
  settled = false; // succeeded, or accepted by the dead-letter queue
  due; // when the message returns; 0: at once; undefined: after the queue's visibility timeout
  applied = false; // SQS has hidden or deleted the message

  constructor(record, fifo, now) {
    const attributes = record.attributes ?? {};
    const number = (name, otherwise) =>
      /^\d{1,13}$/.test(attributes[name]) ? Number(attributes[name]) : otherwise;
    this.record = record;
    this.id = record.messageId;
    this.receives = Math.max(1, number('ApproximateReceiveCount', 1));
    this.sent = number('SentTimestamp', now);
    this.firstReceive = number('ApproximateFirstReceiveTimestamp', now);
    // Undefined on a standard queue, where groups do not order messages.
    this.group = fifo ? attributes.MessageGroupId : undefined;
  }

  /** Returns the visibility timeout to set, in seconds. */
  hiding(now) {
    if (this.due === 0) return 0;
    const held = Math.ceil(Math.max(0, now - this.firstReceive) / 1_000);
    const longest = this.receives > 1 ? LONGEST_LATER_HIDING : Math.max(1, LONGEST_BACKOFF - held);
    return Math.min(longest, Math.max(1, Math.ceil(Math.round(this.due - now) / 1_000)));
  }
}

class Batch {
  started = false;

  constructor(policy, handler, event, context) {
    Object.assign(this, { policy, handler, context });
    this.functionArn = context?.invokedFunctionArn ?? '';
    this.records = event.Records;
    this.queueArn = String(this.records[0]?.eventSourceARN ?? '');
    this.fifo = this.queueArn.endsWith('.fifo');
    // The last part of the function's time is reserved for hiding and dead-lettering failed messages.
    const timeLeft = this.timeLeft();
    this.reserve = Math.min(5_000, timeLeft / 10);
    this.untilReserve = timeLeft - this.reserve;
  }

  /** Returns the milliseconds left until Lambda's timeout. Without a context, returns Lambda's maximum timeout. */
  timeLeft() {
    return this.context?.getRemainingTimeInMillis?.() ?? LONGEST_TIMEOUT;
  }

  async handle() {
    if (!this.records.every(({ messageId }) => typeof messageId === 'string' && messageId !== '')) {
      log('ERROR', {
        action: 'keep',
        problem: 'a record has no messageId, so none of the batch was run',
      });
      return { batchItemFailures: [{ itemIdentifier: '' }] }; // an empty identifier makes Lambda keep the whole batch
    }
    const messages = this.records.map((record) => new Message(record, this.fifo, Date.now()));
    let early;
    const settleEarly = () => {
      early = this.settleEarly(messages);
    };
    // With a single record, a timeout cannot affect others.
    const timer = messages.length > 1 ? setTimeout(settleEarly, this.untilReserve) : undefined;
    if (this.policy.concurrency === 1) {
      await this.runInOrder(messages);
    } else {
      const lanes = lanesOf(messages);
      await Promise.all(Array.from({ length: this.policy.concurrency }, () => this.runLanes(lanes)));
    }
    clearTimeout(timer);
    await early;
    await this.hide(messages);
    const kept = messages.filter(({ settled }) => !settled);
    return { batchItemFailures: kept.map(({ id }) => ({ itemIdentifier: id })) };
  }

  /**
   * Hides or deletes the messages with a known outcome, shortly before Lambda's timeout. The response still waits for
   * the other records. Otherwise, the function would continue to process them during the next invocation.
   */
  async settleEarly(messages) {
    const running = messages.filter(({ settled, due }) => !settled && due === undefined).length;
    const problem = `records not done when the function's time was nearly up: ${running}`;
    log('WARN', { action: 'keep', problem, remedy: MORE_TIME });
    await this.hide(messages);
    await this.delete(messages);
  }

  async runLanes(lanes) {
    for (let lane = lanes.shift(); lane !== undefined; lane = lanes.shift()) await this.runInOrder(lane);
  }

  async runInOrder(messages) {
    const blocked = new Set();
    for (const message of messages) {
      if (blocked.has(message.group)) {
        message.due = 0; // comes back at once, even if no time is left
      } else if (this.hasTime() && !(await this.settles(message)) && message.group !== undefined) {
        blocked.add(message.group);
      }
    }
  }

  hasTime() {
    if (this.started && this.timeLeft() <= this.reserve) return false;
    this.started = true; // the first record always starts
    return true;
  }

  /**
   * Returns how long a call to SQS may take, in milliseconds. The call must end before the function's timeout, with a
   * fifth of `reserve` to spare. After a timeout, Lambda would deliver the whole batch again.
   */
  timeForACall() {
    return Math.max(0, Math.floor(this.timeLeft() - this.reserve / 5));
  }

  /** Runs the function for a message. Returns true if it succeeded, or if the message was dead-lettered. */
  async settles(message) {
    try {
      // The handler gets a copy of the record: functions often replace the body, but a dead-letter needs the record as
      // received.
      const result = await this.handler({ ...redriven(message.record) }, this.context);
      if (isGenerator(result)) throw new TypeError(NEVER_RUN); // a wrapper hid the generator when the consumer was made
      if ((Array.isArray(result) ? result : [result]).some(isUnrun)) throw new TypeError(UNRUN);
      message.settled = true;
    } catch (error) {
      try {
        await this.fail(message, error);
      } catch (unreported) {
        // The message is kept, and returns after the queue's own visibility timeout.
        const problem = `its failure could not be reported: ${nameOf(unreported)}`;
        log('ERROR', { message_id: message.id, action: 'keep', problem });
      }
    }
    return message.settled;
  }

  async fail(message, thrown) {
    const now = Date.now();
    const error = described(thrown);
    const line = {
      message_id: message.id,
      target: this.functionArn || undefined,
      retry: message.receives,
      error_type: error.type,
      error_message: error.message,
      stack_trace: error.stack,
    };
    const { moment, ignored } = asked(error, now);
    line.retry_after_ignored = ignored;
    const { due, dueBy } = this.policy.due(message, moment, now, this.fifo);
    const end =
      this.policy.ends(message, error) ?? (due === undefined ? this.policy.tooOld(message) : undefined);
    if (end === undefined) {
      message.due = due;
      log(ignored === undefined ? 'INFO' : 'WARN', {
        action: 'defer',
        due: rfc3339(due),
        due_by: dueBy,
        ...line,
      });
      return;
    }
    Object.assign(line, { action: 'dead_letter', ...end });
    const { problem, remedy } = await this.deadLetter(message, error, end, now);
    message.settled = problem === undefined;
    if (message.settled) {
      log('WARN', line);
      return;
    }
    const { deadLetterQueueUrl } = this.policy;
    const backoff =
      deadLetterQueueUrl === undefined
        ? this.policy.cap(this.fifo)
        : this.policy.draw(message.receives, this.fifo);
    message.due = now + backoff * 1_000;
    log('ERROR', { due: rfc3339(message.due), problem, remedy, ...line });
  }

  /** Dead-letters a message, or returns the problem and its remedy. */
  async deadLetter(message, error, end, now) {
    const url = this.policy.deadLetterQueueUrl;
    if (url === undefined) {
      const remedy = 'set deadLetterQueueUrl, or give the queue a redrive policy';
      return { problem: 'nothing ends its retries', remedy };
    }
    if (url.split('/').slice(-2).join() === this.queueArn.split(':').slice(-2).join())
      return { problem: 'deadLetterQueueUrl is the queue itself', remedy: 'set another queue' };
    const time = this.timeForACall();
    if (time === 0) return { problem: 'no time was left to send it', remedy: MORE_TIME };
    try {
      const call = {
        QueueUrl: url,
        ...deadLetter(message, error, end, this.functionArn, now),
      };
      if (url.endsWith('.fifo'))
        Object.assign(call, {
          MessageGroupId: message.group ?? message.id,
          MessageDeduplicationId: message.id,
        });
      const answer = await sqs(this.queueArn).send('SendMessage', call, time);
      return answer.MessageId ? {} : { problem: 'SQS did not say that it has the dead-letter' };
    } catch (refused) {
      return problemOf(refused, 'sqs:SendMessage', url);
    }
  }

  /** Hides each failed message until its retry is due. */
  hide(messages) {
    const failed = messages.filter(({ settled, due, applied }) => !settled && due !== undefined && !applied);
    const hiding = (message, now) => ({ VisibilityTimeout: message.hiding(now) });
    return this.apply('ChangeMessageVisibility', 'hide', failed, hiding);
  }

  /** Deletes the settled messages, as the event source mapping does at the end of a batch. */
  delete(messages) {
    const done = messages.filter(({ settled, applied }) => settled && !applied);
    return this.apply('DeleteMessage', 'delete', done, () => ({}));
  }

  /** Hides or deletes messages, in calls of at most ten messages each. */
  async apply(action, verb, messages, more) {
    for (let start = 0; start < messages.length; start += MOST_ENTRIES) {
      const time = this.timeForACall();
      if (time === 0) {
        const problem = `messages that no time was left to ${verb}: ${messages.length - start}`;
        log('ERROR', { action: 'keep', problem, remedy: MORE_TIME });
        return;
      }
      const part = messages.slice(start, start + MOST_ENTRIES);
      const now = Date.now();
      const Entries = part.map((message, index) => ({
        Id: String(index),
        ReceiptHandle: message.record.receiptHandle,
        ...more(message, now),
      }));
      const call = { QueueUrl: queueUrl(this.queueArn), Entries };
      // If the response is truncated, this problem remains for each message that is missing from it.
      let said = part.map(() => ({ problem: `SQS did not say that it would ${verb} it` }));
      try {
        const { Successful, Failed } = await sqs(this.queueArn).send(`${action}Batch`, call, time);
        for (const { Id } of Successful ?? []) said[Number(Id)] = undefined;
        for (const { Id, Code, Message } of Failed ?? [])
          said[Number(Id)] = { problem: `SQS refused to ${verb} it: ${Code}: ${Message}` };
      } catch (refused) {
        said = part.map(() => problemOf(refused, `sqs:${action}`, this.queueArn));
      }
      part.forEach((message, index) => {
        message.applied = said[index] === undefined;
        if (!message.applied) log('ERROR', { message_id: message.id, action: 'keep', ...said[index] });
      });
    }
  }
}

/** Refuses an event that is not from SQS. */
function checkEvent(event) {
  const isObject = (it) => typeof it === 'object' && it !== null && !Array.isArray(it);
  let problem;
  if (!isObject(event)) problem = 'it is not an object';
  else if (!Array.isArray(event.Records)) problem = 'it has no list of Records';
  else
    problem = event.Records.map((record) =>
      isObject(record) ? foreign(record) : 'a record is not an object',
    ).find((it) => it !== undefined);
  if (problem !== undefined) throw new TypeError(`not an SQS event: ${problem}${NOT_SQS}`);
}

/** Returns the problem with a record that is not from SQS, or undefined if the record is from SQS. */
function foreign({ eventSource, EventSource, messageId, eventSourceARN }) {
  const source = eventSource ?? EventSource;
  if (source === undefined || source === null)
    return messageId !== undefined || String(eventSourceARN).includes(':sqs:')
      ? undefined
      : 'a record has no eventSource';
  return source === 'aws:sqs' ? undefined : `a record is from ${words(source).slice(0, WAIT_CHARACTERS)}`;
}

/**
 * Returns true for a result that still has to be run or awaited. An iterator that can be closed, such as a file, does
 * not count.
 */
function isUnrun(it) {
  if (typeof it !== 'object' || it === null) return typeof it === 'function';
  const isIterator = (Symbol.iterator in it || Symbol.asyncIterator in it) && typeof it.next === 'function';
  return typeof it.then === 'function' || (isIterator && typeof it.close !== 'function');
}

function isGenerator(it) {
  return /Generator(Function)?\]$/.test(Object.prototype.toString.call(it));
}

/** Splits the messages into one list for each FIFO group or ungrouped message. The lists are processed concurrently. */
function lanesOf(messages) {
  const lanes = new Map();
  for (const message of messages) {
    const lane = message.group ?? message.id;
    if (!lanes.has(lane)) lanes.set(lane, []);
    lanes.get(lane).push(message);
  }
  return [...lanes.values()];
}

/** Returns the record, with its original body if it is a redriven dead-letter. */
function redriven(record) {
  if (typeof record.body !== 'string' || !record.body.startsWith('{"reason":')) return record;
  try {
    const dead = JSON.parse(record.body);
    const ours =
      REASONS.includes(dead.reason) && 'dead_lettered_at' in dead && typeof dead.payload === 'string';
    return ours ? { ...record, body: dead.payload } : record;
  } catch {
    return record;
  }
}

/** Returns the body and attributes of a dead-letter. If they are too large for SQS, the body is the received one. */
function deadLetter(message, error, { reason, detail }, functionArn, now) {
  const received = String(message.record.body ?? '');
  const written = (errorMessage) =>
    JSON.stringify({
      reason,
      detail,
      function_arn: functionArn,
      retries_made: message.receives - 1,
      initial_timestamp: Math.floor(message.sent / 1_000),
      dead_lettered_at: Math.floor(now / 1_000),
      origin_request_id: message.id,
      error: { type: error.type, message: errorMessage },
      payload: redriven(message.record).body ?? '',
    }).replace(/[\ufffe\uffff]/g, (it) => `\\u${it.charCodeAt(0).toString(16)}`);
  const ours = {
    Reason: text(reason),
    ...(functionArn === '' ? {} : { TargetFunction: text(functionArn) }),
    RetriesMade: { DataType: 'Number', StringValue: String(message.receives - 1) },
    ...(error.type === '' ? {} : { ErrorType: text(error.type) }),
  };
  const attributes = { ...ours, ...ownAttributes(message.record, ours) };
  const beside = besideOf(message.record);
  for (const errorText of [error.message, '']) {
    const body = written(errorText);
    if (size(body, attributes) <= MOST_BYTES)
      return { MessageBody: body, MessageAttributes: attributes, ...beside };
  }
  const least = { Reason: text(reason) };
  if (size(received, least) <= MOST_BYTES)
    return { MessageBody: received, MessageAttributes: least, ...beside };
  return { MessageBody: received, ...beside };
}

/** Returns a message's group and trace header, as parameters of `SendMessage`. */
function besideOf({ attributes }) {
  const { MessageGroupId, AWSTraceHeader } = attributes ?? {};
  const trace = { AWSTraceHeader: { DataType: 'String', StringValue: AWSTraceHeader } };
  return {
    ...(MessageGroupId ? { MessageGroupId } : {}),
    ...(AWSTraceHeader ? { MessageSystemAttributes: trace } : {}),
  };
}

/** Returns as many of the message's own attributes as fit beside `ours`. */
function ownAttributes(record, ours) {
  const given = Object.entries(record.messageAttributes ?? {}).sort();
  const own = given.flatMap(([name, value]) => {
    const { dataType: DataType = 'String', binaryValue, stringValue } = value;
    if (Object.hasOwn(ours, name)) return [];
    if (binaryValue) return [[name, { DataType, BinaryValue: Buffer.from(binaryValue, 'base64') }]];
    return stringValue ? [[name, { DataType, StringValue: stringValue }]] : [];
  });
  return Object.fromEntries(own.slice(0, MOST_ATTRIBUTES - Object.keys(ours).length));
}

function text(value) {
  // SQS refuses characters outside these ranges (`SendMessage` in the SQS API reference).
  // eslint-disable-next-line no-control-regex
  const accepted = value.toWellFormed().replace(/[^\t\n\r\x20-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
  return { DataType: 'String', StringValue: [...accepted].slice(0, ATTRIBUTE_CHARACTERS).join('') };
}

function size(body, attributes) {
  const parts = Object.entries(attributes).flatMap(([name, it]) => [
    name,
    it.DataType,
    it.StringValue ?? it.BinaryValue,
  ]);
  return [body, ...parts].reduce((bytes, part) => bytes + Buffer.byteLength(part), 0);
}

// Parsing of errors and of the waits that they request

/**
 * Returns the type, directive, message and stack of an error, or of anything else thrown. If a property throws an error
 * when it is read, returns only the type `Error`.
 */
function described(thrown) {
  try {
    const isError = typeof thrown === 'object' && thrown !== null;
    const name = (isError ? (thrown.name ?? thrown.constructor?.name) : undefined) ?? typeof thrown;
    const type = String(name).slice(0, ERROR_CHARACTERS);
    const message = String(isError ? (thrown.message ?? '') : thrown).slice(0, ERROR_CHARACTERS);
    const stack = isError ? stackOf(thrown) : undefined;
    // An instance of a subclass counts too, whatever its class is called.
    const ours =
      (thrown instanceof RetryAfter && 'RetryAfter') || (thrown instanceof NonRetryable && 'NonRetryable');
    return { type, asks: ours || simpleName(type), message, stack };
  } catch {
    return { type: 'Error', asks: undefined, message: '', stack: undefined };
  }
}

/** Returns the stack traces of an error and its causes, each with an equal share of the log line. */
function stackOf(thrown) {
  const chain = [];
  const add = (error, title) => {
    if (typeof error !== 'object' || error === null || chain.length === MOST_CAUSES) return;
    if (chain.some((it) => it.error === error)) return;
    chain.push({ error, title });
    add(error.cause, 'cause: ');
    if (Array.isArray(error.errors)) error.errors.forEach((it) => add(it, 'error: '));
  };
  add(thrown, '');
  const share = Math.floor(ERROR_CHARACTERS / chain.length) - 1;
  const texts = chain.map(({ error, title }) => {
    const stack = String(error.stack ?? (title && `${error.name}: ${error.message}`));
    const code = typeof error.code === 'string' && !stack.includes(error.code) ? `[${error.code}] ` : '';
    return (stack && title + code + stack).slice(0, share);
  });
  return texts.join('\n') || undefined;
}

/** Returns the time that a `RetryAfter` requests, or the reason for ignoring it. */
function asked({ asks, message }, now) {
  if (asks !== 'RetryAfter') return {};
  const { wait, ignored } = requestedWait(message, now);
  if (wait > 0) return { moment: now + wait * 1_000 };
  const said = JSON.stringify(message.split(';', 1)[0].trim().slice(0, WAIT_CHARACTERS));
  return { ignored: `${said}: ${ignored ?? 'its time is not after the failure'}` };
}

/** Returns the simple name of an error type, by the retry handler's rules. */
function simpleName(errorType) {
  const name = withoutGenerics(errorType.replace(/^Function<(.*)>$/, '$1').replace(/^&+/, ''));
  // The lookbehind keeps the search fast in a name with many `$`.
  const stem = name.replace(/(?<![$\d])[$\d]+$/, '');
  const numbers = name.indexOf('$', Math.max(1, stem.length));
  const last = (numbers < 0 ? name : name.slice(0, numbers)).split(/[.$/]/).at(-1);
  return last
    .slice(last.lastIndexOf('::') < 0 ? 0 : last.lastIndexOf('::') + 2)
    .replace(/(?<=.)(Error|Exception)$/, '');
}

/** Returns the name without the `<…>` at its end, if it has one. */
function withoutGenerics(name) {
  let depth = 0;
  for (let position = name.length - 1; position >= 0; position--) {
    depth += { '>': 1, '<': -1 }[name[position]] ?? 0;
    if (depth <= 0)
      return depth === 0 && position > 0 && name[position] === '<' ? name.slice(0, position) : name;
  }
  return name;
}

/**
 * Parses a requested wait according to docs/envelope.md. Returns the seconds to wait, or the problem. `now` is in
 * epoch milliseconds.
 */
function requestedWait(message, now) {
  const text = message.split(';', 1)[0].replace(/^[ \t\n\r\f]+|[ \t\n\r\f]+$/g, '');
  if (text.length > WAIT_CHARACTERS) return NOT_A_WAIT;
  if (text.startsWith('P')) return isoDuration(text.slice(1));
  if (/^\d/.test(text) && text[4] !== '-')
    return new RegExp(`^${DECIMAL}$`).test(text) ? bareNumber(text, now / 1_000) : sum(text, UNITS);
  const moment = date(text);
  return moment === undefined ? NOT_A_WAIT : { wait: Math.max(0, (moment - now) / 1_000) };
}

function bareNumber(text, now) {
  const [whole, fraction = ''] = text.split(/[.,]/);
  const seconds = Number(whole) + (/[1-9]/.test(fraction) ? 1 : 0);
  if (seconds <= LONGEST_AGE) return { wait: seconds };
  const number = Number(text.replace(',', '.'));
  if (number < 1e9)
    return { ignored: 'its number is over 14 days of seconds, and too small for an epoch time' };
  const wait = (number < 1e12 ? number : number / 1_000) - now;
  if (wait > LONGEST_AGE) return { ignored: 'its number is an epoch time over 14 days away' };
  return { wait: Math.max(0, wait) };
}

function isoDuration(text) {
  const [days, rest] = text.split(/T(.*)/s);
  if (rest === undefined) return sum(days, ISO_DAYS);
  if (/[.,]/.test(days)) return NOT_A_WAIT;
  const parts = [...(days === '' ? [] : [sum(days, ISO_DAYS)]), sum(rest, ISO_TIME)];
  const ignored = parts.find((part) => part.ignored !== undefined);
  return ignored ?? { wait: parts.reduce((total, { wait }) => total + wait, 0) };
}

/** Adds up numbers with units, longest unit first, such as `1h 30m`. Only the last number may have a fraction. */
function sum(text, units) {
  let [total, rest, left] = [0, text, Object.keys(units)];
  for (;;) {
    const found = new RegExp(`^(${DECIMAL})[ \\t]*([A-Za-z]*)[ \\t]*`).exec(rest);
    if (found === null) return NOT_A_WAIT;
    const [all, number, unit] = found;
    if (!left.includes(unit))
      return !Object.hasOwn(units, unit) && /^([yYM]|mo)/.test(unit) ? YEARS_OR_MONTHS : NOT_A_WAIT;
    total += Number(number.replace(',', '.')) * units[unit];
    rest = rest.slice(all.length);
    left = left.slice(left.indexOf(unit) + 1);
    if (rest === '') return { wait: total };
    if (!/^\d+$/.test(number)) return NOT_A_WAIT;
  }
}

/** Parses an RFC 3339 time or an HTTP date into epoch milliseconds. */
function date(text) {
  const found = DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (found === undefined) return undefined;
  const { weekday, day, hour, minute, fraction = '0', zone } = found;
  // As in the handler, 60 is a leap second in a time of RFC 3339, but not in an HTTP date.
  const second = weekday === undefined && found.second === '60' ? '59' : (found.second ?? '0');
  const month = /\d/.test(found.month) ? Number(found.month) : MONTHS.indexOf(found.month) + 1;
  let year = Number(found.year);
  if (found.year.length === 2) year += year < 70 ? 2_000 : 1_900;
  const at = new Date(0);
  at.setUTCFullYear(year, month - 1, Number(day));
  at.setUTCHours(Number(hour), Number(minute), Number(second));
  // `Date` turns 31 February into a day in March. Such dates are refused.
  const carried = at.getUTCMonth() !== month - 1 || at.getUTCDate() !== Number(day);
  const late = Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59;
  const wrongDay = weekday !== undefined && weekday.slice(0, 3) !== DAYS[at.getUTCDay()];
  const offset = offsetOf(zone?.trim());
  if (year < 1970 || carried || late || wrongDay || offset === undefined) return undefined;
  return at.getTime() + Number(`0.${fraction}`) * 1_000 - offset;
}

/** Returns a time zone's offset from UTC in milliseconds, positive to the east. */
function offsetOf(zone) {
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined;
  return (sign === '-' ? -60_000 : 60_000) * (Number(hours) * 60 + Number(minutes));
}

/** Returns an option's duration in whole seconds; undefined if the value is not a duration. */
function optionSeconds(value) {
  // The sum is rounded, because 1.1 · 3600 is not a whole number in floating point.
  const read = (text) => (/^\d+$/.test(text) ? Number(text) : Number(sum(text, UNITS).wait?.toFixed(9)));
  const seconds = typeof value === 'string' ? read(value) : value;
  return Number.isInteger(seconds) ? seconds : undefined;
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

function shown(value) {
  return typeof value === 'string' ? JSON.stringify(value) : words(value);
}

// Calls to AWS, and the log

const clients = new Map();

function loaded() {
  try {
    return require('@aws-sdk/client-sqs');
  } catch {
    // If the bundle is an ES module, there is no `require`.
    const { createRequire } = process.getBuiltinModule('module');
    return createRequire(`${process.cwd()}/`)('@aws-sdk/client-sqs');
  }
}

/**
 * Returns the SQS client for the queue's region. The first call also loads the SDK, which can take longer than running
 * the function.
 */
function sqs(queueArn) {
  const region = queueArn.split(':')[3] || undefined;
  if (!clients.has(region)) {
    const sdk = loaded();
    // The timeouts are short, because calls are made shortly before the function times out.
    const timeouts = { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true };
    // The URL only identifies the queue. The SDK decides where to send the call.
    const client = new sdk.SQSClient({
      region,
      maxAttempts: 2,
      requestHandler: timeouts,
      useQueueUrlAsEndpoint: false,
    });
    const send = (name, call, time) =>
      client.send(new sdk[`${name}Command`](call), { abortSignal: AbortSignal.timeout(time) });
    clients.set(region, { send });
  }
  return clients.get(region);
}

function queueUrl(queueArn) {
  const [, partition, , region = '', account = '', name = ''] = queueArn.split(':');
  return `https://sqs.${region}.${SUFFIXES[partition] ?? 'amazonaws.com'}/${account}/${name}`;
}

/**
 * Returns a queue's region if it differs from the function's region; undefined otherwise. Calls go to the function's
 * region, where another queue may have the same name.
 */
function otherRegion(url) {
  const [, one, other] =
    /^https?:\/\/(?:sqs(?:-fips)?\.([a-z]+(?:-[a-z]+)+-\d+)|([a-z0-9-]+)\.queue)\./.exec(url) ?? [];
  const [region, ours] = [one ?? other, process.env.AWS_REGION];
  return ours && region !== ours ? region : undefined;
}

/** Returns the name of an error, or of anything else thrown. */
function nameOf(error) {
  try {
    return String(error?.name === 'Error' ? error.message : (error?.name ?? error)).slice(
      0,
      ERROR_CHARACTERS,
    );
  } catch {
    return 'an unprintable error';
  }
}

function problemOf(error, action, resource) {
  const code = nameOf(error);
  // For an encrypted queue, SQS passes on errors from KMS.
  const needed = /^kms/i.test(code) ? 'kms:GenerateDataKey and kms:Decrypt' : action;
  const remedy = code.includes('AccessDenied') ? `allow ${needed} in the function's role` : undefined;
  return { problem: `${action} on ${resource}: ${code}`, remedy };
}

function log(level, line) {
  const timestamp = new Date().toISOString();
  // Lambda reformats what `console.log` prints, so the line goes to standard output directly.
  process.stdout.write(`${JSON.stringify({ timestamp, level, v: 1, ...line })}\n`);
}

function rfc3339(millis) {
  return new Date(Math.round(millis)).toISOString();
}

module.exports = { NonRetryable, RetryAfter, consumer };
