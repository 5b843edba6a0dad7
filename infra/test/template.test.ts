import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { Stage } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as kms from 'aws-cdk-lib/aws-kms';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { AwsSolutionsChecks } from 'cdk-nag';
import { expect, test } from 'vitest';

import { newFunction, newRetries, newStack, REPOSITORY, withOne } from './support';

test('the whole template', () => {
  const { stack, retries } = withOne({ targetFunctions: ['billing-*'] });
  retries.monitor();
  const { Resources, Outputs } = Template.fromStack(stack).toJSON() as Record<string, unknown>;
  expect(Outputs).toBeUndefined();
  const hash = /[0-9a-f]{64}\.zip/g;
  expect(JSON.parse(JSON.stringify(Resources).replace(hash, 'BOOTSTRAP'))).toMatchSnapshot();
});

/** Accepted cfn-lint findings, which occur in every template that CDK writes. */
const CDKS_OWN = {
  W3005: 'CDK depends on a role and its policy, although it also refers to the role',
};

test.each(['SSE-SQS', 'a key of the customer'])('cfn-lint, with %s', (encryption) => {
  const stack = newStack();
  const encryptionKey = encryption === 'SSE-SQS' ? undefined : new kms.Key(stack, 'Key');
  const retries = newRetries(stack, { targetFunctions: ['billing-*'], encryptionKey });
  retries.monitor({ dashboard: true, topic: new Topic(stack, 'OnCall') });
  const orders = newFunction(stack);
  for (const target of [orders, orders.currentVersion, orders.addAlias('live')]) {
    retries.attach(target);
  }
  const file = path.join(String(Stage.of(stack)?.outdir), 'template.json');
  fs.writeFileSync(file, JSON.stringify(Template.fromStack(stack).toJSON()));
  const lint = path.join(REPOSITORY, '.tools', 'sam', 'bin', 'cfn-lint');
  const ignored = Object.keys(CDKS_OWN).flatMap((rule) => ['--ignore-checks', rule]);
  const { error, stdout, stderr } = spawnSync(lint, ['--template', file, ...ignored], { encoding: 'utf8' });
  expect([error, stdout, stderr]).toEqual([undefined, '', '']);
});

const QUALIFIED = 'the record of a failed invocation carries a version or an alias, which only ARN:* allows';
const TESTS_OWN = "the function that is attached here is the test's own";

/**
 * The reason for accepting each of cdk-nag's findings in a stack with one attached function and one function pattern.
 */
const EXPLAINED: Record<string, string> = {
  'Stack/Retries/Handler/Role/DefaultPolicy/Resource: AwsSolutions-IAM5[Resource::<OrdersA9B65338.Arn>:*]':
    QUALIFIED,
  'Stack/Retries/Handler/Role/DefaultPolicy/Resource: AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:lambda:<AWS::Region>:<AWS::AccountId>:function:billing-*]':
    'the app asked for this pattern',
  'Stack/Retries/Handler/Role/DefaultPolicy/Resource: AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:lambda:<AWS::Region>:<AWS::AccountId>:function:billing-*:*]':
    QUALIFIED,
  'Stack/Orders/ServiceRole/Resource: AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]':
    TESTS_OWN,
  'Stack/Orders/Resource: AwsSolutions-L1': TESTS_OWN,
};

test('every cdk-nag finding is explained', () => {
  const { stack, retries } = withOne({ targetFunctions: ['billing-*'] });
  retries.monitor({ dashboard: true });
  const { violations } = new AwsSolutionsChecks(stack.node.root).validateScope(stack);
  const found = violations.flatMap(({ ruleName, violatingResources }) =>
    violatingResources.map(({ constructPath }) => `${String(constructPath)}: ${ruleName}`),
  );
  expect(found.sort()).toEqual(Object.keys(EXPLAINED).sort());
});
