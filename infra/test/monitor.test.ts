import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sns from 'aws-cdk-lib/aws-sns';
import { describe, expect, test } from 'vitest';

import { type AsyncRetries, type MonitorOptions } from '../src';
import { newApp, newFunction, newRetries, newStack, ref, refusal, resources, withOne } from './support';

const ALARM = 'AWS::CloudWatch::Alarm';

function watchedForLoss(stack: Stack): unknown[] {
  const lost = resources(stack, ALARM).filter(
    ({ Properties }) => Properties.MetricName === 'DestinationDeliveryFailures',
  );
  return lost.map(({ Properties }) => (Properties.Dimensions as { Value: unknown }[])[0]?.Value);
}

function monitor(options: unknown): (retries?: AsyncRetries) => void {
  return (retries = newRetries(newStack())) => {
    retries.monitor(options as MonitorOptions);
  };
}

test('nothing is monitored by default', () => {
  const { stack } = withOne();
  expect(resources(stack, ALARM)).toEqual([]);
  const { stack: quiet, retries } = withOne();
  retries.monitor();
  expect(resources(quiet, ALARM)).toHaveLength(10);
  expect(resources(quiet, 'AWS::CloudWatch::Dashboard')).toEqual([]);
  expect(resources(quiet, ALARM).flatMap(({ Properties }) => Properties.AlarmActions ?? [])).toEqual([]);
});

test('the topic is notified when each alarm is raised and when it clears', () => {
  const { stack, retries } = withOne();
  const topic = new sns.Topic(stack, 'OnCall');
  retries.monitor({ topic });
  for (const { Properties } of resources(stack, ALARM)) {
    expect(Properties).toMatchObject({ AlarmActions: [ref(topic)], OKActions: [ref(topic)] });
  }
});

describe('a function that is attached', () => {
  test('before or after is watched, once for all its aliases', () => {
    const stack = newStack();
    const retries = newRetries(stack);
    const [orders, billing] = [newFunction(stack), newFunction(stack, 'Billing')];
    retries.attach(orders);
    retries.monitor();
    retries.attach(orders.addAlias('live'));
    retries.attach(billing);
    expect(watchedForLoss(stack)).toEqual([ref(orders), ref(billing)]);
  });

  test('in another stack is watched there, and that stack alone depends on the other', () => {
    const app = newApp();
    const retries = newRetries(new Stack(app, 'Comeback'));
    const topic = new sns.Topic(Stack.of(retries), 'OnCall');
    const orders = newFunction(new Stack(app, 'Shop'), 'Orders', { functionName: 'orders' });
    retries.monitor({ topic, dashboard: true });
    retries.attach(orders);
    app.synth();
    expect(watchedForLoss(Stack.of(retries))).toEqual([]);
    expect(watchedForLoss(orders.stack)).toEqual([ref(orders)]);
    const descriptions = resources(orders.stack, ALARM).map(({ Properties }) => Properties.AlarmDescription);
    expect(JSON.stringify(descriptions)).toContain('Run comeback doctor --stack Comeback ');
    expect(orders.stack.dependencies).toEqual([Stack.of(retries)]);
    expect(Stack.of(retries).dependencies).toEqual([]);
    expect(JSON.stringify(Template.fromStack(Stack.of(retries)).toJSON())).not.toContain('Fn::ImportValue');
  });

  test('and was imported is watched by its name', () => {
    const stack = newStack();
    const retries = newRetries(stack);
    retries.attach(lambda.Function.fromFunctionName(stack, 'Orders', 'orders'));
    retries.monitor();
    expect(JSON.stringify(watchedForLoss(stack))).toContain(':function:orders"');
  });

  test('to two AsyncRetries is watched for both', () => {
    const app = newApp();
    const orders = newFunction(new Stack(app, 'Shop'), 'Orders', { functionName: 'orders' });
    for (const [id, target] of Object.entries({ One: orders, Two: orders.addAlias('live') })) {
      const retries = newRetries(new Stack(app, id));
      retries.monitor();
      retries.attach(target);
    }
    expect(watchedForLoss(orders.stack)).toHaveLength(2);
  });
});

describe('what is refused', () => {
  test.each<[unknown, string]>([
    [{ topic: 'on-call' }, 'topic is "on-call"; it must be an sns.ITopic, such as Topic.fromTopicArn gives'],
    [{ dashboard: 'on' }, 'dashboard is "on"; it must be true or false'],
    [
      { dashboard: 1, topic: null },
      'topic is null; it must be an sns.ITopic, such as Topic.fromTopicArn gives\ndashboard is 1; it must be true or false',
    ],
  ])('%j', (options, text) => {
    expect(refusal(monitor(options))).toBe(text);
  });

  test('a FIFO topic', () => {
    const topic = new sns.Topic(newStack(), 'OnCall', { fifo: true });
    expect(refusal(monitor({ topic }))).toBe(
      'topic is Stack/OnCall; it must be a standard topic, not a FIFO one',
    );
  });

  test('a second call', () => {
    const retries = newRetries(newStack());
    retries.monitor();
    const again = () => {
      monitor({})(retries);
    };
    expect(refusal(again)).toBe(
      'monitor was already called on Stack/Retries; call it once, with all options',
    );
  });
});
