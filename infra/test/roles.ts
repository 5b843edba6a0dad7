/** Writes the templates for `tests/conformance/roles.py` to the scratch folder. */
import * as fs from 'node:fs';
import * as path from 'node:path';
import { DefaultStackSynthesizer, type Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Key } from 'aws-cdk-lib/aws-kms';

import { newFunction, newRetries, newStack } from './support';

const { SCRATCH: scratch = '' } = process.env;
const [key, targetFunctions] = JSON.parse(String(process.argv[2])) as [string, string[]];

/** Returns a synthesizer that leaves the parameter `BootstrapVersion` and its rule out of the template. */
function withoutBootstrap(): DefaultStackSynthesizer {
  return new DefaultStackSynthesizer({ generateBootstrapVersionRule: false });
}

function asItShips(): Stack {
  const stack = newStack('Stack', { synthesizer: withoutBootstrap() });
  newRetries(stack).attach(newFunction(stack));
  return stack;
}

function withKeyAndManyFunctions(): Stack {
  const stack = newStack('Stack', { synthesizer: withoutBootstrap() });
  const retries = newRetries(stack, {
    encryptionKey: Key.fromKeyArn(stack, 'Key', key),
    targetFunctions,
  });
  retries.attach(newFunction(stack));
  return stack;
}

function withoutAFunction(): Stack {
  const stack = newStack('Stack', { synthesizer: withoutBootstrap() });
  newRetries(stack);
  return stack;
}

for (const [index, make] of [asItShips, withKeyAndManyFunctions, withoutAFunction].entries()) {
  const template = JSON.stringify(Template.fromStack(make()).toJSON());
  fs.writeFileSync(path.join(scratch, `${String(index)}.json`), template);
}
