import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { handlerFunction, packaged } from '../src/handler-code';

const { ARM_64, X86_64 } = lambda.Architecture;
const SCRIPT = '#!/bin/sh\n';

let scratch: string;
let folder: string;

beforeEach(() => {
  scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'bootstrap-'));
  folder = path.join(scratch, 'code');
  fs.mkdirSync(folder);
});

afterEach(() => {
  fs.rmSync(scratch, { recursive: true });
});

function put(name: string, content: string | Buffer, mode = 0o755): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, content, { mode });
  return file;
}

function elf(machine: number): Buffer {
  const header = Buffer.alloc(64);
  header.write('\x7fELF', 'latin1');
  header.writeUInt16LE(machine, 18);
  return header;
}

/** A program that zips files, with an extra field and a comment for each entry, as some zip programs do. */
const ZIP = `
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for path in sys.argv[4:]:
        entry = zipfile.ZipInfo.from_file(path, os.path.basename(path))
        entry.extra, entry.comment = b"\\xfe\\xca\\x01\\x00x", b"why"
        entry.compress_type, entry.create_system = int(sys.argv[2]), int(sys.argv[3])
        with open(path, "rb") as file:
            archive.writestr(entry, file.read())
`;

const STORED = 0;
const DEFLATED = 8;
const BZIP2 = 12;
const UNIX = 3;
const WINDOWS = 10;

function zip(files: string[], method = DEFLATED, system = UNIX): string {
  const archive = path.join(folder, 'code.zip');
  execFileSync('python3', ['-c', ZIP, archive, String(method), String(system), ...files]);
  return archive;
}

function synthesize(bootstrap: string | undefined, architecture = ARM_64): Template {
  const stack = new Stack(new App({ outdir: path.join(scratch, 'cdk.out') }), 'Stack');
  handlerFunction(stack, 'Handler', bootstrap, { architecture, memorySize: 256 });
  return Template.fromStack(stack);
}

function refusal(bootstrap: string | undefined, architecture = ARM_64): string {
  try {
    synthesize(bootstrap, architecture);
  } catch (error) {
    return (error as Error).message.replaceAll(folder, 'FOLDER');
  }
  throw new Error('nothing was refused');
}

const HINT =
  'build it in a checkout of Comeback with `cargo lambda build --release --arm64 -p retry-handler`, ' +
  'and give the path of target/lambda/retry-handler there';

describe("a bootstrap of the app's own", () => {
  test.each([
    ['for arm64', elf(0xb7), ARM_64],
    ['for x86_64', elf(0x3e), X86_64],
    ['that is a script', Buffer.from(SCRIPT), ARM_64],
  ])('is deployed as it is: one %s', (_, content, architecture) => {
    put('bootstrap', content);
    synthesize(folder, architecture).hasResourceProperties('AWS::Lambda::Function', {
      Architectures: [architecture.name],
      Handler: 'bootstrap',
      MemorySize: 256,
      Runtime: 'provided.al2023',
    });
  });

  test.each([
    ['stored', elf(0xb7), STORED],
    ['deflated', elf(0xb7), DEFLATED],
    ['a script', Buffer.from(SCRIPT), DEFLATED],
  ])('may come in a zip file, %s', (_, content, method) => {
    const other = put('notes.txt', 'beside it');
    synthesize(zip([other, put('bootstrap', content)], method)).resourceCountIs('AWS::Lambda::Function', 1);
  });

  test('is the only file of its folder that is deployed', () => {
    zip([put('bootstrap', elf(0xb7))]);
    put('notes.txt', 'beside it');
    fs.mkdirSync(path.join(folder, 'older'));
    put('older/bootstrap', SCRIPT);
    synthesize(folder);
    const output = path.join(scratch, 'cdk.out');
    const assets = fs.readdirSync(output).filter((name) => name.startsWith('asset.'));
    expect(assets.map((asset) => fs.readdirSync(path.join(output, asset)))).toEqual([['bootstrap']]);
  });

  test('is refused if it does not exist', () => {
    const missing = path.join(folder, 'missing');
    expect(refusal(missing)).toBe(`bootstrap: FOLDER/missing does not exist; ${HINT}`);
    expect(refusal(folder)).toBe(`bootstrap: FOLDER/bootstrap does not exist; ${HINT}`);
  });

  test.each([
    [0x3e, ARM_64, 'x86_64', 'arm64', '--arm64'],
    [0xb7, X86_64, 'arm64', 'x86_64', '--x86-64'],
  ])('is refused for another architecture: %s', (machine, architecture, built, wanted, flag) => {
    const bootstrap = put('bootstrap', elf(machine));
    const problem = `is built for ${built}, but architecture is ${wanted}; ${HINT.replace('--arm64', flag)}`;
    expect(refusal(folder, architecture)).toBe(`bootstrap: FOLDER/bootstrap ${problem}`);
    for (const method of [STORED, DEFLATED]) {
      const file = zip([bootstrap], method);
      expect(refusal(file, architecture)).toBe(`bootstrap: FOLDER/code.zip ${problem}`);
    }
  });

  test('is refused if it is not executable', () => {
    const bootstrap = put('bootstrap', SCRIPT, 0o644);
    expect(refusal(folder)).toBe('bootstrap: FOLDER/bootstrap is not executable; run chmod +x on it');
    expect(refusal(zip([bootstrap]))).toBe(
      'bootstrap: the bootstrap in FOLDER/code.zip is not executable; run chmod +x on it, and zip it again',
    );
    // An archive from Windows has no Unix permissions, so it is accepted.
    synthesize(zip([bootstrap], DEFLATED, WINDOWS));
  });

  test('is refused if it cannot be unpacked', () => {
    expect(refusal(zip([put('bootstrap', SCRIPT)], BZIP2))).toBe(
      'bootstrap: the bootstrap in FOLDER/code.zip cannot be unpacked: compression method 12 is not supported',
    );
    const damaged = zip([put('bootstrap', SCRIPT)]);
    const bytes = fs.readFileSync(damaged);
    // Damages the first byte of content, after the local header, the name and the extra field.
    bytes.fill(0xff, 44, 45);
    fs.writeFileSync(damaged, bytes);
    expect(refusal(damaged)).toMatch(/^bootstrap: the bootstrap in FOLDER\/code.zip cannot be unpacked: /);
  });

  test('is refused if it is a folder', () => {
    fs.mkdirSync(path.join(folder, 'bootstrap'));
    expect(refusal(folder)).toBe(`bootstrap: FOLDER/bootstrap does not exist; ${HINT}`);
  });

  test.each([
    ['the bootstrap itself', () => put('bootstrap', SCRIPT)],
    ['a zip file without one', () => zip([put('other', SCRIPT)])],
    ['an empty file', () => put('code.zip', '')],
    ['a zip file that was cut short', () => put('code.zip', 'PK\x05\x06')],
    [
      'a zip file whose directory offset points outside it',
      () => put('code.zip', `PK\x05\x06${'\xff'.repeat(40)}`),
    ],
  ])('is refused as a file that is %s', (_, make) => {
    const file = make();
    expect(refusal(file)).toBe(
      `bootstrap: FOLDER/${path.basename(file)} is neither a folder nor a zip file with a file named bootstrap ` +
        'at its root',
    );
  });
});

describe('a bootstrap of the package', () => {
  test.each([ARM_64, X86_64])('is the one for the architecture: %s', (architecture) => {
    const file = put(`retry-handler-${architecture.name}.zip`, '');
    expect(packaged(architecture, folder)).toBe(file);
  });

  test('is refused if the package has none for the architecture', () => {
    put('retry-handler-arm64.zip', '');
    expect(() => packaged(X86_64, folder)).toThrow(
      'bootstrap: required, because this package has no retry handler for x86_64; install comeback-cdk from a release, ' +
        `or the one that \`make dist\` puts into dist/; or ${HINT.replace('--arm64', '--x86-64')}`,
    );
  });

  test('is missing in a checkout, which says so', () => {
    expect(refusal(undefined)).toMatch(
      /^bootstrap: required, because this package has no retry handler for arm64; install .*`make dist`.*; or build it/,
    );
  });
});
