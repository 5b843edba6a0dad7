// The two errors write what the retry handler reads, and refuse what it would refuse.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { NonRetryable, RetryAfter } from 'comeback-envelope';

test('RetryAfter writes whole seconds or a moment', () => {
  for (const [when, message] of [
    [900, '900'],
    [0.25, '1'],
    [1.5, '2'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [new Date(1_789_400_814_145), '2026-09-14T15:46:54.145Z'],
    [vm.runInNewContext('new Date(1789400814145)'), '2026-09-14T15:46:54.145Z'],
  ]) {
    assert.equal(new RetryAfter(when).message, message);
    assert.equal(new RetryAfter(when, 'the shop is closed').message, `${message}; the shop is closed`);
  }
});

test('a wait that is not positive is refused', () => {
  for (const when of [0, -0, -1, -0.5, NaN, Infinity, -Infinity, 2 ** 53]) {
    const message = `RetryAfter needs a positive wait, not ${when}`;
    assert.throws(() => new RetryAfter(when), { name: 'RangeError', message });
  }
});

test('a date that cannot be written in four digits of a year is refused', () => {
  for (const when of [
    new Date(NaN),
    new Date('+010000-01-01T00:00:00Z'),
    new Date('-000001-01-01T00:00:00Z'),
  ]) {
    const message = /^RetryAfter needs a date in the years 0 to 9999, not /;
    assert.throws(() => new RetryAfter(when), { name: 'RangeError', message });
  }
});

test('what is no time is refused', () => {
  for (const [when, kind] of [
    ['900', 'string'],
    [undefined, 'undefined'],
    [null, 'object'],
    [true, 'boolean'],
    [900n, 'bigint'],
  ]) {
    const message = `RetryAfter takes seconds or a Date, not a ${kind}`;
    assert.throws(() => new RetryAfter(when), { name: 'TypeError', message });
  }
});

test('both are errors with the names that the retry handler obeys', () => {
  const cause = new Error('410 Gone');
  const given = new NonRetryable('order 17 was cancelled', { cause });
  assert.deepEqual(
    [given.name, given.message, given.cause],
    ['NonRetryable', 'order 17 was cancelled', cause],
  );
  assert.equal(String(new RetryAfter(900)), 'RetryAfter: 900');
  assert.ok(given instanceof Error && new RetryAfter(900) instanceof Error);
});
