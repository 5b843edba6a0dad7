// Tests of what the shared cases leave out.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { NonRetryable, RetryAfter, consumer } from 'comeback-sqs';
import { recorded } from './support.mjs';

/** The retry handler's settings; the consumer has the same defaults and limits. */
const SETTINGS = JSON.parse(readFileSync(new URL('../../../infra/src/settings.json', import.meta.url)));
const NOW = Date.parse('2026-11-26T12:00:00Z');
const QUEUE = 'arn:aws:sqs:eu-west-1:123456789012:orders';
const DEAD = 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dead';
const CONTEXT = {
  getRemainingTimeInMillis: () => 60_000,
  invokedFunctionArn: 'arn:aws:lambda:eu-west-1:123456789012:function:orders',
};

const record = (number = 0, more = {}) => ({
  messageId: `m-${number}`,
  receiptHandle: `h-${number}`,
  body: '{}',
  attributes: {
    ApproximateReceiveCount: '1',
    SentTimestamp: String(NOW),
    ApproximateFirstReceiveTimestamp: String(NOW),
  },
  eventSourceARN: QUEUE,
  ...more,
});

test('every bad option is named', () => {
  const options = {
    baseBackoff: 0,
    maxBackoff: '13h',
    jitter: 'some',
    maxAge: '1m30',
    maxReceives: 0,
    deadLetterQueueUrl: 'arn:aws:sqs:eu-west-1:1:dead',
    concurrency: 1.5,
    maxRetries: 3,
  };
  assert.throws(() => consumer(options, () => {}), {
    name: 'RangeError',
    message: [
      'maxRetries is not an option',
      'maxBackoff is "13h"; it must be 1 s to 43170 s, as a number or text such as \'15m\'',
      "baseBackoff is 0; it must be 1 s to 3600 s, as a number or text such as '15m'",
      'maxAge is "1m30"; it must be 60 s to 1209600 s, as a number or text such as \'15m\'',
      "jitter is \"some\"; it must be 'full', 'equal' or 'none'",
      'maxReceives is 0; it must be a whole number from 1 to 1000',
      'concurrency is 1.5; it must be a whole number from 1 to 1000',
      'deadLetterQueueUrl is "arn:aws:sqs:eu-west-1:1:dead"; it must be the URL of an SQS queue',
    ].join('; '),
  });
  assert.throws(() => consumer({}), { name: 'TypeError' });
  assert.throws(() => consumer({ deadLetterQueueUrl: new URL(DEAD) }, () => {}), { name: 'RangeError' });
});

test("a duration's range is the handler's", () => {
  const { BASE_BACKOFF, MAX_BACKOFF, MAX_AGE } = SETTINGS;
  for (const [option, others, { min, max }] of [
    ['baseBackoff', {}, { min: BASE_BACKOFF.min, max: MAX_BACKOFF.default }],
    ['baseBackoff', { maxBackoff: BASE_BACKOFF.max }, BASE_BACKOFF],
    ['maxBackoff', { baseBackoff: 1 }, MAX_BACKOFF],
    ['maxAge', {}, MAX_AGE],
  ]) {
    for (const value of [min, max]) consumer({ ...others, [option]: value }, () => {});
    for (const value of [min - 1, max + 1]) {
      const message = `${option} is ${value}; it must be ${min} s to ${max} s, as a number or text such as '15m'`;
      assert.throws(() => consumer({ ...others, [option]: value }, () => {}), { message });
    }
  }
});

test("the default backoff and the jitters are the handler's", async (t) => {
  const { calls } = recorded(t, NOW);
  const { BASE_BACKOFF, MAX_BACKOFF, JITTER } = SETTINGS;
  const most = async (jitter, receives) => {
    calls.length = 0;
    const attributes = { ...record().attributes, ApproximateReceiveCount: String(receives) };
    const handler = consumer(jitter ? { jitter } : {}, () => Promise.reject(new Error('no')));
    await handler({ Records: [record(0, { attributes })] }, CONTEXT);
    return calls[0][1].Entries[0].VisibilityTimeout;
  };
  t.mock.method(Math, 'random', () => 1 - 2 ** -53);
  // Decorrelated jitter needs the previous delay, which no message carries.
  for (const jitter of [undefined, ...JITTER.choices.filter((choice) => choice !== 'decorrelated')]) {
    assert.equal(await most(jitter, 1), BASE_BACKOFF.default);
    assert.equal(await most(jitter, 99), MAX_BACKOFF.default);
  }
  Math.random.mock.mockImplementation(() => 0);
  assert.equal(await most(undefined, 99), await most(JITTER.default, 99));
});

test('a function that never runs is refused', async (t) => {
  const { calls } = recorded(t, NOW);
  for (const generator of [function* () {}, async function* () {}]) {
    assert.throws(() => consumer({}, generator), { name: 'TypeError', message: /must not be a generator/ });
    const handler = consumer({}, () => generator());
    const { batchItemFailures } = await handler({ Records: [record()] }, CONTEXT);
    assert.deepEqual(batchItemFailures, [{ itemIdentifier: 'm-0' }]);
  }
  assert.equal(calls.length, 2);
});

test('no call outlasts the function', async (t) => {
  const { lines } = recorded(t, NOW);
  const limits = [];
  t.mock.method(AbortSignal, 'timeout', (limit) => {
    limits.push(limit);
    return AbortSignal.abort(Object.assign(new Error('late'), { name: 'TimeoutError' }));
  });
  const handler = consumer({ deadLetterQueueUrl: DEAD }, () => Promise.reject(new NonRetryable('no')));
  const { batchItemFailures } = await handler({ Records: [record()] }, CONTEXT);
  assert.deepEqual(batchItemFailures, [{ itemIdentifier: 'm-0' }]);
  assert.deepEqual(limits, [59_000, 59_000], 'a fifth of five seconds is kept free');
  assert.deepEqual(
    lines.map(({ problem }) => problem),
    [`sqs:SendMessage on ${DEAD}: TimeoutError`, `sqs:ChangeMessageVisibility on ${QUEUE}: TimeoutError`],
  );
});

test('draws stay in bounds and spread', async (t) => {
  const { calls } = recorded(t, NOW);
  let state = 7; // xorshift, for the same draws in every run
  t.mock.method(Math, 'random', () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  });
  for (const [jitter, least, mean] of [
    ['full', 1, 320.5],
    ['equal', 320, 480],
  ]) {
    const handler = consumer({ jitter }, () => Promise.reject(new Error('no')));
    const attributes = { ...record().attributes, ApproximateReceiveCount: '7' };
    calls.length = 0;
    await handler(
      { Records: Array.from({ length: 20_000 }, (_, number) => record(number, { attributes })) },
      CONTEXT,
    );
    const draws = calls.flatMap(([, { Entries }]) =>
      Entries.map(({ VisibilityTimeout }) => VisibilityTimeout),
    );
    assert.equal(draws.length, 20_000);
    assert.deepEqual([Math.min(...draws), Math.max(...draws)], [least, 640]);
    assert.equal(new Set(draws).size, 640 - least + 1, 'every whole second is drawn');
    assert.ok(Math.abs(draws.reduce((sum, draw) => sum + draw, 0) / draws.length - mean) < 5);
  }
});

test('a dead-letter has all fields', async (t) => {
  const { calls } = recorded(t, NOW);
  const own = Object.fromEntries(
    ['a', 'b', 'constructor', 'd', 'e'].map((name) => [name, { stringValue: 'x', dataType: 'String' }]),
  );
  const messageAttributes = {
    ...own,
    Reason: { stringValue: 'theirs', dataType: 'String' },
    zeta: { stringValue: 'the eleventh by name', dataType: 'String' },
    raw: { binaryValue: 'AP8=', dataType: 'Binary' },
  };
  const handler = consumer({ deadLetterQueueUrl: DEAD }, () => {
    throw new NonRetryable('cancelled \ud800\0\uffff');
  });
  const body = '{"n": 1E400}';
  assert.deepEqual(await handler({ Records: [record(0, { body, messageAttributes })] }, CONTEXT), {
    batchItemFailures: [],
  });
  const [[name, call]] = calls;
  assert.deepEqual([calls.length, name, call.QueueUrl], [1, 'SendMessage', DEAD]);
  assert.ok(!call.MessageBody.includes('\uffff'), 'SQS refuses it');
  assert.deepEqual(JSON.parse(call.MessageBody), {
    reason: 'non_retryable_error',
    detail: 'NonRetryable forbids retries',
    function_arn: CONTEXT.invokedFunctionArn,
    retries_made: 0,
    initial_timestamp: NOW / 1_000,
    dead_lettered_at: NOW / 1_000,
    origin_request_id: 'm-0',
    error: { type: 'NonRetryable', message: 'cancelled \ud800\0\uffff' },
    payload: body,
  });
  assert.deepEqual(Object.keys(call.MessageAttributes), [
    'Reason',
    'TargetFunction',
    'RetriesMade',
    'ErrorType',
    ...Object.keys(own),
    'raw',
  ]);
  assert.equal(call.MessageAttributes.Reason.StringValue, 'non_retryable_error');
  assert.deepEqual([...call.MessageAttributes.raw.BinaryValue], [0, 255]);
});

test('a too large dead-letter is the body with its reason', async (t) => {
  const { calls } = recorded(t, NOW);
  const handler = consumer({ deadLetterQueueUrl: DEAD }, () => {
    throw new NonRetryable('cancelled');
  });
  for (const [size, attributes] of [
    [1_048_500, ['Reason']],
    [1_048_576, []],
  ]) {
    const body = 'x'.repeat(size);
    await handler({ Records: [record(0, { body })] }, CONTEXT);
    const [, call] = calls.pop();
    assert.ok(call.MessageBody === body);
    assert.deepEqual(Object.keys(call.MessageAttributes ?? {}), attributes);
  }
});

test('an impossible dead-letter keeps its message', async (t) => {
  const { calls } = recorded(t, NOW);
  const handler = consumer({ deadLetterQueueUrl: DEAD }, () => {
    throw new NonRetryable('cancelled');
  });
  const odd = record(0, { messageAttributes: { odd: { binaryValue: 5, dataType: 'Binary' } } });
  const { batchItemFailures } = await handler({ Records: [odd, record(1)] }, CONTEXT);
  assert.deepEqual(batchItemFailures, [{ itemIdentifier: 'm-0' }]);
  assert.deepEqual(
    calls.map(([name]) => name),
    ['SendMessage', 'ChangeMessageVisibilityBatch'],
  );
});

test('any thrown value fails only its record', async (t) => {
  const { calls } = recorded(t, NOW);
  const unreadable = new Proxy({}, { get: () => assert.fail('not readable') });
  const thrown = [undefined, null, 'text', 7n, Symbol('s'), unreadable, Object.create(null), new Error('no')];
  const handler = consumer({ jitter: 'none' }, ({ messageId }) => {
    throw thrown[Number(messageId.slice(2))];
  });
  const { batchItemFailures } = await handler(
    { Records: thrown.map((_, number) => record(number)) },
    CONTEXT,
  );
  assert.equal(batchItemFailures.length, thrown.length);
  assert.deepEqual(
    calls[0][1].Entries.map(({ VisibilityTimeout }) => VisibilityTimeout),
    thrown.map(() => 10),
  );
});

test('only groups run in order', async (t) => {
  recorded(t, NOW);
  let most = 0;
  const running = new Set();
  const handler = consumer({ concurrency: 3 }, async ({ messageId, attributes }) => {
    const lane = attributes.MessageGroupId ?? messageId;
    assert.ok(!running.has(lane));
    running.add(lane);
    most = Math.max(most, running.size);
    await new Promise(setImmediate);
    running.delete(lane);
  });
  const records = Array.from({ length: 40 }, (_, number) => record(number));
  assert.deepEqual(await handler({ Records: records }, CONTEXT), { batchItemFailures: [] });
  assert.equal(most, 3);
  most = 0;
  const fifo = records.map((it, number) => ({
    ...it,
    eventSourceARN: `${QUEUE}.fifo`,
    attributes: { ...it.attributes, MessageGroupId: String(number % 2) },
  }));
  assert.deepEqual(await handler({ Records: fifo }, CONTEXT), { batchItemFailures: [] });
  assert.equal(most, 2);
});

test('the line of a failure', async (t) => {
  const { lines } = recorded(t, NOW);
  const handler = consumer({ jitter: 'none' }, () => {
    throw new RetryAfter('soon', 'the quota is used up');
  });
  await handler({ Records: [record(0, { body: 'secret' })] }, CONTEXT);
  const [{ stack_trace, ...line }] = lines;
  assert.match(stack_trace, /^RetryAfter: soon/);
  assert.ok(!JSON.stringify(lines).includes('secret'));
  assert.deepEqual(line, {
    timestamp: '2026-11-26T12:00:00.000Z',
    level: 'WARN',
    v: 1,
    action: 'defer',
    due: '2026-11-26T12:00:10.000Z',
    due_by: 'policy',
    message_id: 'm-0',
    target: CONTEXT.invokedFunctionArn,
    retry: 1,
    error_type: 'RetryAfter',
    error_message: 'soon; the quota is used up',
    retry_after_ignored: '"soon": it does not begin with a duration or a date',
  });
});

for (const [name, needed] of [
  ['AccessDenied', 'sqs:ChangeMessageVisibility'],
  ['KmsAccessDenied', 'kms:GenerateDataKey and kms:Decrypt'],
  ['KMS.AccessDeniedException', 'kms:GenerateDataKey and kms:Decrypt'],
]) {
  test(`a missing permission is named: ${name}`, async (t) => {
    const { lines } = recorded(t, NOW, () => Promise.reject(Object.assign(new Error('no'), { name })));
    const handler = consumer({}, () => Promise.reject(new Error('no')));
    assert.deepEqual(await handler({ Records: [record()] }, CONTEXT), {
      batchItemFailures: [{ itemIdentifier: 'm-0' }],
    });
    const { level, remedy } = lines.at(-1);
    assert.deepEqual([level, remedy], ['ERROR', `allow ${needed} in the function's role`]);
  });
}

test('a bundle that is an ES module finds the SDK too', async (t) => {
  const { calls } = recorded(t, NOW);
  const bundled = { exports: {} };
  const refuses = (name) => assert.fail(`Dynamic require of "${name}" is not supported`);
  const source = readFileSync(new URL('../comeback-sqs.cjs', import.meta.url), 'utf8');
  new Function('module', 'require', source)(bundled, refuses);
  const handler = bundled.exports.consumer({}, () => Promise.reject(new Error('no')));
  await handler({ Records: [record()] }, CONTEXT);
  assert.equal(calls.length, 1);
});

test('an error of SQS without a name is logged', async (t) => {
  const { lines } = recorded(t, NOW, () => Promise.reject(new Error('no route')));
  const handler = consumer({}, () => Promise.reject(new Error('no')));
  await handler({ Records: [record()] }, CONTEXT);
  assert.equal(lines.at(-1).problem, `sqs:ChangeMessageVisibility on ${QUEUE}: no route`);
});

test('no SDK is loaded without a failure', () => {
  const script = `
    const { consumer } = require('comeback-sqs');
    const context = { getRemainingTimeInMillis: () => 1000, invokedFunctionArn: 'f' };
    consumer({}, () => {})({ Records: [{ messageId: 'm' }] }, context).then((response) =>
      console.log(JSON.stringify(response), Object.keys(require.cache).filter((it) => it.includes('aws')).length));`;
  const cwd = new URL('..', import.meta.url);
  assert.equal(
    execFileSync('node', ['-e', script], { cwd, encoding: 'utf8' }),
    '{"batchItemFailures":[]} 0\n',
  );
});
