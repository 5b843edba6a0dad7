import { CfnParameter, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct, type IConstruct } from 'constructs';
import { expect, test } from 'vitest';

import { type AsyncRetries, type AsyncRetriesProps, EnvelopeStyle, HandlerMetrics, Jitter } from '../src';
import {
  arn,
  newFunction,
  newRetries,
  newStack,
  ref,
  resource,
  resources,
  statements,
  withOne,
} from './support';

const role = (retries: AsyncRetries) => retries.handler.role as IConstruct;
const logGroup = (retries: AsyncRetries) => retries.node.findChild('Handler').node.findChild('Logs');
/** The condition that lets a role use the queues' KMS key only through SQS. */
const VIA_SQS = {
  Condition: {
    StringEquals: {
      'kms:ViaService': { 'Fn::Join': ['', ['sqs.', { Ref: 'AWS::Region' }, '.amazonaws.com']] },
    },
  },
};

const key = (stack: Stack) => new kms.Key(stack, 'Key', { enableKeyRotation: true });

function variables(retries: AsyncRetries): Record<string, unknown> {
  const { Environment } = resource(retries.handler).Properties;
  return (Environment as { Variables: Record<string, unknown> }).Variables;
}

test('both queues keep large messages for 14 days, encrypted', () => {
  const { retries } = withOne();
  for (const queue of [retries.queue, retries.deadLetterQueue]) {
    expect(resource(queue).Properties).toMatchObject({
      MaximumMessageSize: 1_048_576,
      MessageRetentionPeriod: 14 * 24 * 3_600,
      SqsManagedSseEnabled: true,
    });
  }
});

test('both queues outlive their stack, unless the app says otherwise', () => {
  const kept = { DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' };
  const deleted = { DeletionPolicy: 'Delete', UpdateReplacePolicy: 'Delete' };
  const cases: [AsyncRetriesProps, object][] = [
    [{}, kept],
    [{ removalPolicy: RemovalPolicy.DESTROY }, deleted],
  ];
  for (const [props, policies] of cases) {
    const { retries } = withOne(props);
    for (const queue of [retries.queue, retries.deadLetterQueue]) {
      expect(resource(queue)).toMatchObject(policies);
    }
  }
});

test('SQS itself dead-letters no message before its retention ends', () => {
  const { retries } = withOne();
  const { Timeout } = resource(retries.handler).Properties;
  const { VisibilityTimeout, MessageRetentionPeriod, RedrivePolicy } = resource(retries.queue).Properties;
  expect(Timeout).toBe(60);
  expect(VisibilityTimeout).toBeGreaterThanOrEqual(6 * Number(Timeout));
  expect(1_000 * Number(VisibilityTimeout)).toBeGreaterThan(Number(MessageRetentionPeriod));
  expect(RedrivePolicy).toEqual({
    deadLetterTargetArn: arn(retries.deadLetterQueue),
    maxReceiveCount: 1_000,
  });
});

test('without a target nothing is invoked, with a warning', () => {
  const stack = newStack();
  const retries = newRetries(stack);
  const warnings = () => Annotations.fromStack(stack).findWarning('*', Match.anyValue());
  expect(warnings().map(({ id, entry }) => `${id}: ${entry.data as string}`)).toEqual([
    '/Stack/Retries/Handler: targetFunctions (TARGET_FUNCTIONS) is empty, and no function is attached; the handler ' +
      'will keep whatever arrives, and retry nothing [ack: comeback-cdk:noTarget]',
  ]);
  expect(variables(retries).TARGET_FUNCTIONS).toBe('');
  expect(JSON.stringify(statements(role(retries)))).not.toContain('lambda:InvokeFunction');
});

test.each<[string, (retries: AsyncRetries, stack: Stack) => void, AsyncRetriesProps]>([
  [
    'a function',
    (retries, stack) => {
      retries.attach(newFunction(stack));
    },
    {},
  ],
  ['a pattern', () => undefined, { targetFunctions: ['orders'] }],
])('with %s there is no warning', (_, attach, props) => {
  const stack = newStack();
  attach(newRetries(stack, props), stack);
  expect(Annotations.fromStack(stack).findWarning('*', Match.anyValue())).toEqual([]);
});

test('both queues refuse requests without TLS', () => {
  const { stack, retries } = withOne();
  const policies = resources(stack, 'AWS::SQS::QueuePolicy').map(({ Properties }) => Properties);
  const tlsOnly = (queue: sqs.IQueue) => ({
    Queues: [ref(queue)],
    PolicyDocument: {
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Deny',
          Principal: { AWS: '*' },
          Action: 'sqs:*',
          Resource: arn(queue),
          Condition: { Bool: { 'aws:SecureTransport': 'false' } },
        },
      ],
    },
  });
  expect(policies).toEqual([tlsOnly(retries.deadLetterQueue), tlsOnly(retries.queue)]);
});

test('the mapping passes batches of ten and keeps failed messages', () => {
  const { stack, retries } = withOne();
  expect(resources(stack, 'AWS::Lambda::EventSourceMapping').map(({ Properties }) => Properties)).toEqual([
    {
      EventSourceArn: arn(retries.queue),
      FunctionName: ref(retries.handler),
      BatchSize: 10,
      MaximumBatchingWindowInSeconds: 0,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      ScalingConfig: { MaximumConcurrency: 10 },
    },
  ]);
});

test('the handler', () => {
  const { retries } = withOne();
  const { Code, Environment, Description, ...properties } = resource(retries.handler).Properties;
  expect([Code, Environment, Description]).not.toContain(undefined);
  expect(properties).toEqual({
    Tags: [{ Key: 'comeback:version', Value: expect.any(String) as string }],
    Runtime: 'provided.al2023',
    Handler: 'bootstrap',
    Architectures: ['arm64'],
    MemorySize: 256,
    Timeout: 60,
    Role: arn(role(retries)),
    LoggingConfig: { LogGroup: ref(logGroup(retries)) },
    RecursiveLoop: 'Allow',
  });
  expect(resource(logGroup(retries))).toMatchObject({
    Properties: { RetentionInDays: 30 },
    DeletionPolicy: 'Delete',
  });
});

test('the environment, with the defaults', () => {
  const { retries, orders } = withOne();
  expect(variables(retries)).toEqual({
    RETRY_QUEUE_URL: ref(retries.queue),
    DEAD_LETTER_QUEUE_URL: ref(retries.deadLetterQueue),
    TARGET_FUNCTIONS: arn(orders),
    MAX_AGE: '86400',
    MAX_RETRIES: '1000',
    BASE_BACKOFF: '10',
    MAX_BACKOFF: '3600',
    JITTER: 'full',
    ENVELOPE: 'wrap',
    DIRECTIVES: 'on',
    METRICS: 'off',
    NON_RETRYABLE_ERRORS: '',
    POLICIES: '',
    HIDE_UP_TO: '50000',
    MAXIMUM_CONCURRENCY: '10',
    PAUSES: { 'Fn::Join': ['', ['/comeback/', { Ref: 'AWS::StackName' }, '/StackRetriesF51ABC00/pauses']] },
  });
});

test('two AsyncRetries in one stack have separate pauses', () => {
  const stack = newStack();
  const both = ['One', 'Two'].map((id) => newRetries(new Construct(stack, id)));
  const [one, two] = both.map((retries) => variables(retries).PAUSES);
  expect(one).not.toEqual(two);
});

test.each<[AsyncRetriesProps, string]>([
  [{ hideUpTo: 0 }, '0'],
  [{ hideUpTo: 55_000, alwaysHide: false }, '55000'],
  [{ alwaysHide: true }, 'always'],
])('%j reaches the environment', (props, value) => {
  expect(variables(withOne(props).retries).HIDE_UP_TO).toBe(value);
});

test('every prop of the policy reaches the environment', () => {
  const { retries } = withOne({
    maxAge: Duration.days(14),
    maxRetries: 0,
    baseBackoff: Duration.minutes(1),
    maxBackoff: Duration.hours(2),
    jitter: Jitter.DECORRELATED,
    envelope: EnvelopeStyle.INLINE,
    directives: false,
    metrics: HandlerMetrics.TARGET,
    nonRetryableErrors: ['Validation*', 'Oops'],
  });
  expect(variables(retries)).toMatchObject({
    MAX_AGE: '1209600',
    MAX_RETRIES: '0',
    BASE_BACKOFF: '60',
    MAX_BACKOFF: '7200',
    JITTER: 'decorrelated',
    ENVELOPE: 'inline',
    DIRECTIVES: 'off',
    METRICS: 'target',
    NON_RETRYABLE_ERRORS: 'Validation*,Oops',
  });
});

test('a list of backoffs replaces base and cap', () => {
  const { retries } = withOne({ backoffs: [Duration.seconds(20), Duration.minutes(5)] });
  const given = variables(retries);
  expect(given).toMatchObject({ BACKOFFS: '20,300' });
  expect(Object.keys(given)).not.toContain('BASE_BACKOFF');
  expect(Object.keys(given)).not.toContain('MAX_BACKOFF');
});

test('a value known only at deployment is left to the handler', () => {
  const stack = newStack();
  const parameter = (id: string) => new CfnParameter(stack, id, { type: 'Number' }).valueAsNumber;
  const retries = newRetries(stack, {
    targetFunctions: ['orders'],
    maxAge: Duration.seconds(parameter('Age')),
    maxRetries: parameter('Most'),
    maxBackoff: Duration.seconds(parameter('Cap')),
    memorySize: parameter('Memory'),
    hideUpTo: parameter('Hidden'),
    maxConcurrency: parameter('Pollers'),
  });
  expect(variables(retries)).toMatchObject({
    MAX_AGE: { Ref: 'Age' },
    MAX_RETRIES: { Ref: 'Most' },
    MAX_BACKOFF: { Ref: 'Cap' },
    HIDE_UP_TO: { Ref: 'Hidden' },
    MAXIMUM_CONCURRENCY: { Ref: 'Pollers' },
  });
  const [mapping] = resources(stack, 'AWS::Lambda::EventSourceMapping');
  expect(mapping?.Properties.ScalingConfig).toEqual({ MaximumConcurrency: { Ref: 'Pollers' } });
  expect(resource(retries.handler).Properties.MemorySize).toEqual({ Ref: 'Memory' });
});

test('the other props', () => {
  const { stack, retries } = withOne({
    architecture: lambda.Architecture.X86_64,
    memorySize: 512,
    batchSize: 5,
    maxConcurrency: 2,
    logRetention: logs.RetentionDays.ONE_YEAR,
  });
  expect(resource(retries.handler).Properties).toMatchObject({ Architectures: ['x86_64'], MemorySize: 512 });
  const [mapping] = resources(stack, 'AWS::Lambda::EventSourceMapping');
  expect(mapping?.Properties).toMatchObject({ BatchSize: 5, ScalingConfig: { MaximumConcurrency: 2 } });
  expect(variables(retries).MAXIMUM_CONCURRENCY).toBe('2');
  expect(resource(logGroup(retries)).Properties.RetentionInDays).toBe(365);
});

test("the handler's permissions are exactly the calls it makes", () => {
  const { retries, orders } = withOne();
  expect(resource(role(retries)).Properties).toEqual({
    AssumeRolePolicyDocument: {
      Version: '2012-10-17',
      Statement: [
        { Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' },
      ],
    },
  });
  expect(statements(role(retries))).toEqual([
    {
      Sid: 'TakeFromTheRetryQueue',
      Effect: 'Allow',
      Action: [
        'sqs:ReceiveMessage',
        'sqs:DeleteMessage',
        'sqs:GetQueueAttributes',
        'sqs:ChangeMessageVisibility',
      ],
      Resource: arn(retries.queue),
    },
    { Sid: 'DeadLetter', Effect: 'Allow', Action: 'sqs:SendMessage', Resource: arn(retries.deadLetterQueue) },
    { Sid: 'Move', Effect: 'Allow', Action: 'sqs:SendMessage', Resource: arn(retries.queue) },
    {
      Sid: 'ReadPauses',
      Effect: 'Allow',
      Action: 'ssm:GetParameter',
      Resource: {
        'Fn::Join': [
          '',
          [
            'arn:',
            { Ref: 'AWS::Partition' },
            ':ssm:',
            { Ref: 'AWS::Region' },
            ':',
            { Ref: 'AWS::AccountId' },
            ':parameter/comeback/',
            { Ref: 'AWS::StackName' },
            '/StackRetriesF51ABC00/pauses',
          ],
        ],
      },
    },
    {
      Sid: 'Log',
      Effect: 'Allow',
      Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
      Resource: arn(logGroup(retries)),
    },
    {
      Sid: 'ReinvokeTargets',
      Effect: 'Allow',
      Action: 'lambda:InvokeFunction',
      Resource: [arn(orders), { 'Fn::Join': ['', [arn(orders), ':*']] }],
    },
  ]);
});

test('name patterns are allowed up front, and ARNs as given', () => {
  const stack = newStack('Stack', { env: { account: '123456789012', region: 'eu-west-1' } });
  const entry = 'arn:aws:lambda:us-east-1:123456789012:function:billing:live';
  const retries = newRetries(stack, { targetFunctions: ['orders-*', entry] });
  const orders = {
    'Fn::Join': ['', ['arn:', { Ref: 'AWS::Partition' }, ':lambda:eu-west-1:123456789012:function:orders-*']],
  };
  expect(JSON.stringify(variables(retries).TARGET_FUNCTIONS)).toBe(
    JSON.stringify(orders).replace('orders-*', `orders-*,${entry}`),
  );
  expect(statements(role(retries))).toContainEqual({
    Sid: 'ReinvokeTargets',
    Effect: 'Allow',
    Action: 'lambda:InvokeFunction',
    Resource: [
      orders,
      JSON.parse(JSON.stringify(orders).replace('orders-*', 'orders-*:*')),
      entry,
      `${entry}:*`,
    ],
  });
});

test('a key of the customer encrypts both queues, and both sides may use it', () => {
  const stack = newStack();
  const encryptionKey = key(stack);
  const retries = newRetries(stack, { encryptionKey });
  const orders = newFunction(stack);
  retries.attach(orders);
  for (const queue of [retries.queue, retries.deadLetterQueue]) {
    const { Properties } = resource(queue);
    expect(Properties).toMatchObject({
      MaximumMessageSize: 1_048_576,
      MessageRetentionPeriod: 14 * 24 * 3_600,
      KmsMasterKeyId: arn(encryptionKey),
      KmsDataKeyReusePeriodSeconds: 3_600,
    });
    expect(Properties).not.toHaveProperty('SqsManagedSseEnabled');
  }
  const use = {
    Effect: 'Allow',
    Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
    Resource: arn(encryptionKey),
    ...VIA_SQS,
  };
  expect(statements(role(retries))).toContainEqual(use);
  expect(statements(orders.role as IConstruct)).toContainEqual(use);
});

test('messages to the retry queue are encrypted even if the dead-letter queue has no key', () => {
  const stack = newStack();
  const encryptionKey = key(stack);
  const retries = newRetries(stack, { encryptionKey, deadLetterQueue: new sqs.Queue(stack, 'Own') });
  expect(statements(role(retries))).toContainEqual({
    Effect: 'Allow',
    Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
    Resource: arn(encryptionKey),
    ...VIA_SQS,
  });
});

test.each<[sqs.QueueProps, string[]]>([
  [
    {},
    [
      'SQS deletes dead-letters from this queue after 345600 s; with retentionPeriod: Duration.days(14) there is more ' +
        'time to redrive them [ack: comeback-cdk:deadLettersExpire]',
    ],
  ],
  [{ retentionPeriod: Duration.days(14) }, []],
])(
  "a dead-letter queue of the app's own, with %j, is warned of if it keeps dead-letters too short",
  (props, expected) => {
    const stack = newStack();
    newRetries(stack, { deadLetterQueue: new sqs.Queue(stack, 'Own', props), targetFunctions: ['orders'] });
    const warnings = Annotations.fromStack(stack).findWarning('*', Match.anyValue());
    expect(warnings.map(({ entry }) => entry.data)).toEqual(expected);
  },
);

test("a dead-letter queue of the app's own, with the app's own key", () => {
  const stack = newStack();
  const ownKey = key(stack);
  const own = new sqs.Queue(stack, 'Own', {
    encryptionMasterKey: ownKey,
    encryption: sqs.QueueEncryption.KMS,
  });
  const retries = newRetries(stack, { deadLetterQueue: own, targetFunctions: ['orders'] });
  expect(retries.deadLetterQueue).toBe(own);
  expect(resources(stack, 'AWS::SQS::Queue')).toHaveLength(2);
  expect(resource(retries.queue).Properties).toMatchObject({
    RedrivePolicy: { deadLetterTargetArn: arn(own), maxReceiveCount: 1_000 },
    SqsManagedSseEnabled: true,
  });
  expect(variables(retries).DEAD_LETTER_QUEUE_URL).toEqual(ref(own));
  const granted = statements(role(retries));
  expect(granted).toContainEqual(expect.objectContaining({ Sid: 'DeadLetter', Resource: arn(own) }));
  expect(granted).toContainEqual({
    Effect: 'Allow',
    Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
    Resource: arn(ownKey),
    ...VIA_SQS,
  });
  expect(granted).toHaveLength(7);
});

test('metrics', () => {
  const { stack, retries } = withOne();
  const seen = [retries.metricFailures(), retries.metricWaiting(), retries.metricDeadLetters()].map(
    (metric) => {
      const { namespace, metricName, statistic, dimensions } = metric;
      return [namespace, metricName, statistic, stack.resolve(dimensions)] as unknown[];
    },
  );
  const name = (queue: sqs.IQueue) => ({ QueueName: stack.resolve(queue.queueName) as unknown });
  expect(seen).toEqual([
    ['AWS/SQS', 'NumberOfMessagesSent', 'Sum', name(retries.queue)],
    ['AWS/SQS', 'ApproximateNumberOfMessagesNotVisible', 'Maximum', name(retries.queue)],
    ['AWS/SQS', 'ApproximateNumberOfMessagesVisible', 'Maximum', name(retries.deadLetterQueue)],
  ]);
  expect(retries.metricWaiting({ period: Duration.minutes(1) }).period.toSeconds()).toBe(60);
});
