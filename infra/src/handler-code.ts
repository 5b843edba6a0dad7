import * as fs from 'node:fs';
import * as path from 'node:path';
import { IgnoreMode, Token } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { type Construct } from 'constructs';

import { literal } from './values';
import { type ZipEntry, zipEntry } from './zip';

/** The folder with the released package's zip files, one for each architecture; a checkout does not have it. */
const PACKAGED = path.join(__dirname, '..', 'handler');

/** The file that Lambda starts on its `provided` runtimes. */
const BOOTSTRAP = 'bootstrap';

/** CloudFormation's name for each processor architecture, by its number in an ELF header (`e_machine`). */
const MACHINES = new Map([
  [0x3e, lambda.Architecture.X86_64.name],
  [0xb7, lambda.Architecture.ARM_64.name],
]);

/**
 * Creates the retry handler's Lambda function.
 *
 * @param bootstrap a folder or zip file with the retry handler's `bootstrap`; by default, this package's zip file
 * @throws if there is no executable `bootstrap` for the architecture
 */
export function handlerFunction(
  scope: Construct,
  id: string,
  bootstrap: string | undefined,
  options: lambda.FunctionOptions & { readonly architecture: lambda.Architecture },
): lambda.Function {
  return new lambda.Function(scope, id, {
    ...options,
    runtime: lambda.Runtime.PROVIDED_AL2023,
    handler: BOOTSTRAP,
    code: code(bootstrap ?? packaged(options.architecture), options.architecture),
  });
}

/**
 * Returns the path of this package's zip file for an architecture.
 *
 * @throws if the package does not contain the file
 */
export function packaged(architecture: lambda.Architecture, folder = PACKAGED): string {
  const wanted = literal(architecture.name);
  const zip = path.join(folder, `retry-handler-${wanted}.zip`);
  if (!fs.existsSync(zip)) {
    throw new Error(
      `bootstrap: required, because this package has no retry handler for ${wanted}; install comeback-cdk from a release, ` +
        `or the one that \`make dist\` puts into dist/; or ${buildHint(architecture)}`,
    );
  }
  return zip;
}

/**
 * Returns the code in a folder or zip file.
 *
 * @throws if there is no executable `bootstrap` for this architecture
 */
function code(bootstrap: string, architecture: lambda.Architecture): lambda.Code {
  const found = fs.statSync(bootstrap, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new Error(`bootstrap: ${bootstrap} does not exist; ${buildHint(architecture)}`);
  }
  if (!found.isDirectory()) {
    checkZip(bootstrap, architecture);
    return lambda.Code.fromAsset(bootstrap);
  }
  checkFolder(path.join(bootstrap, BOOTSTRAP), architecture);
  // The folder may contain other files, such as the zip file of an older build.
  return lambda.Code.fromAsset(bootstrap, { exclude: ['/*', '!/bootstrap'], ignoreMode: IgnoreMode.GIT });
}

function buildHint(architecture: lambda.Architecture): string {
  const flag = `--${literal(architecture.name).replace('_', '-')}`;
  return (
    `build it in a checkout of Comeback with \`cargo lambda build --release ${flag} -p retry-handler\`, ` +
    'and give the path of target/lambda/retry-handler there'
  );
}

function checkFolder(binary: string, architecture: lambda.Architecture): void {
  if (fs.statSync(binary, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new Error(`bootstrap: ${binary} does not exist; ${buildHint(architecture)}`);
  }
  checkMachine(binary, fs.readFileSync(binary), architecture);
  try {
    fs.accessSync(binary, fs.constants.X_OK);
  } catch {
    throw new Error(`bootstrap: ${binary} is not executable; run chmod +x on it`);
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
      `bootstrap: the bootstrap in ${zip} is not executable; run chmod +x on it, and zip it again`,
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

/** Returns the processor architecture of an executable; undefined for a script. */
function elfMachine(executable: Buffer): string | undefined {
  const isElf = executable.length >= 20 && executable.subarray(0, 4).equals(Buffer.from('\x7fELF'));
  return isElf ? MACHINES.get(executable.readUInt16LE(18)) : undefined;
}
