// The Node.js consumer from docs/consumer.md. Each message says how many of its runs fail, and with which error. The
// consumer records each run in a file.
const { appendFileSync } = require('node:fs');
const { NonRetryable, RetryAfter, consumer } = require('./comeback-sqs.cjs');

class OrderRefused extends Error {
  name = 'OrderRefused';
}
const ERRORS = { RetryAfter, NonRetryable, OrderRefused };

// The trial passes the options under their Python names, which are converted here.
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const given = Object.entries(JSON.parse(process.env.OPTIONS)).map(([name, value]) => [camel(name), value]);

exports.handler = consumer(Object.fromEntries(given), async (record) => {
  const { order, fails, error, message } = JSON.parse(record.body);
  const receives = Number(record.attributes.ApproximateReceiveCount);
  const taken = receives > fails;
  const seen = { order, receives, at: Date.now() / 1_000, taken };
  appendFileSync(process.env.LEDGER, `${JSON.stringify(seen)}\n`);
  if (!taken) throw new ERRORS[error](message);
});
