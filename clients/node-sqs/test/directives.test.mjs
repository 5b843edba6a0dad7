// The cases of what an error asks for, which every implementation has in common: tests/golden/directives.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { consumer } from 'comeback-sqs';
import { recorded } from './support.mjs';

const FOLDER = new URL('../../../tests/golden/directives/', import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, FOLDER)));
const CONTEXT = { getRemainingTimeInMillis: () => 60_000, invokedFunctionArn: 'f' };

/** What a consumer logs for an error, with a draw of zero. */
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
      assert.equal(
        found.retry_after_ignored.split('": ')[1],
        ignored ?? 'its time is not after the failure',
      );
      return;
    }
    assert.equal(found.retry_after_ignored, undefined);
    // The last receive is a minute before max_age.
    const expected = Math.min(wait, 1_209_600 - 60);
    assert.ok(Math.abs(Date.parse(found.due) - failedAt - expected * 1_000) <= 1, found.due);
  });
}
