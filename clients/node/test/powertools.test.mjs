// Runs the middleware in front of Powertools' idempotency middleware, with a map in place of the DynamoDB table.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IdempotencyConfig, IdempotencyItemAlreadyExistsError } from '@aws-lambda-powertools/idempotency';
import { makeHandlerIdempotent } from '@aws-lambda-powertools/idempotency/middleware';
import { BasePersistenceLayer } from '@aws-lambda-powertools/idempotency/persistence';
import middy from '@middy/core';
import { NonRetryable, RetryAfter, opened } from 'comeback-envelope';

class Memory extends BasePersistenceLayer {
  records = new Map();

  async _getRecord(key) {
    return this.records.get(key);
  }

  async _putRecord(record) {
    const found = this.records.get(record.idempotencyKey);
    if (found) throw new IdempotencyItemAlreadyExistsError('it exists', found);
    this.records.set(record.idempotencyKey, record);
  }

  async _updateRecord(record) {
    this.records.set(record.idempotencyKey, record);
  }

  async _deleteRecord(record) {
    this.records.delete(record.idempotencyKey);
  }
}

test('all attempts of an event are one operation', async () => {
  const order = { order: 17 };
  const context = (awsRequestId) => ({ awsRequestId, getRemainingTimeInMillis: () => 3_000 });
  const retry = (attempt, of) => ({
    _retry_metadata: { attempt, initial_timestamp: 1643667670, origin_request_id: of },
    _original_payload: order,
  });
  const shipped = [];
  const failures = [new RetryAfter(900), new NonRetryable('cancelled')];
  const idempotent = makeHandlerIdempotent({
    config: new IdempotencyConfig({ eventKeyJmesPath: 'key' }),
    persistenceStore: new Memory(),
  });
  const handler = middy(async ({ key }) => {
    if (failures.length > 0) throw failures.pop();
    return { shipped: shipped.push(key) };
  }).use([opened(), idempotent]);

  await assert.rejects(handler(order, context('a1')), NonRetryable);
  await assert.rejects(handler(retry(1, 'a1'), context('b2')), RetryAfter);
  assert.deepEqual(await handler(retry(2, 'a1'), context('c3')), { shipped: 1 }, 'failures leave no record');
  assert.deepEqual(await handler(retry(2, 'a1'), context('d4')), { shipped: 1 }, 'a second copy');
  assert.deepEqual(await handler(order, context('e5')), { shipped: 2 }, 'another event, the same payload');
  assert.deepEqual(shipped, ['a1', 'e5']);
});
