import * as fs from 'node:fs';
import * as path from 'node:path';
import { Token } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';

import { literal } from './shown';
import { type ZipEntry, zipEntry } from './zip';

/** The name Lambda starts on its `provided` runtimes. */
const BOOTSTRAP = 'bootstrap';

/** Processors by their number in an ELF header (`e_machine`), in CloudFormation's words. */
const MACHINES = new Map([
  [0x3e, lambda.Architecture.X86_64.name],
  [0xb7, lambda.Architecture.ARM_64.name],
]);

/**
 * Refuses a path that would deploy, and then fail every invocation.
 *
 * @param bootstrap a folder or zip file that should hold a `bootstrap` for this architecture
 * @throws if it holds none, or one that is for another architecture or may not be executed
 */
export function checkBootstrap(bootstrap: string, architecture: lambda.Architecture): void {
  const found = fs.statSync(bootstrap, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new Error(`bootstrap: ${bootstrap} does not exist; ${buildHint(architecture)}`);
  }
  if (found.isDirectory()) {
    checkFolder(path.join(bootstrap, BOOTSTRAP), architecture);
  } else {
    checkZip(bootstrap, architecture);
  }
}

/** How to get a `bootstrap` for this architecture. */
export function buildHint(architecture: lambda.Architecture): string {
  return (
    `build it in a checkout of Comeback with \`cargo lambda build --release ${architectureFlag(architecture)} -p retry-handler\`, ` +
    'and give the path of target/lambda/retry-handler there'
  );
}

/** cargo-lambda's flag for an architecture. */
export function architectureFlag(architecture: lambda.Architecture): string {
  return `--${literal(architecture.name).replace('_', '-')}`;
}

function checkFolder(binary: string, architecture: lambda.Architecture): void {
  if (fs.statSync(binary, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new Error(`bootstrap: ${binary} does not exist; ${buildHint(architecture)}`);
  }
  checkMachine(binary, fs.readFileSync(binary), architecture);
  try {
    fs.accessSync(binary, fs.constants.X_OK);
  } catch {
    throw new Error(`bootstrap: ${binary} may not be executed; run chmod +x on it`);
  }
}

function checkZip(zip: string, architecture: lambda.Architecture): void {
  const entry = entryOf(zip);
  if (entry === undefined) {
    throw new Error(
      `bootstrap: ${zip} is neither a folder nor a zip file with a file named bootstrap at its root`,
    );
  }
  checkMachine(zip, entry.content, architecture);
  if (entry.mode !== undefined && (entry.mode & 0o111) === 0) {
    throw new Error(
      `bootstrap: the bootstrap in ${zip} may not be executed; run chmod +x on it, and zip it again`,
    );
  }
}

function entryOf(zip: string): ZipEntry | undefined {
  try {
    return zipEntry(fs.readFileSync(zip), BOOTSTRAP);
  } catch (error) {
    const problem = `cannot be unpacked: ${(error as Error).message}`;
    throw new Error(`bootstrap: the bootstrap in ${zip} ${problem}`, { cause: error });
  }
}

function checkMachine(where: string, executable: Buffer, architecture: lambda.Architecture): void {
  const machine = elfMachine(executable);
  const known = machine !== undefined && !Token.isUnresolved(architecture.name);
  if (known && machine !== architecture.name) {
    throw new Error(
      `bootstrap: ${where} is built for ${machine}, but architecture is ${architecture.name}; ` +
        buildHint(architecture),
    );
  }
}

/** The processor an executable is for; nothing for a script. */
function elfMachine(executable: Buffer): string | undefined {
  const isElf = executable.length >= 20 && executable.subarray(0, 4).equals(Buffer.from('\x7fELF'));
  return isElf ? MACHINES.get(executable.readUInt16LE(18)) : undefined;
}
