import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const INFRA = path.join(__dirname, '..');

/** An app's folder, in which the package is installed as npm would unpack it. */
let app: string;

function run(command: string, args: string[], cwd = app): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe' });
}

/** The output of a command that fails. */
function failure(command: string, args: string[]): string {
  try {
    run(command, args);
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return stdout + stderr;
  }
  throw new Error(`${command} did not fail`);
}

beforeAll(() => {
  app = fs.mkdtempSync(path.join(os.tmpdir(), 'app-'));
  const packed = run('npm', ['pack', '--json', '--pack-destination', app], INFRA);
  const [tarball] = fs.readdirSync(app);
  expect(packed).toContain(tarball);
  const modules = path.join(app, 'node_modules');
  fs.mkdirSync(path.join(modules, 'comeback-cdk'), { recursive: true });
  run('tar', ['-xzf', tarball ?? '', '--strip-components=1', '-C', 'node_modules/comeback-cdk']);
  for (const dependency of ['aws-cdk-lib', 'constructs', '@types', 'typescript']) {
    fs.symlinkSync(path.join(INFRA, 'node_modules', dependency), path.join(modules, dependency));
  }
}, 120_000);

afterAll(() => {
  fs.rmSync(app, { recursive: true });
});

test('the package holds the code, the README and the licences, and nothing else', () => {
  const files = run('find', ['.', '-type', 'f'], path.join(app, 'node_modules', 'comeback-cdk'))
    .trimEnd()
    .split('\n')
    .filter((file) => !/^\.\/dist\/[\w-]+\.(js|d\.ts)$/.test(file));
  expect(files.sort()).toEqual(['./LICENSE-APACHE', './LICENSE-MIT', './README.md', './package.json']);
  const { scripts, exports, dependencies } = JSON.parse(
    fs.readFileSync(path.join(app, 'node_modules/comeback-cdk/package.json'), 'utf8'),
  ) as {
    scripts: Record<string, string>;
    exports: Record<string, Record<string, string>>;
    dependencies?: Record<string, string>;
  };
  expect(dependencies).toBeUndefined();
  for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
    expect(scripts).not.toHaveProperty(script);
  }
  for (const file of Object.values(exports['.'] ?? {})) {
    expect(fs.existsSync(path.join(app, 'node_modules/comeback-cdk', file)), file).toBe(true);
  }
});

test('the README says to commit all that its commands bring into an app', () => {
  const readme = fs.readFileSync(path.join(INFRA, 'README.md'), 'utf8');
  const [commit = ''] = /^Commit .*?\.$/ms.exec(readme) ?? [];
  const [, install = ''] = /^In your app, .*?^```sh\n(.*?)^```$/ms.exec(readme) ?? [];
  const brought = [...install.matchAll(/^cp (?:-r )?"\$COMEBACK"\/(?:\S*\/)?(\S+) \.$/gm)].map(([, name]) =>
    String(name),
  );
  expect(brought).toEqual(['comeback-cdk-0.1.0.tgz', 'retry-handler']);
  expect(install).toContain(`npm install ./${String(brought[0])}\n`);
  for (const file of [
    'comeback-cdk-0.1.0.tgz',
    'retry-handler/bootstrap',
    'package.json',
    'package-lock.json',
    'cdk.context.json',
  ]) {
    expect(commit).toContain(`\`${file}\``);
  }
});

describe('the documentation', () => {
  const AROUND = `
    import { App, Stack, Stage } from 'aws-cdk-lib';
    import * as lambda from 'aws-cdk-lib/aws-lambda';
    class Readme extends Stack {
      constructor() {
        super(new App({ outdir: 'cdk.out' }), 'Readme');
        const orders = new lambda.Function(this, 'Orders', {
          code: lambda.Code.fromInline('def handler(event, context): pass'),
          handler: 'index.handler',
          runtime: lambda.Runtime.PYTHON_3_14,
        });
        RUN
        void [() => { OVERVIEW }, () => { DETACHED }];
      }
    }
    Stage.of(new Readme())?.synth();
  `;

  function blocks(page: string): string {
    const found = [...page.matchAll(/^```ts\n(.*?)^```$/gms)];
    expect(found.length, page).toBeGreaterThan(0);
    return found.map(([, block]) => block).join('');
  }

  /**
   * The `ts` blocks of this README and of docs/deploy-cdk.md as one stack, which imports each name once. The overview, and
   * what replaces `attach` when a function is detached, are compiled only.
   */
  function program(): string {
    const readme = fs.readFileSync(path.join(INFRA, 'README.md'), 'utf8');
    const overview = fs.readFileSync(path.join(INFRA, '..', 'docs', 'deploy-cdk.md'), 'utf8');
    const [detach = ''] = /^## Detach a function$.*?(?=^## )/ms.exec(readme) ?? [];
    const source = AROUND.replace('RUN', () => blocks(readme.replace(detach, '')))
      .replace('OVERVIEW', () => blocks(overview))
      .replace('DETACHED', () => blocks(detach));
    const imports = new Map<string, string>();
    const rest = source.replace(/^ *import (.*) from '(.*)';$/gm, (_, names: string, module: string) => {
      for (const name of names.replace(/[{}]/g, '').split(',')) {
        const imported = names.startsWith('{') ? `{ ${name} }` : name;
        imports.set(name.trim(), `import ${imported} from '${module}';`);
      }
      return '';
    });
    return [...imports.values(), rest].join('\n');
  }

  beforeAll(() => {
    fs.writeFileSync(path.join(app, 'app.ts'), program());
    const options = ['--strict', '--skipLibCheck', '--module', 'node16', '--target', 'es2022'];
    run('node', ['node_modules/typescript/bin/tsc', ...options, '--types', 'node', 'app.ts']);
  }, 120_000);

  test('compiles and runs in an app that has the package from npm', () => {
    expect(failure('node', ['app.js'])).toContain('bootstrap: retry-handler does not exist; build it');
    fs.mkdirSync(path.join(app, 'retry-handler'));
    fs.writeFileSync(path.join(app, 'retry-handler', 'bootstrap'), '#!/bin/sh\n', { mode: 0o755 });
    run('node', ['app.js']);
    const template = fs.readFileSync(path.join(app, 'cdk.out', 'Readme.template.json'), 'utf8');
    const { Resources } = JSON.parse(template) as { Resources: Record<string, { Type: string }> };
    const types = Object.values(Resources).map(({ Type }) => Type);
    expect(types.filter((type) => type === 'AWS::SQS::Queue')).toHaveLength(4);
    expect(types.filter((type) => type === 'AWS::Lambda::EventInvokeConfig')).toHaveLength(1);
  });

  test('does not promise a build to such an app', () => {
    const source = fs.readFileSync(path.join(app, 'app.js'), 'utf8');
    fs.writeFileSync(path.join(app, 'built.js'), source.replaceAll("'retry-handler'", 'undefined'));
    expect(failure('node', ['built.js'])).toContain(
      'bootstrap: needed, because this package lies in no checkout of Comeback to build it from; build it in a ',
    );
  });
});
