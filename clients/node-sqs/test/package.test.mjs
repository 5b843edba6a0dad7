// What would be published, and that both kinds of modules can load it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as imported from 'comeback-sqs';

test('the package holds one module, its types, the README and the licences', () => {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const packed = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd, encoding: 'utf8', stdio: 'pipe' }),
  );
  const [{ files }] = Array.isArray(packed) ? packed : Object.values(packed);
  assert.deepEqual(files.map(({ path }) => path).sort(), [
    'LICENSE-APACHE',
    'LICENSE-MIT',
    'README.md',
    'comeback-sqs.cjs',
    'comeback-sqs.d.cts',
    'package.json',
  ]);
});

test('import and require give the same', () => {
  const required = createRequire(import.meta.url)('comeback-sqs');
  const names = ['NonRetryable', 'RetryAfter', 'consumer'];
  assert.deepEqual(Object.keys(required), names);
  for (const name of names) assert.equal(imported[name], required[name]);
});
