import { Aws, CfnParameter, Duration, Lazy, NestedStack, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';

import { type AsyncRetriesProps, type AttachOptions } from '../src';
import { newFunction, newRetries, newStack, refusal } from './support';

/** Passes properties without type checks, as plain JavaScript does. */
const untyped = (props: Record<string, unknown>) => props as AsyncRetriesProps;

describe('a value of the wrong type', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ maxAge: 3_600 }, 'maxAge is 3600; it must be a Duration, such as Duration.hours(1)'],
    [{ maxAge: null }, 'maxAge is null; it must be a Duration, such as Duration.hours(1)'],
    [{ baseBackoff: '1s' }, 'baseBackoff is "1s"; it must be a Duration, such as Duration.hours(1)'],
    [{ maxBackoff: {} }, 'maxBackoff is {}; it must be a Duration, such as Duration.hours(1)'],
    [
      { backoffs: ['20s'] },
      'backoffs is [Array]; it must be a list of Durations, such as [Duration.seconds(20), Duration.minutes(5)]',
    ],
    [{ maxRetries: '5' }, 'maxRetries is "5"; it must be a number'],
    [{ memorySize: Duration.hours(1) }, 'memorySize is [Duration]; it must be a number'],
    [{ batchSize: [1] }, 'batchSize is [Array]; it must be a number'],
    [{ hideUpTo: 'always' }, 'hideUpTo is "always"; it must be a number'],
    [{ alwaysHide: 'yes' }, 'alwaysHide is "yes"; it must be true or false'],
    [{ directives: 'off' }, 'directives is "off"; it must be true or false'],
    [{ maxConcurrency: true }, 'maxConcurrency is true; it must be a number'],
    [{ jitter: 7 }, 'jitter (JITTER) is 7; it must be full, equal, decorrelated or none'],
    [{ envelope: { a: 1 } }, 'envelope (ENVELOPE) is [Object]; it must be wrap or inline'],
    [{ metrics: true }, 'metrics (METRICS) is true; it must be off, stack or target'],
    [{ targetFunctions: 'orders' }, 'targetFunctions is "orders"; it must be a list of strings'],
    [{ targetFunctions: [undefined] }, 'targetFunctions is [Array]; it must be a list of strings'],
    [{ nonRetryableErrors: 'Oops' }, 'nonRetryableErrors is "Oops"; it must be a list of strings'],
    [
      { architecture: 'arm64' },
      'architecture is "arm64"; it must be a lambda.Architecture, such as lambda.Architecture.ARM_64',
    ],
    [
      { logRetention: 31 },
      'logRetention is 31; it must be a logs.RetentionDays, such as logs.RetentionDays.ONE_MONTH',
    ],
    [
      { removalPolicy: 'keep' },
      'removalPolicy is "keep"; it must be a RemovalPolicy, such as RemovalPolicy.DESTROY',
    ],
    [
      { encryptionKey: 'alias/orders' },
      'encryptionKey is "alias/orders"; it must be a kms.IKey, such as Key.fromKeyArn gives',
    ],
    [
      { deadLetterQueue: 'dead' },
      'deadLetterQueue is "dead"; it must be an sqs.IQueue, such as Queue.fromQueueArn gives',
    ],
    [{ bootstrap: 7 }, 'bootstrap is 7; it must be the path of a folder or a zip file'],
  ])('%j', (props, text) => {
    expect(refusal(() => newRetries(newStack(), untyped(props)))).toBe(text);
  });

  test('does not hide other refusals', () => {
    const props = untyped({ maxAge: 3_600, maxRetries: -1, targetFunctions: 'orders', baseBackoff: 1 });
    expect(refusal(() => newRetries(newStack(), props)).split('\n')).toEqual([
      'maxAge is 3600; it must be a Duration, such as Duration.hours(1)',
      'baseBackoff is 1; it must be a Duration, such as Duration.hours(1)',
      'targetFunctions is "orders"; it must be a list of strings',
      'maxRetries (MAX_RETRIES) is "-1"; it must be a whole number',
    ]);
  });

  test.each(['', ' '])('a function without a name: %j', (name) => {
    expect(refusal(() => newRetries(newStack(), { targetFunctions: [name] }))).toBe(
      `targetFunctions (TARGET_FUNCTIONS) entry "${name}" is blank; it must be a function's name, a pattern of names, ` +
        'or a function ARN',
    );
  });

  test.each<[unknown, string]>([
    [undefined, 'undefined'],
    [null, 'null'],
    ['orders', '"orders"'],
    [{ functionArn: 'arn' }, '[Object]'],
  ])('attach(%j)', (target, named) => {
    const attach = () => {
      newRetries(newStack()).attach(target as lambda.IFunction);
    };
    expect(refusal(attach)).toBe(`attach was given ${named}; it must be given a function (lambda.IFunction)`);
  });

  test('attach(queue)', () => {
    const retries = newRetries(newStack());
    const attach = () => {
      retries.attach(retries.queue as unknown as lambda.IFunction);
    };
    expect(refusal(attach)).toBe(
      'attach was given Stack/Retries/Queue; it must be given a function (lambda.IFunction)',
    );
  });

  test('an option of attach', () => {
    const stack = newStack();
    const attach = () => {
      newRetries(stack).attach(newFunction(stack), {
        maxEventAge: 60,
        onSuccess: 'queue',
        policy: { maxAge: 7200, maxRetries: -1 },
      } as unknown as AttachOptions);
    };
    expect(refusal(attach).split('\n')).toEqual([
      'maxEventAge is 60; it must be a Duration, such as Duration.hours(1)',
      'onSuccess is "queue"; it must be a lambda.IDestination',
      'the policy of Stack/Orders (POLICIES) is refused: maxAge is 7200; it must be a Duration, such as Duration.hours(1)',
      'the policy of Stack/Orders (POLICIES) is refused: maxRetries (MAX_RETRIES) is "-1"; it must be a whole number',
    ]);
  });
});

describe('a value that only the deployment knows', () => {
  const text = (stack: Stack) => new CfnParameter(stack, 'Text').valueAsString;

  test.each<[(stack: Stack) => Record<string, unknown>, string]>([
    [
      () => ({ targetFunctions: [`arn:aws:lambda:${Aws.REGION}:${Aws.ACCOUNT_ID}:function:orders?`] }),
      'targetFunctions (TARGET_FUNCTIONS) entry "arn:aws:lambda:…:…:function:orders?" has a character that is ' +
        "not allowed in a function's name or qualifier",
    ],
    [
      (stack) => ({ deadLetterQueue: new sqs.Queue(stack, 'Dead', { fifo: true }) }),
      'deadLetterQueue (DEAD_LETTER_QUEUE_URL) is Stack/Dead; it must be a standard queue, not a FIFO one',
    ],
    [
      (stack) => ({ bootstrap: `${text(stack)}/code` }),
      'bootstrap is "…/code"; it must be the path of a folder or a zip file',
    ],
    [(stack) => ({ targetFunctions: text(stack) }), 'targetFunctions is "…"; it must be a list of strings'],
    [
      (stack) => ({ maxAge: new CfnParameter(stack, 'Age', { type: 'Number' }).valueAsNumber }),
      'maxAge is …; it must be a Duration, such as Duration.hours(1)',
    ],
    [
      (stack) => ({ bootstrap: '/missing', architecture: lambda.Architecture.custom(text(stack)) }),
      'bootstrap: /missing does not exist; build it in a checkout of Comeback with `cargo lambda build --release --… ' +
        '-p retry-handler`, and give the path of target/lambda/retry-handler there',
    ],
  ])('is an ellipsis in a message: %#', (props, message) => {
    const stack = newStack();
    expect(refusal(() => newRetries(stack, untyped(props(stack))))).toBe(message);
  });

  test('is left to the handler', () => {
    const stack = newStack();
    const choice = text(stack);
    newRetries(stack, untyped({ jitter: choice, envelope: choice, targetFunctions: [choice] }));
    newRetries(new Stack(stack, 'Other'), untyped({ logRetention: Lazy.number({ produce: () => 30 }) }));
  });

  test('is an ellipsis in the warning to an owner', () => {
    const nested = new NestedStack(newStack(), 'Nested');
    const retries = newRetries(nested);
    const orders = lambda.Function.fromFunctionName(nested, 'Orders', 'orders');
    retries.attach(orders);
    const said = orders.node.metadata.map(({ data }) => String(data)).join('\n');
    expect(said).toContain('(its name will begin with …-RetriesQueue');
    expect(said).not.toContain('${Token[');
  });
});
