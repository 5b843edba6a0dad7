// Runs the directive cases that all implementations share, from tests/golden/directives.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import vm from 'node:vm';
import * as envelope from '../../node/comeback-envelope.cjs';
import { NonRetryable, RetryAfter, consumer } from 'comeback-sqs';
import { recorded } from './support.mjs';

const FOLDER = new URL('../../../tests/golden/directives/', import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, FOLDER)));
const CONTEXT = { getRemainingTimeInMillis: () => 60_000, invokedFunctionArn: 'f' };

/** Returns the line that a consumer logs for an error. */
async function line(t, error, failedAt) {
  const { lines } = recorded(t, failedAt);
  t.mock.method(Math, 'random', () => 0);
  const handler = consumer({}, () => Promise.reject(error));
  await handler({ Records: [{ messageId: 'm', attributes: { SentTimestamp: String(failedAt) } }] }, CONTEXT);
  return lines[0];
}

for (const { text, failed_at, wait, ignored } of read('retry-after.json')) {
  test(`a wait of ${JSON.stringify(text)} at ${failed_at}`, async (t) => {
    const failedAt = Date.parse(failed_at);
    const found = await line(t, Object.assign(new Error(text), { name: 'RetryAfter' }), failedAt);
    if (ignored !== undefined || wait === 0) {
      assert.equal(found.retry_after_ignored.split('": ')[1], ignored ?? 'its time is not after the failure');
      return;
    }
    assert.equal(found.retry_after_ignored, undefined);
    // The last retry is due a minute before `maxAge`, which is 14 days.
    const expected = Math.min(wait, 1_209_600 - 60);
    assert.ok(Math.abs(Date.parse(found.due) - failedAt - expected * 1_000) <= 1, found.due);
  });
}

for (const { text, seconds } of read('max-age.json')) {
  test(`a max_age of ${JSON.stringify(text)}`, async (t) => {
    const { lines } = recorded(t, Date.parse('2026-11-26T12:00:00Z'));
    const made = () => consumer({ maxAge: text }, () => assert.fail('always'));
    if (seconds === null) return assert.throws(made, { message: /^maxAge is / });
    await made()({ Records: [{ messageId: 'm', attributes: { SentTimestamp: '0' } }] }, CONTEXT);
    assert.ok(lines[0].detail.endsWith(`; maxAge is ${seconds} s`));
  });
}

const ENDS = ['NonRetryable', 'NonRetriable', 'NeverRetry'];

for (const { error_type, name } of read('names.json')) {
  test(`the name ${JSON.stringify(error_type)}`, async (t) => {
    const failedAt = Date.parse('2026-11-26T12:00:00Z');
    const found = await line(t, Object.assign(new Error('900'), { name: error_type }), failedAt);
    const expected = name === 'RetryAfter' ? 'retry_after' : ENDS.includes(name) ? 'dead_letter' : 'policy';
    assert.equal(found.reason === undefined ? found.due_by : found.action, expected);
  });
}

test('a long name is read at once', async (t) => {
  const found = await line(t, Object.assign(new Error('900'), { name: `${'$'.repeat(300_000)}x` }), 0);
  assert.equal(found.due_by, 'policy');
});

test('a subclass counts, whatever its name', async (t) => {
  class Closed extends RetryAfter {
    name = 'Closed';
  }
  class Cancelled extends NonRetryable {
    name = 'Cancelled';
  }
  const failedAt = Date.parse('2026-11-26T12:00:00Z');
  assert.equal((await line(t, new Closed(900), failedAt)).due_by, 'retry_after');
  t.mock.reset();
  const { reason, error_type } = await line(t, new Cancelled('order 17'), failedAt);
  assert.deepEqual([reason, error_type], ['non_retryable_error', 'Cancelled']);
});

test('RetryAfter writes a number as it is read', () => {
  for (const { seconds, message } of read('written.json')) {
    assert.equal(new RetryAfter(seconds).message, message);
    if (Number.isInteger(seconds)) assert.equal(new RetryAfter(BigInt(seconds)).message, message);
  }
});

test('both packages have the same errors', () => {
  // Each package is a single file that users can copy, so both define these errors.
  const late = new Date('+010000-01-01T00:00:00Z');
  const given = [
    0,
    -0,
    -1,
    0.5,
    900,
    1e6,
    10_000_000n,
    1e9,
    1e300,
    NaN,
    true,
    null,
    'soon',
    new Date(0),
    new Date(NaN),
    late,
  ];
  given.push(vm.runInNewContext('new Date(0)'));
  for (const when of [...given, Symbol('soon'), Object.create(null)]) {
    for (const text of [undefined, 'closed', Object.create(null)])
      assert.equal(new RetryAfter(when, text).message, new envelope.RetryAfter(when, text).message);
  }
});
