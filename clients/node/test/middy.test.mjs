import assert from 'node:assert/strict';
import { test } from 'node:test';
import middy from '@middy/core';
import { opened } from 'comeback-envelope';

const order = { order: 17 };
const context = (awsRequestId) => ({ awsRequestId, getRemainingTimeInMillis: () => 3_000 });
const retry = (attempt) => ({
  _retry_metadata: { attempt, initial_timestamp: 1643667670, origin_request_id: 'a1' },
  _original_payload: order,
});

test('the handler receives the opened event', async () => {
  const handler = middy(async (event) => event).use(opened());
  assert.deepEqual(await handler(order, context('a1')), { payload: order, attempt: 0, key: 'a1' });
  assert.deepEqual(await handler(retry(2), context('b2')), { payload: order, attempt: 2, key: 'a1' });
});

test('a malformed envelope fails before the handler runs', async () => {
  let ran = false;
  const handler = middy(async () => (ran = true)).use(opened());
  const message = 'malformed envelope: attempt is not an integer of at least 1';
  await assert.rejects(handler(retry(0), context('b2')), { name: 'Error', message });
  assert.equal(ran, false);
});

test("a directive passes through middy as the handler's own error", async () => {
  const { RetryAfter } = await import('comeback-envelope');
  const closed = new RetryAfter(900, 'the shop is closed');
  const handler = middy(() => Promise.reject(closed)).use(opened());
  await assert.rejects(handler(order, context('a1')), (error) => error === closed);
});
