// Runs the cases that all consumers share, from tests/golden/consumer.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { consumer } from 'comeback-sqs';
import { recorded } from './support.mjs';

const FOLDER = new URL('../../../tests/golden/consumer/', import.meta.url);
const NOW = Date.parse('2026-11-26T12:00:00Z');

function record({ id, receives, sent_ago, first_ago, group, attributes, body }, queue) {
  return {
    messageId: id,
    receiptHandle: `h-${id}`,
    body: body ?? id,
    attributes: attributes ?? {
      ApproximateReceiveCount: String(receives),
      SentTimestamp: String(NOW - sent_ago * 1_000),
      ApproximateFirstReceiveTimestamp: String(NOW - first_ago * 1_000),
      ...(group === undefined ? {} : { MessageGroupId: group }),
    },
    messageAttributes: {},
    eventSourceARN: queue,
  };
}

function context(timeLeft) {
  const answers = [...timeLeft];
  return {
    getRemainingTimeInMillis: () => Math.round((answers.length > 1 ? answers.shift() : answers[0]) * 1_000),
    invokedFunctionArn: 'arn:aws:lambda:eu-west-1:123456789012:function:orders',
  };
}

// The cases name the options in snake case, as in Python.
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

for (const file of readdirSync(FOLDER)) {
  const given = JSON.parse(readFileSync(new URL(file, FOLDER)));
  test(`${file}: ${given.about}`, async (t) => {
    const { calls, lines } = recorded(t, NOW, (name) => {
      if (given.refuses?.includes(name)) throw Object.assign(new Error('denied'), { name: 'AccessDenied' });
      return {};
    });
    t.mock.method(Math, 'random', () => given.draw);
    const ran = [];
    const options = Object.entries(given.options).map(([name, value]) => [camel(name), value]);
    const handler = consumer(Object.fromEntries(options), async (record) => {
      const { messageId, body } = record;
      const message = given.batch.find(({ id }) => id === messageId);
      ran.push(messageId);
      assert.equal(body, message.sees ?? message.id);
      for (const name of Object.keys(record)) delete record[name]; // the function's changes must have no effect
      if (message.does === 'returns_an_iterator') return [1].values();
      if (message.does !== 'succeeds') {
        const [name, text] = message.does.fails;
        throw Object.assign(new Error(text), { name });
      }
      return undefined;
    });
    const Records = given.batch.map((message) => record(message, given.queue));
    const { batchItemFailures } = await handler({ Records }, context(given.time_left ?? [60]));
    assert.deepEqual(
      batchItemFailures.map(({ itemIdentifier }) => itemIdentifier),
      given.response,
    );
    assert.deepEqual(ran, given.runs);
    const of = (name) => calls.filter(([it]) => it === name).map(([, call]) => call);
    const hiding = of('ChangeMessageVisibilityBatch');
    assert.equal(hiding.length, given.hiding_calls ?? (given.hides.length > 0 ? 1 : 0));
    const hidden = hiding.flatMap(({ Entries }) => Entries);
    assert.deepEqual(
      hidden.map(({ ReceiptHandle, VisibilityTimeout }) => [ReceiptHandle.slice(2), VisibilityTimeout]),
      given.hides,
    );
    const sent = of('SendMessage').map(({ MessageBody }) => JSON.parse(MessageBody));
    assert.deepEqual(
      sent.map(({ origin_request_id, reason }) => [origin_request_id, reason]),
      given.dead_letters,
    );
    const written = lines.map(({ timestamp: _, stack_trace: __, ...line }) => line);
    assert.deepEqual(written, given.lines ?? written);
  });
}
