import { type App, NestedStack, Stack, type StackProps, Stage } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as kms from 'aws-cdk-lib/aws-kms';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { describe, expect, test } from 'vitest';

import { type AsyncRetries, type AsyncRetriesProps } from '../src';
import { ENV, newApp, newFunction, newRetries, refusal, resource, resources } from './support';

interface Two {
  readonly app: App;
  readonly retries: AsyncRetries;
  readonly orders: lambda.Function;
}

/** Creates an `AsyncRetries` construct in one stack and a function in another; `first` says which to create first. */
function two(
  first: 'retries' | 'function',
  props: AsyncRetriesProps,
  functionName?: string,
  functionStack = 'Shop',
  env: StackProps = {},
): Two {
  const app = newApp();
  const makeRetries = () => newRetries(new Stack(app, 'Comeback', env), props);
  const makeFunction = () =>
    newFunction(
      new Stack(app, functionStack, env),
      'Orders',
      functionName === undefined ? {} : { functionName },
    );
  if (first === 'retries') {
    const retries = makeRetries();
    return { app, retries, orders: makeFunction() };
  }
  const orders = makeFunction();
  return { app, retries: makeRetries(), orders };
}

/** Checks that the function's stack depends on the stack of the `AsyncRetries` construct, and not vice versa. */
function expectOneWay({ app, retries, orders }: Two): void {
  app.synth();
  expect(orders.stack.dependencies).toEqual([Stack.of(retries)]);
  expect(Stack.of(retries).dependencies).toEqual([]);
  expect(JSON.stringify(Template.fromStack(Stack.of(retries)).toJSON())).not.toContain('Fn::ImportValue');
  expect(resource(orders).Properties.RecursiveLoop).toBe('Allow');
  // The whole stack of the `AsyncRetries` construct is deployed first, so nothing needs to depend on its resources.
  const [config] = resources(orders.stack, 'AWS::Lambda::EventInvokeConfig');
  expect(config).not.toHaveProperty('DependsOn');
}

function targetFunctions(retries: AsyncRetries): string {
  const { Environment } = resource(retries.handler).Properties;
  return JSON.stringify((Environment as { Variables: Record<string, unknown> }).Variables.TARGET_FUNCTIONS);
}

describe.each(['retries', 'function'] as const)('the %s first', (first) => {
  test('a function with a name is allowed by it', () => {
    const both = two(first, {}, 'orders');
    both.retries.attach(both.orders);
    expectOneWay(both);
    expect(targetFunctions(both.retries)).toContain(':function:orders"');
  });

  test('a function without a name is allowed by a pattern', () => {
    const both = two(first, { targetFunctions: ['Shop-*'] });
    both.retries.attach(both.orders);
    expectOneWay(both);
    expect(targetFunctions(both.retries)).toContain(':function:Shop-*"');
  });

  test('an alias', () => {
    const both = two(first, { targetFunctions: ['Shop-Orders*'] });
    both.retries.attach(both.orders.addAlias('live'));
    expectOneWay(both);
  });

  test('a key of the customer', () => {
    const both = two(first, {}, 'orders');
    const retries = newRetries(new Stack(both.app, 'Keyed'), {
      encryptionKey: new kms.Key(new Stack(both.app, 'Keys'), 'Key'),
    });
    retries.attach(both.orders);
    both.retries.attach(newFunction(Stack.of(both.retries)));
    both.app.synth();
    expect(Stack.of(retries).dependencies).not.toContain(both.orders.stack);
  });

  test.each<[AsyncRetriesProps]>([
    [{}],
    [{ targetFunctions: ['Shopping-*'] }],
    [{ targetFunctions: ['Shop-Orders'] }],
    [{ targetFunctions: ['Shop-*:live'] }],
    [{ targetFunctions: ['arn:aws:lambda:us-east-1:123456789012:function:Shop-*'] }],
    [{ targetFunctions: ['arn:aws:lambda:eu-west-1:999999999999:function:Shop-*'] }],
  ])('a function without a name, and none of %j allows it', (props) => {
    const { retries, orders } = two(first, props, undefined, 'Shop', { env: ENV });
    expect(
      refusal(() => {
        retries.attach(orders);
      }),
    ).toBe(
      'Shop/Orders is in another stack, has no functionName, and no pattern of targetFunctions allows it; allowing ' +
        'it by its generated name would make the two stacks depend on each other: give it a functionName, or give ' +
        'targetFunctions a pattern that matches what CloudFormation will name it (Shop-OrdersA9B65338-…)',
    );
  });
});

test('a pattern with this account and region', () => {
  const pattern = 'arn:aws:lambda:eu-west-1:123456789012:function:Shop-*';
  const both = two('retries', { targetFunctions: [pattern] }, undefined, 'Shop', { env: ENV });
  both.retries.attach(both.orders);
  expectOneWay(both);
});

test.each<[string, boolean]>([
  ['*', true],
  ['AStackWithAVery*', true],
  ['AStackWithAVeryVeryLongName*', false],
])('a name that CloudFormation shortens, allowed by %s: %j', (pattern, allowed) => {
  const { retries, orders } = two(
    'retries',
    { targetFunctions: [pattern] },
    undefined,
    `AStackWithAVeryVeryLongName${'X'.repeat(30)}`,
  );
  const attach = () => {
    retries.attach(orders);
  };
  if (allowed) {
    attach();
  } else {
    expect(refusal(attach)).toContain('what CloudFormation will name it (AStackWithAVeryVeryL…)');
  }
});

test('a nested stack, which gets its name only when deployed', () => {
  const stack = new Stack(newApp(), 'Stack');
  const retries = newRetries(stack);
  const orders = newFunction(new NestedStack(stack, 'Nested'));
  expect(
    refusal(() => {
      retries.attach(orders);
    }),
  ).toContain('Stack/Nested/Orders is in another stack');
  const billing = newFunction(new NestedStack(stack, 'Second'), 'Billing', { functionName: 'billing' });
  retries.attach(billing);
  Stage.of(stack)?.synth();
});

test('retries in a nested stack, and functions around it', () => {
  const stack = new Stack(newApp(), 'Stack');
  const retries = newRetries(new NestedStack(stack, 'Nested'));
  retries.attach(newFunction(stack, 'Orders', { functionName: 'orders' }));
  retries.attach(newFunction(new NestedStack(stack, 'Sibling'), 'Billing', { functionName: 'billing' }));
  Stage.of(stack)?.synth();
});
