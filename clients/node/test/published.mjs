// Checks what a package publishes, and that both `import` and `require` can load it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/**
 * Defines the tests that every published package must pass: the package contains the expected files, and `import` and
 * `require` give the same exports.
 *
 * @param {string} url the URL of the package's own test
 * @param imported the package, as its own test imports it
 * @param names the names that the module must export
 */
export function testPackage(url, imported, names) {
  const require = createRequire(url);
  const { name } = require('../package.json');

  test('the package holds module, types, README and licences', () => {
    const cwd = fileURLToPath(new URL('..', url));
    const packed = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd, encoding: 'utf8', stdio: 'pipe' }),
    );
    const [{ files }] = Array.isArray(packed) ? packed : Object.values(packed);
    assert.deepEqual(files.map(({ path }) => path).sort(), [
      'LICENSE-APACHE',
      'LICENSE-MIT',
      'README.md',
      `${name}.cjs`,
      `${name}.d.cts`,
      'package.json',
    ]);
  });

  test('import and require give the same', () => {
    const required = require(name);
    assert.deepEqual(Object.keys(required), names);
    for (const name of names) assert.equal(imported[name], required[name]);
  });
}
