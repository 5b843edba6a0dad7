// Checks that the retry handler can read what the two errors write, and that their constructors never fail.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import vm from 'node:vm';
import { NonRetryable, RetryAfter } from 'comeback-envelope';

test('RetryAfter writes whole seconds or a moment', () => {
  for (const [when, message] of [
    [900, '900'],
    [0.25, '1'],
    [1.5, '2'],
    [64.57, '65'],
    [120n, '120'],
    [1_789_404_414, '1789404414'],
    [1_789_404_414_000, '1789404414000'],
    ['120', '120'],
    ['64.57', '64.57'],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    [new Date(1_789_400_814_145), '2026-09-14T15:46:54.145Z'],
    [vm.runInNewContext('new Date(1789400814145)'), '2026-09-14T15:46:54.145Z'],
  ]) {
    assert.equal(new RetryAfter(when).message, message);
    assert.equal(new RetryAfter(when, 'the shop is closed').message, `${message}; the shop is closed`);
  }
});

test('a number is written as it is read', () => {
  // The packages for other languages must write the same strings.
  const cases = new URL('../../../tests/golden/directives/written.json', import.meta.url);
  for (const { seconds, message } of JSON.parse(readFileSync(cases, 'utf8'))) {
    assert.equal(new RetryAfter(seconds).message, message);
    if (Number.isInteger(seconds)) assert.equal(new RetryAfter(BigInt(seconds)).message, message);
  }
});

test('nonsense is left to the handler', () => {
  const claims = { [Symbol.toStringTag]: 'Date', toString: () => 'no date' };
  for (const [when, message] of [
    [0, '0'],
    [-0, '0'],
    [-1, '-1'],
    [-0.5, '0'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [1e300, '1e+300'],
    [new Date(NaN), 'Invalid Date'],
    [undefined, 'undefined'],
    [null, 'null'],
    [true, 'true'],
    ['soon', 'soon'],
    [Symbol('soon'), 'Symbol(soon)'],
    [Object.create(null), 'an unprintable object'],
    [claims, 'no date'],
  ]) {
    assert.equal(new RetryAfter(when).message, message);
  }
  assert.match(new RetryAfter(new Date('+010000-01-01T00:00:00Z')).message, /Jan 01 10000/);
  assert.equal(new RetryAfter(900, Object.create(null)).message, '900; an unprintable object');
});

test('text is passed on unchanged', () => {
  // `RetryAfter` must pass on the value of any `Retry-After` header.
  const cases = new URL('../../../tests/golden/directives/retry-after.json', import.meta.url);
  for (const { text } of JSON.parse(readFileSync(cases, 'utf8'))) {
    assert.equal(new RetryAfter(text).message, text);
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
