import { execFileSync } from 'node:child_process';
import * as path from 'node:path';
import { type CfnElement, CfnResource, type Stack } from 'aws-cdk-lib';
import { Template as Synthesized } from 'aws-cdk-lib/assertions';
import { expect, test } from 'vitest';

import { canonical, differences, type Template } from './parity/canonical';
import { newRetries, newStack, REPOSITORY, withOne } from './support';

/** Each resource of the construct by the name of its counterpart in template.yaml, after the SAM transform. */
const COUNTERPARTS = new Map([
  ['Retries/Queue/Resource', 'RetryQueue'],
  ['Retries/Queue/Policy/Resource', 'RetryQueueTlsOnly'],
  ['Retries/DeadLetterQueue/Resource', 'DeadLetterQueue'],
  ['Retries/DeadLetterQueue/Policy/Resource', 'DeadLetterQueueTlsOnly'],
  ['Retries/Handler/Function/Resource', 'RetryHandler'],
  ['Retries/Handler/Role/Resource', 'RetryHandlerRole'],
  ['Retries/Handler/Logs/Resource', 'RetryHandlerLogs'],
  ['Retries/Handler/Mapping/Resource', 'RetryHandlerRetryQueue'],
  ['Orders/Resource', 'ExampleTarget'],
  ['Orders/ServiceRole/Resource', 'ExampleTargetRole'],
  ['Orders/EventInvokeConfig/Resource', 'ExampleTargetEventInvokeConfig'],
]);

const DEPENDS_ON_ROLE =
  'CDK makes the policy a resource of its own, which must be there before the function runs';
const SAM_BUILD = 'it tells the SAM CLI how to build';
const SAM_TAG = 'the SAM transform tags what it makes';
const ENFORCE_SSL = 'enforceSSL writes the same statement without a Sid, and everyone as {"AWS":"*"}';
const USERS_OWN = "the function and its role are their owner's; what attach gives to them is compared";

const USED_TWICE = 'a stack may have the construct twice, each with pauses of its own';
const STACK = '${AWS::StackName}';
const PARAMETER = 'arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter';

/** The intended differences, and the reason for each. */
const INTENDED: Record<string, string> = {
  'RetryHandler.Code': 'each tool uploads the bootstrap in its own way',
  'RetryHandler.DependsOn': DEPENDS_ON_ROLE,
  'RetryHandler.Metadata': SAM_BUILD,
  'RetryHandler.Tags': SAM_TAG,
  'RetryHandlerRole.Allowed.lambda:InvokeFunction on ${ExampleTarget.Arn} ${ExampleTarget.Arn}:*.Sid':
    'the example function has a statement of its own, which leaves the template with it',
  'RetryHandler.Environment.Variables.PAUSES': USED_TWICE,
  [`RetryHandlerRole.Allowed.ssm:GetParameter on ${PARAMETER}/comeback/${STACK}/pauses`]: USED_TWICE,
  [`RetryHandlerRole.Allowed.ssm:GetParameter on ${PARAMETER}/comeback/${STACK}/StackRetriesF51ABC00/pauses`]:
    USED_TWICE,
  'RetryHandlerLogs.LogGroupName':
    'a construct leaves physical names to CloudFormation, so that it can be used twice',
  'RetryQueueTlsOnly.PolicyDocument.sqs:* on ${RetryQueue.Arn}.Sid': ENFORCE_SSL,
  'RetryQueueTlsOnly.PolicyDocument.sqs:* on ${RetryQueue.Arn}.Principal': ENFORCE_SSL,
  'DeadLetterQueueTlsOnly.PolicyDocument.sqs:* on ${DeadLetterQueue.Arn}.Sid': ENFORCE_SSL,
  'DeadLetterQueueTlsOnly.PolicyDocument.sqs:* on ${DeadLetterQueue.Arn}.Principal': ENFORCE_SSL,
  'ExampleTarget.Architectures': USERS_OWN,
  'ExampleTarget.Code': USERS_OWN,
  'ExampleTarget.DependsOn': DEPENDS_ON_ROLE,
  'ExampleTarget.Description': USERS_OWN,
  'ExampleTarget.Handler': USERS_OWN,
  'ExampleTarget.LoggingConfig': USERS_OWN,
  'ExampleTarget.MemorySize': USERS_OWN,
  'ExampleTarget.Metadata': SAM_BUILD,
  'ExampleTarget.Runtime': USERS_OWN,
  'ExampleTarget.Tags': SAM_TAG,
  'ExampleTarget.Timeout': USERS_OWN,
  'ExampleTargetEventInvokeConfig.DependsOn':
    'SAM makes it from the function, which cannot depend on the handler that refers to it',
  'ExampleTargetEventInvokeConfig.Metadata': SAM_BUILD,
  ExampleTargetLogs: USERS_OWN,
  'ExampleTargetRole.Allowed.logs:CreateLogStream logs:PutLogEvents on ${ExampleTargetLogs.Arn}': USERS_OWN,
  'ExampleTargetRole.Allowed.sqs:SendMessage on ${RetryQueue.Arn}.Sid':
    'a role may be attached for two AsyncRetries, and one policy cannot hold two statements of one Sid',
  'ExampleTargetRole.ManagedPolicyArns': USERS_OWN,
};

function samTemplate(parameters: Record<string, string> = {}): Record<string, unknown> {
  const python = path.join(REPOSITORY, '.tools', 'sam', 'bin', 'python');
  const transform = path.join(__dirname, 'parity', 'transform.py');
  const printed = execFileSync(python, [transform, path.join(REPOSITORY, 'template.yaml')], {
    encoding: 'utf8',
  });
  const template = JSON.parse(printed) as Template;
  const names = new Map(Object.keys(template.Resources).map((name) => [name, name]));
  return canonical(template, names, parameters);
}

function constructsTemplate(stack = withOne().stack): Record<string, unknown> {
  return canonical(Synthesized.fromStack(stack).toJSON() as Template, counterparts(stack));
}

function counterparts(stack: Stack): Map<string, string> {
  const resources = stack.node.findAll().filter((construct) => CfnResource.isCfnResource(construct));
  const logicalId = (resource: CfnElement) => stack.resolve(resource.logicalId) as string;
  const named = resources.map((resource): [string, string | undefined] => [
    logicalId(resource),
    COUNTERPARTS.get(resource.node.path.slice(`${stack.node.path}/`.length)),
  ]);
  return new Map(named.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

/** Each difference by what explains it, or else as it stands. */
function found(sam: Record<string, unknown>, construct: Record<string, unknown>): string[] {
  const all = [...differences(sam, construct)].map(([where, [left, right]]) => {
    const sides = `template.yaml has ${JSON.stringify(left)}, the construct ${JSON.stringify(right)}`;
    const intended = Object.keys(INTENDED).find((path) => `${where}.`.startsWith(`${path}.`));
    return intended ?? `${where}: ${sides}`;
  });
  return [...new Set(all)].sort();
}

test('template.yaml and the construct make the same resources, apart from the intended differences', () => {
  expect(found(samTemplate(), constructsTemplate())).toEqual(Object.keys(INTENDED).sort());
});

const ARN = 'arn:aws:lambda:eu-west-1:123456789012:function:';

test.each([
  ['nothing attached', []],
  ['functions of their own', [`${ARN}orders`, `${ARN}billing-*:live`]],
])('so they do without the example, with %s', (_, targetFunctions) => {
  const stack = newStack();
  newRetries(stack, { targetFunctions });
  const sam = samTemplate({ Example: 'no', TargetFunctions: targetFunctions.join(',') });
  const construct = constructsTemplate(stack);
  const withoutExample = ([path]: [string, string]) =>
    !path.startsWith('Example') && !path.includes('lambda:InvokeFunction');
  const intended = Object.entries(INTENDED)
    .filter(withoutExample)
    .map(([path]) => path);
  expect(found(sam, construct)).toEqual(intended.sort());
  expect(Object.keys(sam).filter((name) => name.startsWith('Example'))).toEqual([]);
  expect(JSON.stringify(construct).includes('lambda:InvokeFunction')).toBe(targetFunctions.length > 0);
});
