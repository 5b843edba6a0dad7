import * as fs from 'node:fs';
import * as path from 'node:path';
import * as lambda from 'aws-cdk-lib/aws-lambda';

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
 * @throws if it holds none; of a folder, also if the one it holds is for another architecture or may not be executed
 */
export function checkBootstrap(bootstrap: string, architecture: lambda.Architecture): void {
  const found = fs.statSync(bootstrap, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new Error(`bootstrap: ${bootstrap} does not exist; ${buildHint(architecture)}`);
  }
  if (found.isDirectory()) {
    checkBinary(path.join(bootstrap, BOOTSTRAP), architecture);
  } else if (!zipEntries(fs.readFileSync(bootstrap)).includes(BOOTSTRAP)) {
    throw new Error(
      `bootstrap: ${bootstrap} is neither a folder nor a zip file with a file named bootstrap at its root`,
    );
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
  return `--${architecture.name.replace('_', '-')}`;
}

function checkBinary(binary: string, architecture: lambda.Architecture): void {
  if (!fs.existsSync(binary)) {
    throw new Error(`bootstrap: ${binary} does not exist; ${buildHint(architecture)}`);
  }
  const machine = elfMachine(fs.readFileSync(binary));
  if (machine !== undefined && machine !== architecture.name) {
    throw new Error(
      `bootstrap: ${binary} is built for ${machine}, but architecture is ${architecture.name}; ` +
        buildHint(architecture),
    );
  }
  try {
    fs.accessSync(binary, fs.constants.X_OK);
  } catch {
    throw new Error(`bootstrap: ${binary} may not be executed; run chmod +x on it`);
  }
}

/** The processor an executable is for; nothing for a script. */
function elfMachine(executable: Buffer): string | undefined {
  const isElf = executable.length >= 20 && executable.subarray(0, 4).equals(Buffer.from('\x7fELF'));
  return isElf ? MACHINES.get(executable.readUInt16LE(18)) : undefined;
}

/** The paths in a zip file's central directory (APPNOTE.TXT, 4.3.12 and 4.3.16); none for any other file. */
function zipEntries(zip: Buffer): string[] {
  const end = zip.lastIndexOf('PK\x05\x06');
  const names: string[] = [];
  if (end === -1 || end + 22 > zip.length) {
    return names;
  }
  let entry = zip.readUInt32LE(end + 16);
  while (entry + 46 <= end && zip.readUInt32LE(entry) === 0x02014b50) {
    const lengths = [28, 30, 32].map((offset) => zip.readUInt16LE(entry + offset));
    const [name = 0, extra = 0, comment = 0] = lengths;
    names.push(zip.toString('utf8', entry + 46, entry + 46 + name));
    entry += 46 + name + extra + comment;
  }
  return names;
}
