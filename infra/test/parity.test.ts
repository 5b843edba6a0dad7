import { execFileSync } from 'node:child_process';
import * as path from 'node:path';
import { type CfnElement, CfnResource, Duration, type Stack } from 'aws-cdk-lib';
import { Template as Synthesized } from 'aws-cdk-lib/assertions';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { expect, test } from 'vitest';

import { type AsyncRetriesProps, type MonitorOptions } from '../src';
import { canonical, differences, type Template } from './parity/canonical';
import { newFunction, newRetries, newStack, REPOSITORY, withOne } from './support';

/** The construct's resources, each with the name of its counterpart in template.yaml after the SAM transform. */
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
  ['Retries/Monitor/DeadLetters/Resource', 'DeadLettersAlarm'],
  ['Retries/Monitor/DeadLettersExpire/Resource', 'DeadLettersExpireAlarm'],
  ['Retries/Monitor/LostPayloadFilter/Resource', 'LostPayloadFilter'],
  ['Retries/Monitor/LostPayload/Resource', 'LostPayloadAlarm'],
  ['LostOnTheWay*/Resource', 'LostOnTheWayAlarm'],
  ['Retries/Monitor/HandlerErrors/Resource', 'HandlerErrorsAlarm'],
  ['Retries/Monitor/Throttled/Resource', 'ThrottledAlarm'],
  ['Retries/Monitor/NeedsAnOperatorFilter/Resource', 'NeedsAnOperatorFilter'],
  ['Retries/Monitor/NeedsAnOperator/Resource', 'NeedsAnOperatorAlarm'],
  ['Retries/Monitor/Stalled/Resource', 'StalledAlarm'],
  ['Retries/Monitor/Late/Resource', 'LateAlarm'],
  ['Retries/Monitor/Crowded/Resource', 'CrowdedAlarm'],
  ['Retries/Monitor/EventLifeQuery', 'EventLifeQuery'],
  ['Retries/Monitor/WaitingByFunctionQuery', 'WaitingByFunctionQuery'],
  ['Retries/Monitor/ReasonsByHourQuery', 'ReasonsByHourQuery'],
  ['Retries/Monitor/RemediesQuery', 'RemediesQuery'],
  ['Retries/Monitor/Dashboard/Resource', 'RetryDashboard'],
]);

const DEPENDS_ON_ROLE =
  'CDK makes the policy a resource of its own, which must be there before the function runs';
const SAM_BUILD = 'it tells the SAM CLI how to build';
const SAM_TAG = 'the SAM transform tags what it makes';
const ENFORCE_SSL = 'enforceSSL writes the same statement without a Sid, and everyone as {"AWS":"*"}';
const USERS_OWN = "the function and its role are their owner's; what attach gives to them is compared";

const USED_TWICE = 'a stack may have the construct twice, each with pauses and queries of its own';
const STACK = '${AWS::StackName}';
const PARAMETER = 'arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter';

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
  'EventLifeQuery.Name': USED_TWICE,
  'WaitingByFunctionQuery.Name': USED_TWICE,
  'ReasonsByHourQuery.Name': USED_TWICE,
  'RemediesQuery.Name': USED_TWICE,
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
  const transform = path.join(REPOSITORY, 'packaging', 'expand.py');
  const printed = execFileSync(python, [transform, path.join(REPOSITORY, 'template.yaml')], {
    encoding: 'utf8',
  });
  const template = JSON.parse(printed) as Template;
  const names = new Map(Object.keys(template.Resources).map((name) => [name, name]));
  return canonical(template, names, parameters);
}

function constructsTemplate(stack: Stack): Record<string, unknown> {
  return canonical(Synthesized.fromStack(stack).toJSON() as Template, counterparts(stack));
}

function counterparts(stack: Stack): Map<string, string> {
  const resources = stack.node.findAll().filter((construct) => CfnResource.isCfnResource(construct));
  const logicalId = (resource: CfnElement) => stack.resolve(resource.logicalId) as string;
  const named = resources.map((resource): [string, string | undefined] => [
    logicalId(resource),
    COUNTERPARTS.get(
      resource.node.path.slice(`${stack.node.path}/`.length).replace(/(LostOnTheWay)\w+/, '$1*'),
    ),
  ]);
  return new Map(named.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

/** Describes the differences between two templates. For an intended difference, returns its key in `INTENDED`. */
function found(sam: Record<string, unknown>, construct: Record<string, unknown>): string[] {
  const all = [...differences(sam, construct)].map(([where, [left, right]]) => {
    const sides = `template.yaml has ${JSON.stringify(left)}, the construct ${JSON.stringify(right)}`;
    const intended = Object.keys(INTENDED).find((path) => `${where}.`.startsWith(`${path}.`));
    return intended ?? `${where}: ${sides}`;
  });
  return [...new Set(all)].sort();
}

/** Returns the resources of a stack with the example target and the monitors in `monitored`. */
function withExample(props: AsyncRetriesProps, ...monitored: MonitorOptions[]): Record<string, unknown> {
  const { stack, retries } = withOne(props);
  for (const options of monitored) {
    retries.monitor(options);
  }
  return constructsTemplate(stack);
}

const intended = (leftOut: (path: string) => boolean) =>
  Object.keys(INTENDED)
    .filter((path) => !leftOut(path))
    .sort();

test('the construct differs from template.yaml only as intended', () => {
  expect(found(samTemplate(), withExample({}, {}))).toEqual(intended(() => false));
});

test('the same with ceilings and a policy of its own for the example', () => {
  const stack = newStack();
  const retries = newRetries(stack, { backoffs: [20, 300].map((seconds) => Duration.seconds(seconds)) });
  retries.attach(newFunction(stack), {
    policy: { maxAge: Duration.hours(2), maxBackoff: Duration.minutes(15), nonRetryableErrors: ['A', 'B*'] },
  });
  retries.monitor();
  const FunctionPolicies = '${ExampleTarget} MAX_AGE=7200 MAX_BACKOFF=900 NON_RETRYABLE_ERRORS=A,B*';
  const sam = samTemplate({ Backoffs: '20,300', FunctionPolicies });
  expect(found(sam, constructsTemplate(stack))).toEqual(intended(() => false));
  const handler = sam.RetryHandler as { Environment: { Variables: Record<string, string | undefined> } };
  expect(handler.Environment.Variables).toMatchObject({ BACKOFFS: '20,300', MAX_BACKOFF: undefined });
});

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:on-call';

test.each<[Record<string, string>, AsyncRetriesProps, boolean]>([
  [{ Dashboard: 'on' }, {}, false],
  [{ Dashboard: 'on', AlarmTopicArn: TOPIC, HideUpTo: '200' }, { hideUpTo: 200 }, true],
  [{ Dashboard: 'on', HideUpTo: 'always' }, { alwaysHide: true }, false],
])('the same with a dashboard: %j', (parameters, props, withTopic) => {
  const { stack, retries } = withOne(props);
  const topic = withTopic ? Topic.fromTopicArn(stack, 'OnCall', TOPIC) : undefined;
  retries.monitor({ topic, dashboard: true });
  const sam = samTemplate(parameters);
  expect(found(sam, constructsTemplate(stack))).toEqual(intended(() => false));
  expect(sam).toHaveProperty('RetryDashboard');
  expect(JSON.stringify(sam).split(`["${TOPIC}"]`).length - 1).toBe(withTopic ? 20 : 0);
});

const KEY = 'arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const USE_KEY = `kms:Decrypt kms:GenerateDataKey on ${KEY}.Sid`;

test('the same with a key', () => {
  const stack = newStack();
  const retries = newRetries(stack, { encryptionKey: Key.fromKeyArn(stack, 'Key', KEY) });
  retries.attach(newFunction(stack));
  retries.monitor();
  const sam = samTemplate({ KmsKeyArn: KEY });
  // The construct's grants have no Sid. Everything else about the key is equal.
  const sids = ['RetryHandlerRole', 'ExampleTargetRole'].map((role) => `${role}.Allowed.${USE_KEY}`);
  const all = found(sam, constructsTemplate(stack)).map(
    (difference) => difference.split(': template.yaml')[0],
  );
  expect(all.sort()).toEqual([...intended(() => false), ...sids].sort());
  for (const queue of ['RetryQueue', 'DeadLetterQueue']) {
    const expected = {
      KmsMasterKeyId: KEY,
      KmsDataKeyReusePeriodSeconds: '3600',
      SqsManagedSseEnabled: undefined,
    };
    expect(sam[queue]).toMatchObject(expected);
  }
});

test('without alarms and a dashboard nothing is monitored', () => {
  const sam = samTemplate({ Alarms: 'off' });
  expect(found(sam, withExample({}))).toEqual(intended((path) => path.endsWith('Query.Name')));
  expect(Object.keys(sam).filter((name) => /Alarm|Query|Filter|Dashboard/.test(name))).toEqual([]);
});

test('a dashboard without alarms shows none', () => {
  const [alone, both] = [{ Alarms: 'off' }, { Alarms: 'on' }].map((parameters) => {
    const template = samTemplate({ Dashboard: 'on', ...parameters });
    expect(Object.keys(template).filter((name) => name.endsWith('Query'))).toHaveLength(4);
    return (template.RetryDashboard as { DashboardBody: { widgets: { type: string }[] } }).DashboardBody
      .widgets;
  });
  expect(alone).toEqual(both?.filter(({ type }) => type !== 'alarm'));
  expect(alone).toHaveLength((both?.length ?? 0) - 1);
});

const ARN = 'arn:aws:lambda:eu-west-1:123456789012:function:';

test.each([
  ['nothing attached', []],
  ['functions of their own', [`${ARN}orders`, `${ARN}billing-*:live`]],
])('the same without the example, with %s', (_, targetFunctions) => {
  const stack = newStack();
  newRetries(stack, { targetFunctions }).monitor({ dashboard: true });
  const sam = samTemplate({ Example: 'no', Dashboard: 'on', TargetFunctions: targetFunctions.join(',') });
  const construct = constructsTemplate(stack);
  const ofExample = (path: string) => path.startsWith('Example') || path.includes('lambda:InvokeFunction');
  expect(found(sam, construct)).toEqual(intended(ofExample));
  expect(Object.keys(sam).filter((name) => name.startsWith('Example'))).toEqual([]);
  expect(sam).not.toHaveProperty('LostOnTheWayAlarm');
  expect(JSON.stringify(construct).includes('lambda:InvokeFunction')).toBe(targetFunctions.length > 0);
});
