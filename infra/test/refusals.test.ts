import * as fs from 'node:fs';
import * as path from 'node:path';
import { Duration, Fn, type Stack, Stage } from 'aws-cdk-lib';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';

import {
  type AsyncRetriesProps,
  type EnvelopeStyle,
  type FunctionPolicy,
  type HandlerMetrics,
  type Jitter,
} from '../src';
import { environmentProblems } from '../src/environment';
import { ENV, newFunction, newRetries, newStack, refusal, REPOSITORY } from './support';

type Variables = Record<string, string>;

interface Refused {
  readonly variables: Variables;
  /** The deployment methods (`template`, `construct`, or both) whose checks do not detect the invalid values. */
  readonly let_through_by?: string[];
  readonly refusals: string[];
}

/** The accepted and refused settings that the retry handler and template.yaml are also tested with. */
const golden = JSON.parse(
  fs.readFileSync(path.join(REPOSITORY, 'tests', 'golden', 'refusals.json'), 'utf8'),
) as { accepted: Variables[]; refused: Refused[] };

const duration = (text: string) => Duration.seconds(Number(text));
/** Converts numeric text to a number. Other text is kept, because a caller in plain JavaScript could pass it. */
const number = (text: string) => (isNumber(text) ? Number(text) : (text as unknown as number));
const onOrOff = (text: string) =>
  text === 'on' || text === 'off' ? text === 'on' : (text as unknown as boolean);
const isNumber = (text: string) => text.trim() !== '' && !Number.isNaN(Number(text));

/** For each of the handler's environment variables, a function that converts its value to the construct's props. */
const PROPS: Record<string, (value: string, stack: Stack) => AsyncRetriesProps> = {
  MAX_AGE: (value) => ({ maxAge: duration(value) }),
  MAX_RETRIES: (value) => ({ maxRetries: Number(value) }),
  BASE_BACKOFF: (value) => ({ baseBackoff: duration(value) }),
  MAX_BACKOFF: (value) => ({ maxBackoff: duration(value) }),
  BACKOFFS: (value) => ({ backoffs: value === '' ? [] : value.split(',').map(duration) }),
  JITTER: (value) => ({ jitter: value as unknown as Jitter }),
  ENVELOPE: (value) => ({ envelope: value as unknown as EnvelopeStyle }),
  METRICS: (value) => ({ metrics: value as unknown as HandlerMetrics }),
  DIRECTIVES: (value) => ({ directives: onOrOff(value) }),
  HIDE_UP_TO: (value) => (value === 'always' ? { alwaysHide: true } : { hideUpTo: number(value) }),
  MAXIMUM_CONCURRENCY: (value) => ({ maxConcurrency: number(value) }),
  NON_RETRYABLE_ERRORS: (value) => ({ nonRetryableErrors: value.split(',') }),
  TARGET_FUNCTIONS: (value) => ({ targetFunctions: value === '' ? [] : value.split(',') }),
  DEAD_LETTER_QUEUE_URL: (queueUrl, stack) => {
    const queueArn = `arn:aws:sqs:eu-west-1:123456789012:${path.basename(queueUrl)}`;
    return { deadLetterQueue: sqs.Queue.fromQueueAttributes(stack, 'Dead', { queueUrl, queueArn }) };
  },
};

function entries({ POLICIES = '' }: Variables): string[][] {
  return POLICIES.split(';').map((entry) => entry.trim().split(/\s+/));
}

const isAttachable = (variables: Variables) =>
  entries(variables).every(([name = '']) => /^[\w-]*$/.test(name));

/** Converts a refusal by the handler to the construct's wording: the property's name, with the variable in brackets. */
function worded(refusal: string): string {
  const [entry, name = ''] = /^POLICIES entry "([\w-]+) .*?" is refused: /.exec(refusal) ?? [];
  if (entry !== undefined) {
    return `the policy of Stack/${name} (POLICIES) is refused: ${worded(refusal.slice(entry.length))}`;
  }
  const [variable = ''] = /^[A-Z_]+/.exec(refusal) ?? [];
  const words = variable.replace(/_URL$/, '').toLowerCase();
  const camel = words.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  const property = camel.replace('maximumConcurrency', 'maxConcurrency');
  const [, text] = /^(?:HIDE_UP_TO|MAXIMUM_CONCURRENCY) is "(.*)";/.exec(refusal) ?? [];
  if (variable === 'DIRECTIVES') {
    return refusal.replace(variable, property).replace('on or off', 'true or false');
  }
  if (text !== undefined && !isNumber(text)) {
    return `${property} is ${JSON.stringify(text)}; it must be a number`;
  }
  return refusal
    .replace(variable, `${property} (${variable})`)
    .replace('to MAX_BACKOFF', 'to maxBackoff')
    .replace('raise MAX_BACKOFF', 'raise maxBackoff')
    .replace('with BACKOFFS', 'with backoffs (BACKOFFS)')
    .replace('whole seconds or durations, such as 20s,5m,30m,2h', 'a list of Durations')
    .replace(', or always', '; to hide without a limit, set alwaysHide')
    .replace('whole seconds, or a duration such as 90s, 24h or 14d', 'whole seconds');
}

function synthesize(variables: Variables): void {
  const stack = newStack();
  const props = (given: [string, string][]) =>
    given.map(([name, value]) => {
      const prop = PROPS[name];
      if (prop === undefined) {
        throw new Error(`no property stands for ${name}`);
      }
      return prop(value, stack);
    });
  const given = props(Object.entries(variables).filter(([name]) => name !== 'POLICIES'));
  const retries = newRetries(
    stack,
    Object.assign({ targetFunctions: ['orders'] }, ...given) as AsyncRetriesProps,
  );
  for (const [name = '', ...settings] of entries(variables).filter(([name]) => name !== '')) {
    const own = props(settings.map((setting) => setting.split('=') as [string, string]));
    const policy = Object.assign({}, ...own) as FunctionPolicy;
    retries.attach(lambda.Function.fromFunctionName(stack, name, name), { policy });
  }
  Stage.of(stack)?.synth();
}

describe('what the handler accepts and refuses', () => {
  const itself = golden.refused.filter(({ variables }) => 'AWS_LAMBDA_FUNCTION_NAME' in variables);
  const letThrough = golden.refused.filter(({ let_through_by }) => let_through_by?.includes('construct'));
  const others = golden.refused.filter((given) => !itself.includes(given) && !letThrough.includes(given));

  test.each(golden.accepted.filter(isAttachable))('%j', (variables) => {
    synthesize(variables);
  });

  const unwritable = letThrough.filter(({ variables }) => 'POLICIES' in variables);

  test.each(letThrough.filter((given) => !unwritable.includes(given)))(
    '$variables, which is a whole number to TypeScript',
    ({ variables }) => {
      synthesize(variables);
    },
  );

  test.each(others)('$variables', ({ variables, refusals }) => {
    expect(
      refusal(() => {
        synthesize(variables);
      }),
    ).toBe(refusals.map(worded).join('\n'));
  });

  test('the handler itself, its versions and its aliases', () => {
    const retries = newRetries(newStack());
    const [given] = itself;
    const arn = given?.variables.TARGET_FUNCTIONS ?? '';
    for (const target of [retries.handler, retries.handler.latestVersion]) {
      expect(
        refusal(() => {
          retries.attach(target);
        }),
      ).toBe(given?.refusals.map(worded).join().replace(arn, target.node.path));
    }
  });

  test('and nothing is left out', () => {
    expect([itself.length, letThrough.length - unwritable.length]).toEqual([1, 4]);
    expect(others.length).toBeGreaterThan(25);
  });
});

test.each<[AsyncRetriesProps, string]>([
  [{ memorySize: 127 }, 'memorySize is 127; it must be a whole number from 128 to 10240'],
  [{ memorySize: 10_241 }, 'memorySize is 10241; it must be a whole number from 128 to 10240'],
  [{ batchSize: 0 }, 'batchSize is 0; it must be a whole number from 1 to 10'],
  [{ batchSize: 11 }, 'batchSize is 11; it must be a whole number from 1 to 10'],
  [{ batchSize: 2.5 }, 'batchSize is 2.5; it must be a whole number from 1 to 10'],
  [
    { hideUpTo: 0, alwaysHide: true },
    'hideUpTo and alwaysHide (HIDE_UP_TO) are both set; leave one of them out',
  ],
  [
    { nonRetryableErrors: ['A,*'] },
    'nonRetryableErrors (NON_RETRYABLE_ERRORS) has "A,*"; each must be one errorType glob',
  ],
  [
    { nonRetryableErrors: ['A', ' '] },
    'nonRetryableErrors (NON_RETRYABLE_ERRORS) has " "; each must be one errorType glob',
  ],
  [
    { nonRetryableErrors: ['A\0', 'B\u009b'] },
    'nonRetryableErrors (NON_RETRYABLE_ERRORS) has "A\\u0000"; it must not have control characters\n' +
      'nonRetryableErrors (NON_RETRYABLE_ERRORS) has "B\\u009b"; it must not have control characters',
  ],
  [
    { nonRetryableErrors: ['A\ud800*'] },
    'nonRetryableErrors (NON_RETRYABLE_ERRORS) has "A\\ud800*"; it must be well-formed Unicode',
  ],
  [
    { nonRetryableErrors: ['Erreurà*'] },
    'nonRetryableErrors (NON_RETRYABLE_ERRORS) has "Erreurà*"; it must be ASCII; write ? for any other character',
  ],
  [
    { nonRetryableErrors: ['E'.repeat(257)] },
    `nonRetryableErrors (NON_RETRYABLE_ERRORS) has "${'E'.repeat(256)}…"; it has 257 characters, and must have at most 256`,
  ],
  [
    { targetFunctions: ['o'.repeat(65)] },
    `targetFunctions (TARGET_FUNCTIONS) entry "${'o'.repeat(65)}" has a name of more than 64 characters`,
  ],
])('%j is refused', (props, text) => {
  expect(refusal(() => newRetries(newStack(), props))).toBe(text);
});

test.each([
  ['arn:aws:sqs:us-east-1:123456789012:dead', 'region us-east-1', 'eu-west-1'],
  ['arn:aws:sqs:eu-west-1:999999999999:dead', 'account 999999999999', '123456789012'],
])('the dead-letter queue %s is refused', (arn, place, own) => {
  const stack = newStack('Stack', { env: ENV });
  const deadLetterQueue = sqs.Queue.fromQueueArn(stack, 'Dead', arn);
  expect(refusal(() => newRetries(stack, { deadLetterQueue }))).toBe(
    `deadLetterQueue is in ${place}; it must be in ${own}, like this AsyncRetries`,
  );
});

test("a dead-letter queue with another account's key is refused", () => {
  const stack = newStack('Stack', { env: ENV });
  const deadLetterQueue = sqs.Queue.fromQueueAttributes(stack, 'Dead', {
    queueArn: 'arn:aws:sqs:eu-west-1:123456789012:dead',
    keyArn: 'arn:aws:kms:eu-west-1:999999999999:key/k',
  });
  expect(refusal(() => newRetries(stack, { deadLetterQueue }))).toBe(
    'the key of deadLetterQueue is in account 999999999999; it must be in 123456789012, like this AsyncRetries, because ' +
      'a handler that may not use the key cannot send to the queue, and keeps each dead-letter until it expires',
  );
});

test('a glob and a name of the greatest length are accepted', () => {
  newRetries(newStack(), { nonRetryableErrors: ['E'.repeat(256)], targetFunctions: [`*${'o'.repeat(64)}*`] });
});

test.each([
  ['arn:aws:kms:us-east-1:123456789012:key/k', 'region us-east-1', 'eu-west-1'],
  ['arn:aws:kms:eu-west-1:999999999999:key/k', 'account 999999999999', '123456789012'],
])('the key %s is refused', (arn, place, own) => {
  const stack = newStack('Stack', { env: ENV });
  const encryptionKey = kms.Key.fromKeyArn(stack, 'Key', arn);
  expect(refusal(() => newRetries(stack, { encryptionKey }))).toBe(
    `encryptionKey is in ${place}; it must be in ${own}, like this AsyncRetries, because a role that may not use the ` +
      'key cannot send to the queue, and Lambda then silently drops the failed event',
  );
});

test('a key of this or an unknown account and region is accepted', () => {
  const arn = 'arn:aws:kms:eu-west-1:123456789012:key/k';
  for (const stack of [newStack('Stack', { env: ENV }), newStack()]) {
    newRetries(stack, { encryptionKey: kms.Key.fromKeyArn(stack, 'Key', arn) });
  }
});

test('a dead-letter queue for small messages is refused', () => {
  const stack = newStack();
  const deadLetterQueue = new sqs.Queue(stack, 'Dead', { maxMessageSizeBytes: 262_144 });
  expect(refusal(() => newRetries(stack, { deadLetterQueue }))).toBe(
    'deadLetterQueue accepts messages of up to 262144 bytes; it must accept 1048576 (maxMessageSizeBytes), because SQS ' +
      'would refuse a larger dead-letter every time',
  );
});

describe('the environment', () => {
  const synthesized = (count: number, targetFunctions: string[] = []) => {
    const stack = newStack();
    const retries = newRetries(stack, { targetFunctions });
    for (let n = 0; n < count; n++) {
      retries.attach(newFunction(stack, `Function${String(n)}`));
    }
    return refusal(() => {
      Stage.of(stack)?.synth();
      throw new Error('it fits');
    });
  };

  test('is refused at synthesis if it cannot fit into 4 KB', () => {
    expect(synthesized(40)).toBe('it fits');
    const message = synthesized(60);
    expect(message).toContain('Stack/Retries/Handler');
    expect(message).toMatch(
      /the retry handler's environment has at least 5\d{3} bytes, and Lambda allows 4096; one pattern in targetFunctions can allow many functions$/m,
    );
  });

  test.each([
    [Fn.sub(`${'x'.repeat(5_000)}\${AWS::Region}`), 5_009],
    [Fn.sub('${Name}${Orders.Arn}${!Kept}', { Name: 'x'.repeat(5_000) }), 5_007],
  ])('counts a substitution: %#', (name, bytes) => {
    const stack = newStack();
    const [problem] = environmentProblems(stack, { TARGET_FUNCTIONS: name });
    const frame = JSON.stringify({ TARGET_FUNCTIONS: '' }).length;
    expect(problem).toContain(`has at least ${String(frame + bytes)} bytes, and Lambda allows 4096`);
  });

  test('is refused with too many policies', () => {
    const stack = newStack();
    const retries = newRetries(stack, { targetFunctions: ['*'] });
    for (let n = 0; n < 60; n++) {
      const functionName = `orders-${String(n)}`.padEnd(64, '-');
      retries.attach(newFunction(stack, `Function${String(n)}`, { functionName }), {
        policy: { maxRetries: 3 },
      });
    }
    const text = refusal(() => Stage.of(stack)?.synth());
    expect(text).toContain('; attach functions with a policy of their own to another AsyncRetries, or');
  });

  test('holds no function that a pattern allows', () => {
    expect(synthesized(60, ['Stack-Function*'])).toBe('it fits');
  });

  test.each([
    [4_096, undefined],
    [4_097, /at least 4097 bytes, and Lambda allows 4096; one glob in nonRetryableErrors/],
  ])('of %d bytes', (bytes, expected) => {
    const stack = newStack('Stack', { env: ENV });
    const variables = { NON_RETRYABLE_ERRORS: '', TARGET_FUNCTIONS: 'arn' };
    variables.NON_RETRYABLE_ERRORS = 'é'.repeat(10);
    variables.NON_RETRYABLE_ERRORS += 'E'.repeat(bytes - Buffer.byteLength(JSON.stringify(variables)));
    const problems = environmentProblems(stack, variables);
    expect(problems).toEqual(expected === undefined ? [] : [expect.stringMatching(expected)]);
  });
});

test('a key that no role can be allowed to use is refused', () => {
  const stack = newStack();
  const encryptionKey = kms.Alias.fromAliasName(stack, 'Key', 'alias/orders');
  expect(refusal(() => newRetries(stack, { encryptionKey }))).toBe(
    'Stack/Key cannot be granted to Stack/Retries/Handler/Role; import the key with Key.fromKeyArn, not an alias by name',
  );
});

test.each(['orders?', 'orders,billing', ' orders', 'orders:li ve'])('the name %j is refused', (name) => {
  expect(refusal(() => newRetries(newStack(), { targetFunctions: [name] }))).toBe(
    `targetFunctions (TARGET_FUNCTIONS) entry "${name}" has a character that is not allowed in a function's name or qualifier`,
  );
});

test.each([59, 21_601])('a maxEventAge of %d seconds is refused', (seconds) => {
  const stack = newStack();
  const retries = newRetries(stack);
  const attach = () => {
    retries.attach(newFunction(stack), { maxEventAge: Duration.seconds(seconds) });
  };
  expect(refusal(attach)).toContain('between 60 and 21600 seconds');
});
