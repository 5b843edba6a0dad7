import { Duration, Stack, Stage } from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import * as destinations from 'aws-cdk-lib/aws-lambda-destinations';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { type IConstruct } from 'constructs';
import { expect, test } from 'vitest';

import { AsyncRetries, EnvelopeStyle, type FunctionPolicy, Jitter } from '../src';
import {
  arn,
  BOOTSTRAP,
  ENV,
  logicalId,
  newApp,
  newFunction,
  newRetries,
  newStack,
  ref,
  refusal,
  resource,
  resources,
  statements,
  withOne,
} from './support';

const ORDERS = 'arn:aws:lambda:eu-west-1:123456789012:function:orders';

/** Returns the invoke configurations of a stack, without the parts that they all share. */
function invokeConfigs(retries: AsyncRetries, stack = Stack.of(retries)): unknown[] {
  return resources(stack, 'AWS::Lambda::EventInvokeConfig').map(({ Properties }) => {
    const { DestinationConfig, MaximumRetryAttempts, MaximumEventAgeInSeconds, ...rest } = Properties;
    expect(DestinationConfig).toEqual({ OnFailure: { Destination: arn(retries.queue) } });
    expect([MaximumRetryAttempts, MaximumEventAgeInSeconds]).toEqual([0, 60]);
    return rest;
  });
}

function variables(retries: AsyncRetries): Record<string, unknown> {
  const { Environment } = resource(retries.handler).Properties;
  return (Environment as { Variables: Record<string, unknown> }).Variables;
}

function targetFunctions(retries: AsyncRetries): unknown {
  return variables(retries).TARGET_FUNCTIONS;
}

function invocable(retries: AsyncRetries): unknown {
  const statement = statements(retries.handler.role as IConstruct).find((one) =>
    JSON.stringify(one).includes('ReinvokeTargets'),
  );
  return (statement as { Resource: unknown }).Resource;
}

/** Returns the logical ids of the handler, its role and the role's policy. */
function handlersParts(retries: AsyncRetries): string[] {
  const role = retries.handler.role as IConstruct;
  return [retries.handler, role, role.node.findChild('DefaultPolicy')].map(logicalId);
}

const anyQualifier = (construct: IConstruct) => ({ 'Fn::Join': ['', [arn(construct), ':*']] });

function warnings(stack: Stack): string[] {
  const found = Annotations.fromStack(stack).findWarning('*', Match.anyValue());
  return found.map(({ id, entry }) => `${id}: ${entry.data as string}`);
}

test('a function', () => {
  const { stack, retries, orders } = withOne();
  expect(invokeConfigs(retries)).toEqual([{ FunctionName: ref(orders), Qualifier: '$LATEST' }]);
  expect(resource(orders).Properties.RecursiveLoop).toBe('Allow');
  expect(statements(orders.role as IConstruct)).toEqual([
    { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: arn(retries.queue) },
  ]);
  // Lambda checks the permission when the destination is set. The configuration refers to the function, and so waits
  // for the policy.
  expect(resource(orders).DependsOn).toContain(
    logicalId((orders.role as IConstruct).node.findChild('DefaultPolicy')),
  );
  expect(warnings(stack)).toEqual([]);
});

test('failures are sent only once the handler may invoke', () => {
  const { stack, retries, orders } = withOne();
  const live = newFunction(stack, 'Billing').addAlias('live');
  retries.attach(live);
  const configs = resources(stack, 'AWS::Lambda::EventInvokeConfig');
  expect(configs).toHaveLength(2);
  for (const { DependsOn } of configs) {
    expect(new Set(DependsOn as string[])).toEqual(new Set(handlersParts(retries)));
  }
  // The function allows recursive loops, and is deployed before the configuration that refers to it.
  expect(configs[0]?.Properties.FunctionName).toEqual(ref(orders));
  expect(resource(orders).Properties.RecursiveLoop).toBe('Allow');
});

test('the first detach deployment keeps what waiting events need', () => {
  const before = withOne();
  const stack = newStack();
  const orders = newFunction(stack, 'Orders', { recursiveLoop: lambda.RecursiveLoop.ALLOW });
  const retries = newRetries(stack, { targetFunctions: [orders.functionArn] });
  retries.queue.grantSendMessages(orders);
  expect(resources(stack, 'AWS::Lambda::EventInvokeConfig')).toEqual([]);
  expect(targetFunctions(retries)).toEqual(targetFunctions(before.retries));
  expect(invocable(retries)).toEqual(invocable(before.retries));
  expect(resource(orders).Properties.RecursiveLoop).toBe('Allow');
  const [granted] = statements(orders.role as IConstruct) as Record<string, unknown>[];
  expect(granted?.Action).toContain('sqs:SendMessage');
  expect(granted?.Resource).toEqual(arn(retries.queue));
});

test('a version and an alias have separate configurations, and their function is allowed once', () => {
  const stack = newStack();
  const retries = newRetries(stack);
  const orders = newFunction(stack);
  const live = new lambda.Alias(stack, 'Live', { aliasName: 'live', version: orders.currentVersion });
  for (const target of [orders, orders.currentVersion, live]) {
    retries.attach(target);
  }
  const template = invokeConfigs(retries);
  const aliasName = { 'Fn::Select': [7, { 'Fn::Split': [':', ref(live)] }] };
  const configs = [
    { FunctionName: ref(orders), Qualifier: '$LATEST' },
    {
      FunctionName: ref(orders),
      Qualifier: { 'Fn::GetAtt': [logicalId(orders.currentVersion), 'Version'] },
    },
    { FunctionName: ref(orders), Qualifier: aliasName },
  ];
  expect(new Set(template)).toEqual(new Set(configs));
  expect(targetFunctions(retries)).toEqual(arn(orders));
  expect(invocable(retries)).toEqual([arn(orders), anyQualifier(orders)]);
});

test.each(['currentVersion', 'alias'])('the %s alone', (which) => {
  const stack = newStack();
  const retries = newRetries(stack);
  const orders = newFunction(stack);
  const { currentVersion } = orders;
  retries.attach(which === 'alias' ? orders.addAlias('live') : currentVersion);
  expect(invokeConfigs(retries)).toHaveLength(1);
  expect(resource(orders).Properties.RecursiveLoop).toBe('Allow');
  expect(statements(orders.role as IConstruct)).toHaveLength(1);
  expect(targetFunctions(retries)).toEqual(arn(orders));
  expect(warnings(stack)).toEqual([]);
});

test('$LATEST is the function', () => {
  const stack = newStack();
  const retries = newRetries(stack);
  const orders = newFunction(stack);
  retries.attach(orders.latestVersion);
  expect(invokeConfigs(retries)).toEqual([{ FunctionName: ref(orders), Qualifier: '$LATEST' }]);
});

test('several functions', () => {
  const { stack, retries, orders } = withOne();
  const billing = newFunction(stack, 'Billing');
  retries.attach(billing);
  expect(targetFunctions(retries)).toEqual({ 'Fn::Join': ['', [arn(orders), ',', arn(billing)]] });
  expect(invocable(retries)).toEqual([
    arn(orders),
    anyQualifier(orders),
    arn(billing),
    anyQualifier(billing),
  ]);
});

test('the options', () => {
  const stack = newStack();
  const retries = newRetries(stack);
  const done = new sqs.Queue(stack, 'Done');
  retries.attach(newFunction(stack), {
    maxEventAge: Duration.hours(6),
    onSuccess: new destinations.SqsDestination(done),
  });
  const [config] = resources(stack, 'AWS::Lambda::EventInvokeConfig');
  expect(config?.Properties).toMatchObject({
    MaximumEventAgeInSeconds: 21_600,
    DestinationConfig: {
      OnFailure: { Destination: arn(retries.queue) },
      OnSuccess: { Destination: arn(done) },
    },
  });
});

test('two AsyncRetries may share a role', () => {
  const { stack, retries, orders } = withOne();
  const others = new AsyncRetries(stack, 'Others', { bootstrap: BOOTSTRAP });
  const role = orders.role as iam.Role;
  others.attach(newFunction(stack, 'Billing', { role }));
  // IAM would refuse two statements with the same Sid in a policy.
  expect(statements(role)).toEqual([
    { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: arn(retries.queue) },
    { Effect: 'Allow', Action: 'sqs:SendMessage', Resource: arn(others.queue) },
  ]);
});

const already = (target: string, existing: string) =>
  `${target} already has an invoke configuration, ${existing}, and can have only one; ` +
  'remove it, and pass its onSuccess and maxEventAge to attach';

test.each<[string, (orders: lambda.Function) => unknown, string]>([
  [
    'by configureAsyncInvoke',
    (orders) => {
      orders.configureAsyncInvoke({});
    },
    'Stack/Orders/EventInvokeConfig/Resource',
  ],
  [
    'by the L2 construct',
    (orders) => new lambda.EventInvokeConfig(orders.stack, 'Own', { function: orders }),
    'Stack/Own/Resource',
  ],
  ...(['functionName', 'functionArn'] as const).map(
    (name): [string, (orders: lambda.Function) => unknown, string] => [
      `by the ${name}`,
      (orders) =>
        new lambda.CfnEventInvokeConfig(orders.stack, 'Own', {
          functionName: orders[name],
          qualifier: '$LATEST',
        }),
      'Stack/Own',
    ],
  ),
])('a function that already has an invoke configuration, %s', (_, configure, existing) => {
  const stack = newStack();
  const retries = new AsyncRetries(stack, 'Mine', { bootstrap: BOOTSTRAP });
  const orders = newFunction(stack);
  configure(orders);
  expect(
    refusal(() => {
      retries.attach(orders);
    }),
  ).toBe(already('Stack/Orders', existing));
  // The failed call of `attach` changed nothing.
  expect(targetFunctions(retries)).toBe('');
});

test('a function can be attached only once', () => {
  const stack = newStack('Stack', { env: ENV });
  const [retries, others] = ['Retries', 'Others'].map(
    (id) => new AsyncRetries(stack, id, { bootstrap: BOOTSTRAP }),
  ) as [AsyncRetries, AsyncRetries];
  const orders = newFunction(stack);
  const imported = (id: string) => lambda.Function.fromFunctionArn(stack, id, ORDERS);
  const live = orders.addAlias('live');
  for (const target of [orders, live, imported('Imported')]) {
    retries.attach(target);
  }
  for (const target of [orders, orders.latestVersion, live, imported('Again')]) {
    for (const second of [retries, others]) {
      expect(
        refusal(() => {
          second.attach(target);
        }),
      ).toBe(`${target.node.path} is already attached to Stack/Retries`);
    }
  }
});

test.each(['itself', 'alias'])(
  'a function with recursiveLoop TERMINATE is refused, not changed (%s)',
  (which) => {
    const stack = newStack();
    const retries = newRetries(stack);
    const orders = newFunction(stack, 'Orders', { recursiveLoop: lambda.RecursiveLoop.TERMINATE });
    expect(
      refusal(() => {
        retries.attach(which === 'alias' ? orders.addAlias('live') : orders);
      }),
    ).toBe(
      'Stack/Orders has recursiveLoop: TERMINATE, so Lambda would stop each event after 16 rounds; leave ' +
        'recursiveLoop out, and attach allows the loop',
    );
    expect(resource(orders).Properties.RecursiveLoop).toBe('Terminate');
    expect(targetFunctions(retries)).toBe('');
  },
);

test.each<[string, Partial<lambda.FunctionProps>]>([
  ['is a durable function (durableConfig)', { durableConfig: { executionTimeout: Duration.hours(1) } }],
  ['is in tenant isolation mode (tenancyConfig)', { tenancyConfig: lambda.TenancyConfig.PER_TENANT }],
])('a function that %s is refused', (text, props) => {
  const stack = newStack();
  const retries = newRetries(stack);
  const attach = () => {
    retries.attach(newFunction(stack, 'Orders', props).addAlias('live'));
  };
  expect(refusal(attach)).toContain(`Stack/Orders ${text}: `);
  expect(targetFunctions(retries)).toBe('');
});

test('an alias that already has a configuration, and one beside it', () => {
  const stack = newStack();
  const retries = newRetries(stack);
  const { currentVersion } = newFunction(stack);
  const live = new lambda.Alias(stack, 'Live', {
    aliasName: 'live',
    version: currentVersion,
    retryAttempts: 1,
  });
  expect(
    refusal(() => {
      retries.attach(live);
    }),
  ).toBe(already('Stack/Live', 'Stack/Live/EventInvokeConfig/Resource'));
  retries.attach(new lambda.Alias(stack, 'Test', { aliasName: 'test', version: currentVersion }));
});

const recursion = (name: string) =>
  'set its recursive loop detection, or Lambda stops each event after 16 rounds: ' +
  `aws lambda put-function-recursion-config --recursive-loop Allow --function-name ${name}`;
const attached = 'attached, but some steps cannot be taken from this app; its owner must ';
const ack = ' [ack: comeback-cdk:ownerMust]';

test("an imported function's owner is told the remaining steps", () => {
  const stack = newStack('Stack', { env: ENV });
  const retries = newRetries(stack);
  retries.attach(lambda.Function.fromFunctionArn(stack, 'Orders', ORDERS));
  expect(invokeConfigs(retries)).toEqual([{ FunctionName: 'orders', Qualifier: '$LATEST' }]);
  expect(JSON.stringify(targetFunctions(retries))).toContain(
    ':lambda:eu-west-1:123456789012:function:orders"',
  );
  expect(invocable(retries)).toHaveLength(2);
  expect(warnings(stack)).toEqual([
    `/Stack/Orders: ${attached}allow sqs:SendMessage on the retry queue (its name will begin with ` +
      `Stack-${logicalId(retries.queue)}-) in the function's execution role, before this is deployed, or Lambda ` +
      'refuses the destination (import the function with its role, by Function.fromFunctionAttributes, and this is ' +
      `done for you, unless that role is immutable); and ${recursion('orders')}${ack}`,
  ]);
});

test('the warning to the owner of an imported function names the key', () => {
  const stack = newStack('Stack', { env: ENV });
  const retries = newRetries(stack, { encryptionKey: new kms.Key(stack, 'Key') });
  retries.attach(lambda.Function.fromFunctionArn(stack, 'Orders', ORDERS));
  expect(warnings(stack).join()).toContain(
    "-), and kms:GenerateDataKey and kms:Decrypt on the queue's key in the",
  );
});

test('a function imported with its role needs only its recursion setting', () => {
  const stack = newStack('Stack', { env: ENV });
  const retries = newRetries(stack);
  const role = iam.Role.fromRoleArn(stack, 'Role', 'arn:aws:iam::123456789012:role/orders');
  retries.attach(lambda.Function.fromFunctionAttributes(stack, 'Orders', { functionArn: ORDERS, role }));
  expect(warnings(stack)).toEqual([`/Stack/Orders: ${attached}${recursion('orders')}${ack}`]);
  const policy = role.node.findChild('Policy');
  expect(resource(policy).Properties).toMatchObject({
    Roles: ['orders'],
    PolicyDocument: {
      Statement: [{ Effect: 'Allow', Action: 'sqs:SendMessage', Resource: arn(retries.queue) }],
    },
  });
  const [config] = resources(stack, 'AWS::Lambda::EventInvokeConfig');
  expect(new Set(config?.DependsOn as string[])).toEqual(
    new Set([logicalId(policy), ...handlersParts(retries)]),
  );
});

test.each<[string, (stack: Stack, role: iam.IRole) => lambda.IFunction]>([
  [
    'an imported function',
    (stack, role) => lambda.Function.fromFunctionAttributes(stack, 'Orders', { functionArn: ORDERS, role }),
  ],
  ['a function', (stack, role) => newFunction(stack, 'Orders', { role })],
])('for %s with an immutable role, the owner must allow sending', (_, functionWith) => {
  const stack = newStack('Stack', { env: ENV });
  const retries = newRetries(stack, { encryptionKey: new kms.Key(stack, 'Key') });
  const arnOfRole = 'arn:aws:iam::123456789012:role/orders';
  const role = iam.Role.fromRoleArn(stack, 'Role', arnOfRole, { mutable: false });
  retries.attach(functionWith(stack, role));
  const [warning, ...others] = warnings(stack);
  expect(others).toEqual([]);
  expect(warning).toContain(`/Stack/Orders: ${attached}allow sqs:SendMessage on the retry queue`);
  expect(warning).toContain("kms:GenerateDataKey and kms:Decrypt on the queue's key");
});

test('a function imported by name in any account and region', () => {
  const stack = newStack();
  newRetries(stack).attach(lambda.Function.fromFunctionName(stack, 'Orders', 'orders'));
  expect(warnings(stack).join()).toContain(recursion('NAME, the name of Stack/Orders'));
});

test('an imported version and an imported alias', () => {
  const stack = newStack('Stack', { env: ENV });
  const retries = newRetries(stack);
  const version = lambda.Version.fromVersionArn(stack, 'Version', `${ORDERS}:7`);
  retries.attach(version);
  retries.attach(
    lambda.Alias.fromAliasAttributes(stack, 'Alias', { aliasName: 'live', aliasVersion: version }),
  );
  expect(invokeConfigs(retries)).toEqual([
    { FunctionName: 'orders', Qualifier: '7' },
    { FunctionName: 'orders', Qualifier: 'live' },
  ]);
  expect(JSON.stringify(targetFunctions(retries))).toMatch(/:function:orders"/);
  expect(invocable(retries)).toHaveLength(2);
});

test('an imported function that is a version', () => {
  const stack = newStack('Stack', { env: ENV });
  const orders = lambda.Function.fromFunctionArn(stack, 'Orders', `${ORDERS}:live`);
  expect(
    refusal(() => {
      newRetries(stack).attach(orders);
    }),
  ).toBe(
    'Stack/Orders was imported by the ARN of a version or an alias; import it with Version.fromVersionArn or ' +
      'Alias.fromAliasAttributes instead',
  );
});

test.each([
  [ORDERS.replace('123456789012', '999999999999'), 'account 999999999999', '123456789012'],
  [ORDERS.replace('eu-west-1', 'us-east-1'), 'region us-east-1', 'eu-west-1'],
])('%s is elsewhere', (functionArn, there, here) => {
  const stack = newStack('Stack', { env: ENV });
  const orders = lambda.Function.fromFunctionArn(stack, 'Orders', functionArn);
  expect(
    refusal(() => {
      newRetries(stack).attach(orders);
    }),
  ).toBe(
    `Stack/Orders is in ${there}, but this AsyncRetries is in ${here}; ` +
      "create an AsyncRetries in the function's own account and region",
  );
});

test('a policy of its own, for a function, an alias and a version', () => {
  const stack = newStack();
  const retries = newRetries(stack);
  const orders = newFunction(stack);
  const live = new lambda.Alias(stack, 'Live', { aliasName: 'live', version: orders.currentVersion });
  const named = newFunction(stack, 'Export', { functionName: 'export' });
  retries.attach(orders, { policy: { maxAge: Duration.hours(2), jitter: Jitter.NONE } });
  retries.attach(named, {
    policy: { backoffs: [Duration.seconds(20), Duration.minutes(5)], directives: false },
  });
  retries.attach(live, { policy: { envelope: EnvelopeStyle.INLINE, maxRetries: 3 } });
  retries.attach(newFunction(stack, 'Other'));
  const parts = [
    [ref(orders), ':live MAX_RETRIES=3 ENVELOPE=inline;'],
    [ref(orders), ' MAX_AGE=7200 JITTER=none;export BACKOFFS=20,300 DIRECTIVES=off'],
  ];
  expect(variables(retries).POLICIES).toEqual({ 'Fn::Join': ['', parts.flat()] });
  Stage.of(stack)?.synth();
  const said = Annotations.fromStack(stack).findInfo(
    '*',
    Match.stringLikeRegexp('^the retry handler.s environment'),
  );
  expect(said.map(({ entry }) => entry.data)).toEqual([
    expect.stringMatching(/has at least \d{3} bytes of 4096; at most 3\d{3} are left/),
  ]);
});

test.each<[FunctionPolicy, string]>([
  [{}, 'it sets nothing; leave it out, or set at least one property'],
  [
    { nonRetryableErrors: ['A B'] },
    'nonRetryableErrors (NON_RETRYABLE_ERRORS) has "A B"; it must not have white space or a semicolon',
  ],
])('the policy %j is refused', (policy, text) => {
  const stack = newStack();
  const attach = () => {
    newRetries(stack).attach(newFunction(stack), { policy });
  };
  expect(refusal(attach)).toBe(`the policy of Stack/Orders (POLICIES) is refused: ${text}`);
});

test('a policy for a function of another stack needs its name', () => {
  const app = newApp();
  const retries = newRetries(new Stack(app, 'Stack'), { targetFunctions: ['*'] });
  const other = new Stack(app, 'Other');
  const policy = { maxRetries: 3 };
  retries.attach(newFunction(other, 'Named', { functionName: 'named' }), { policy });
  expect(variables(retries).POLICIES).toBe('named MAX_RETRIES=3');
  const attach = () => {
    retries.attach(newFunction(other), { policy });
  };
  expect(refusal(attach)).toMatch(/^Other\/Orders is in another stack and has no functionName;/);
});

test("a dead-letter queue of the function's own is warned of", () => {
  const stack = newStack('Stack', { env: ENV });
  const retries = newRetries(stack);
  const own = {
    runtime: lambda.Runtime.NODEJS_22_X,
    handler: 'index.handler',
    code: lambda.Code.fromInline(' '),
  };
  retries.attach(new lambda.Function(stack, 'Own', { ...own, deadLetterQueueEnabled: true }));
  retries.attach(new lambda.Function(stack, 'None', own));
  const said = warnings(stack).filter((it) => it.includes('its own dead-letter queue'));
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('/Stack/Own: it has its own dead-letter queue');
});
