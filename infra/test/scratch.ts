import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

/** Creates a folder for everything that the tests write, and returns a function that removes it. */
export default function setup(): () => void {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'comeback-cdk-'));
  process.env.SCRATCH = scratch;
  return () => {
    fs.rmSync(scratch, { recursive: true });
  };
}
