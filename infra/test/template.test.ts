import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { type App, Stack, Validations } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as kms from 'aws-cdk-lib/aws-kms';
import { AwsSolutionsChecks } from 'cdk-nag';
import { expect, test } from 'vitest';

import { type AsyncRetries } from '../src';
import { newFunction, newRetries, newStack, refusal, REPOSITORY, withOne } from './support';

test('the whole template', () => {
  const { stack } = withOne({ targetFunctions: ['billing-*'] });
  const { Resources, Outputs } = Template.fromStack(stack).toJSON() as Record<string, unknown>;
  expect(Outputs).toBeUndefined();
  const hash = /[0-9a-f]{64}\.zip/g;
  expect(JSON.parse(JSON.stringify(Resources).replace(hash, 'BOOTSTRAP'))).toMatchSnapshot();
});

/** What cfn-lint says of a template that CDK writes for everything, whatever the construct does. */
const CDKS_OWN = {
  W3005: 'CDK depends on a role and its policy, although it also refers to the role',
};

test.each(['SSE-SQS', 'a key of the customer'])('cfn-lint, with %s', (encryption) => {
  const stack = newStack();
  const encryptionKey = encryption === 'SSE-SQS' ? undefined : new kms.Key(stack, 'Key');
  const retries = newRetries(stack, { targetFunctions: ['billing-*'], encryptionKey });
  const orders = newFunction(stack);
  for (const target of [orders, orders.currentVersion, orders.addAlias('live')]) {
    retries.attach(target);
  }
  const file = path.join((stack.node.root as App).outdir, 'template.json');
  fs.writeFileSync(file, JSON.stringify(Template.fromStack(stack).toJSON()));
  const lint = path.join(REPOSITORY, '.tools', 'sam', 'bin', 'cfn-lint');
  const ignored = Object.keys(CDKS_OWN).flatMap((rule) => ['--ignore-checks', rule]);
  execFileSync(lint, ['--template', file, ...ignored], { stdio: 'pipe' });
});
