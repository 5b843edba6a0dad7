import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { REPOSITORY } from './support';

/** The folder of an app with the package installed. */
let app: string;

function run(command: string, args: string[]): string {
  return execFileSync(command, args, { cwd: app, encoding: 'utf8', stdio: 'pipe' });
}

/** A program that writes a zip file with a fake retry handler. */
const ZIP = `
import sys, zipfile
entry = zipfile.ZipInfo("bootstrap")
entry.create_system, entry.external_attr = 3, 0o755 << 16
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr(entry, "#!/bin/sh\\n# " + sys.argv[1])
`;
const HANDLERS = ['retry-handler-arm64.zip', 'retry-handler-x86_64.zip'];
const { version } = JSON.parse(fs.readFileSync(path.join(REPOSITORY, 'infra/package.json'), 'utf8')) as {
  version: string;
};
const THIRD_PARTY = 'THIRD-PARTY-LICENCES.txt';

beforeAll(() => {
  app = fs.mkdtempSync(path.join(os.tmpdir(), 'app-'));
  for (const handler of HANDLERS) {
    run('python3', ['-c', ZIP, handler]);
  }
  fs.writeFileSync(path.join(app, THIRD_PARTY), 'MIT');
  run('python3', [path.join(REPOSITORY, 'packaging', 'packages.py'), '--only-npm-construct', '.']);
  const modules = path.join(app, 'node_modules');
  fs.mkdirSync(path.join(modules, 'comeback-cdk'), { recursive: true });
  run('tar', [
    '-xzf',
    `comeback-cdk-${version}.tgz`,
    '--strip-components=1',
    '-C',
    'node_modules/comeback-cdk',
  ]);
  for (const dependency of ['aws-cdk-lib', 'constructs', '@types', 'typescript']) {
    fs.symlinkSync(path.join(REPOSITORY, 'infra/node_modules', dependency), path.join(modules, dependency));
  }
}, 300_000);

afterAll(() => {
  fs.rmSync(app, { recursive: true });
});

test('the package holds exactly the intended files', () => {
  const files = run('find', ['node_modules/comeback-cdk', '-type', 'f', '-printf', '%P\\n'])
    .trimEnd()
    .split('\n')
    .filter((file) => !/^lib\/[\w-]+\.(js|d\.ts)$/.test(file));
  expect(files.sort()).toEqual([
    '.jsii',
    'LICENSE',
    'README.md',
    THIRD_PARTY,
    ...HANDLERS.map((handler) => `handler/${handler}`),
    'lib/settings.json',
    'package.json',
  ]);
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

describe('the documentation', () => {
  /** Code that declares the names that the README's examples use. */
  const AROUND = `
    import { App, Stack } from 'aws-cdk-lib';
    import * as lambda from 'aws-cdk-lib/aws-lambda';
    class Readme extends Stack {
      constructor(orders: lambda.Function) {
        super();
        BLOCKS
      }
    }
    void Readme;
  `;

  /** Returns the `ts` code blocks of a page, or of one of its sections. */
  function blocks(page: string, heading = '.*'): string {
    const text = fs.readFileSync(path.join(REPOSITORY, page), 'utf8');
    const section = new RegExp(`^##? ${heading}\n.*?(?=^## |(?![^]))`, 'gms');
    const found = [...text.matchAll(section)].flatMap(([part]) => [
      ...part.matchAll(/^```ts\n(.*?)^```$/gms),
    ]);
    expect(found.length, `${page}, ${heading}`).toBeGreaterThan(0);
    return found.map(([, block]) => block).join('');
  }

  /** Makes a program from code blocks, importing each name only once. */
  function program(source: string): string {
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

  test('compiles, and its app deploys the retry handler of the package', () => {
    const page = (heading: string) => blocks('docs/deploy-cdk.md', heading);
    const detached = `void (() => { ${page('Detach a function')} });`;
    fs.writeFileSync(
      path.join(app, 'readme.ts'),
      program(AROUND.replace('BLOCKS', () => blocks('infra/README.md'))),
    );
    fs.writeFileSync(
      path.join(app, 'app.ts'),
      program([page('TypeScript'), page('Watch it'), detached, 'app.synth();'].join('\n')),
    );
    const options = ['--strict', '--skipLibCheck', '--module', 'node16', '--target', 'es2022'];
    run('node', ['node_modules/typescript/bin/tsc', ...options, '--types', 'node', 'readme.ts', 'app.ts']);
    fs.mkdirSync(path.join(app, 'orders'));
    run('node', ['-e', "process.env.CDK_OUTDIR = 'cdk.out'; require('./app.js')"]);

    const output = path.join(app, 'cdk.out');
    const template = fs.readFileSync(path.join(output, 'Shop.template.json'), 'utf8');
    const { Resources } = JSON.parse(template) as { Resources: Record<string, { Type: string }> };
    const types = Object.values(Resources).map(({ Type }) => Type);
    expect(types.filter((type) => type === 'AWS::SQS::Queue')).toHaveLength(2);
    expect(types.filter((type) => type === 'AWS::Lambda::EventInvokeConfig')).toHaveLength(1);
    const zips = fs.readdirSync(output).filter((name) => name.endsWith('.zip'));
    expect(zips.map((name) => fs.readFileSync(path.join(output, name)))).toEqual([
      fs.readFileSync(path.join(app, 'retry-handler-arm64.zip')),
    ]);
  }, 180_000);
});
