// Faults of SQS and of the network, and events from other sources.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { NonRetryable, consumer } from 'comeback-sqs';
import { recorded } from './support.mjs';

const NOW = Date.parse('2026-11-26T12:00:00Z');
const DEAD = 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dead';
const CONTEXT = {
  getRemainingTimeInMillis: () => 60_000,
  invokedFunctionArn: 'arn:aws:lambda:eu-west-1:123456789012:function:orders',
};

const record = (number = 0, more = {}) => ({
  messageId: `m-${number}`,
  receiptHandle: `h-${number}`,
  body: '{}',
  eventSourceARN: 'arn:aws:sqs:eu-west-1:123456789012:orders',
  ...more,
});
const kept = ({ batchItemFailures }) => batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);

const EVENTS = new URL('../../../tests/golden/consumer-events.json', import.meta.url);
for (const { event, problem } of JSON.parse(readFileSync(EVENTS))) {
  test(`the event ${JSON.stringify(event)}`, async () => {
    const answer = consumer({}, () => {})(event, CONTEXT);
    if (problem === undefined) {
      assert.deepEqual(await answer, { batchItemFailures: [] });
      return;
    }
    const more = '; comeback-sqs is for functions behind an SQS event source mapping';
    await assert.rejects(answer, { name: 'TypeError', message: `not an SQS event: ${problem}${more}` });
  });
}

const unreadable = {
  get name() {
    throw new Error('of the error');
  },
};
for (const thrown of [new Error('socket hang up'), undefined, null, 'text', unreadable]) {
  test(`whatever a call throws, each record is deleted or reported: ${typeof thrown}`, async (t) => {
    const { lines } = recorded(t, NOW, () => {
      throw thrown;
    });
    const ran = [];
    const handler = consumer({ deadLetterQueueUrl: DEAD }, ({ messageId }) => {
      ran.push(messageId);
      if (messageId === 'm-1') throw new Error('no');
      if (messageId === 'm-2') throw new NonRetryable('no');
    });
    const answer = await handler({ Records: [0, 1, 2, 3].map((number) => record(number)) }, CONTEXT);
    assert.deepEqual(ran, ['m-0', 'm-1', 'm-2', 'm-3']);
    assert.deepEqual(kept(answer), ['m-1', 'm-2']);
    assert.equal(lines.filter(({ problem }) => problem?.startsWith('sqs:')).length, 3);
  });
}

test('a truncated answer settles nothing', async (t) => {
  const { lines } = recorded(t, NOW, () => ({ MessageId: undefined, Successful: undefined }));
  const handler = consumer({ deadLetterQueueUrl: DEAD }, () => {
    throw new NonRetryable('no');
  });
  assert.deepEqual(kept(await handler({ Records: [record()] }, CONTEXT)), ['m-0']);
  assert.deepEqual(
    lines.map(({ problem }) => problem),
    ['SQS did not say that it has the dead-letter', 'SQS did not say that it would hide it'],
  );
});

test('an unrun result is a failure', async (t) => {
  const { lines } = recorded(t, NOW);
  const own = { next: () => ({ done: true }), [Symbol.iterator]: () => own };
  const results = [[1].values(), new Map().entries(), () => {}, async () => {}, own, [Promise.resolve()]];
  for (const result of results) {
    const handler = consumer({}, () => result);
    assert.deepEqual(kept(await handler({ Records: [record()] }, CONTEXT)), ['m-0']);
  }
  const failures = lines.filter(({ action }) => action === 'defer');
  assert.equal(failures.length, results.length);
  assert.ok(failures.every(({ error_message: said }) => said.includes('what nobody runs or awaits')));
});

test('a finished result is a success', async () => {
  const cursor = { next: () => {}, close: () => {}, [Symbol.asyncIterator]: () => cursor };
  for (const result of [undefined, null, 1, 'ab', [], ['a'], {}, new Map(), cursor]) {
    const handler = consumer({}, () => result);
    assert.deepEqual(kept(await handler({ Records: [record()] }, CONTEXT)), []);
  }
});

test('a unit test needs no context', async (t) => {
  const { calls } = recorded(t, NOW);
  for (const context of [undefined, null, {}]) {
    const handler = consumer({}, () => {
      throw new Error('no');
    });
    assert.deepEqual(kept(await handler({ Records: [record()] }, context)), ['m-0']);
  }
  assert.equal(calls.length, 3);
});

test('a dead-letter queue in another region is refused', (t) => {
  const before = process.env.AWS_REGION;
  process.env.AWS_REGION = 'eu-west-1';
  t.after(() => (before === undefined ? delete process.env.AWS_REGION : (process.env.AWS_REGION = before)));
  consumer({ deadLetterQueueUrl: DEAD }, () => {});
  consumer({ deadLetterQueueUrl: 'http://127.0.0.1:4566/1/dead' }, () => {});
  for (const deadLetterQueueUrl of [
    'https://sqs.us-east-1.amazonaws.com/1/dead',
    'https://sqs-fips.us-gov-west-1.amazonaws.com/1/dead',
    'https://us-east-2.queue.amazonaws.com/1/dead',
  ])
    assert.throws(() => consumer({ deadLetterQueueUrl }, () => {}), /it must be in the function's region/);
});

test('the log has the causes of an error, whole or in part', async (t) => {
  const { lines } = recorded(t, NOW);
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
  const long = new Error('y'.repeat(2_000_000), { cause: new Error('column zip is missing') });
  long.name = 'z'.repeat(2_000_000);
  const circle = new Error('circle');
  circle.cause = circle;
  const thrown = [
    new TypeError('fetch failed', { cause: refused }),
    new AggregateError([new Error('db refused'), new Error('cache refused')], 'all'),
    long,
    circle,
  ];
  const handler = consumer({}, ({ messageId }) => {
    throw thrown[Number(messageId.slice(2))];
  });
  await handler({ Records: thrown.map((_, number) => record(number)) }, CONTEXT);
  const said = [['ECONNREFUSED'], ['db refused', 'cache refused'], ['column zip is missing'], ['circle']];
  said.forEach((words, index) => {
    for (const word of words) assert.ok(lines[index].stack_trace.includes(word), word);
    assert.ok(lines[index].stack_trace.length <= 8_192 && lines[index].error_message.length <= 8_192);
    assert.ok(lines[index].error_type.length <= 8_192);
  });
});

test("a dead-letter drops the error's text first", async (t) => {
  const { calls } = recorded(t, NOW);
  const handler = consumer({ deadLetterQueueUrl: DEAD }, () => {
    throw new NonRetryable('y'.repeat(2_000_000));
  });
  const attributes = { MessageGroupId: 'customer-7', AWSTraceHeader: 'Root=1' };
  await handler({ Records: [record(0, { body: 'x'.repeat(1_045_000), attributes })] }, CONTEXT);
  const [[, sent]] = calls;
  assert.equal(Object.keys(sent.MessageAttributes).length, 4);
  assert.equal(JSON.parse(sent.MessageBody).error.message, '');
  assert.equal(sent.MessageGroupId, 'customer-7');
  assert.equal(sent.MessageSystemAttributes.AWSTraceHeader.StringValue, 'Root=1');
});

for (const concurrency of [1, 4]) {
  test(`a hanging record does not affect others, ${concurrency} at once`, async (t) => {
    let end;
    const deleted = new Promise((resolve) => {
      end = resolve;
    });
    const { calls } = recorded(t, NOW, (name) => {
      if (name === 'DeleteMessageBatch') end();
      return {};
    });
    const left = [1_000]; // 1 s is left at the start; every later query returns 60 s
    const context = { ...CONTEXT, getRemainingTimeInMillis: () => left.shift() ?? 60_000 };
    const handler = consumer({ concurrency }, async ({ messageId }) => {
      if (messageId === 'm-1') throw new Error('no');
      if (messageId === 'm-2') await deleted;
    });
    const answer = await handler({ Records: [0, 1, 2].map((number) => record(number)) }, context);
    assert.deepEqual(kept(answer), ['m-1']);
    const told = calls.map(([name, { Entries }]) => [name, Entries.map((it) => it.ReceiptHandle).join()]);
    assert.deepEqual(told, [
      ['ChangeMessageVisibilityBatch', 'h-1'],
      ['DeleteMessageBatch', 'h-0'],
    ]);
  });
}

const URLS = new URL('../../../tests/golden/queue-urls.json', import.meta.url);
for (const [arn, url] of Object.entries(JSON.parse(readFileSync(URLS)))) {
  test(`the URL of the queue "${arn}"`, async (t) => {
    const { calls } = recorded(t, NOW);
    const handler = consumer({}, () => {
      throw new Error('no');
    });
    await handler({ Records: [record(0, { eventSourceARN: arn })] }, CONTEXT);
    assert.equal(calls[0][1].QueueUrl, url);
  });
}
