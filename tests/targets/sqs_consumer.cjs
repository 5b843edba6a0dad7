// A consumer of docs/consumer.md. Each message says how often it fails, and how; each run of one is noted in a file.
const { appendFileSync } = require('node:fs');
const { NonRetryable, RetryAfter, consumer } = require('./comeback-sqs.cjs');

class OrderRefused extends Error {
  name = 'OrderRefused';
}
const ERRORS = { RetryAfter, NonRetryable, OrderRefused };

exports.handler = consumer(JSON.parse(process.env.OPTIONS), async (record) => {
  const { order, fails, error, message } = JSON.parse(record.body);
  const receives = Number(record.attributes.ApproximateReceiveCount);
  const taken = receives > fails;
  const seen = { order, receives, at: Date.now() / 1_000, taken };
  appendFileSync(process.env.LEDGER, `${JSON.stringify(seen)}\n`);
  if (!taken) throw new ERRORS[error](message);
});
