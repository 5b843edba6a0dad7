import * as fs from 'node:fs';
import * as path from 'node:path';
import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { expect, test } from 'vitest';

import { type AsyncRetriesProps, type AttachOptions, EnvelopeStyle, HandlerMetrics, Jitter } from '../src';
import { newFunction, newRetries, newStack } from './support';

/** Maps the text of each `@default` in the doc comments to the value that it stands for. */
const MEANING = new Map<string, unknown>([
  ['[]', []],
  ['10', 10],
  ['1000', 1000],
  ['256', 256],
  ['50_000', 50_000],
  ['Duration.hours(1)', Duration.hours(1)],
  ['Duration.hours(24)', Duration.hours(24)],
  ['Duration.minutes(1)', Duration.minutes(1)],
  ['Duration.seconds(10)', Duration.seconds(10)],
  ['EnvelopeStyle.WRAP', EnvelopeStyle.WRAP],
  ['HandlerMetrics.OFF', HandlerMetrics.OFF],
  ['Jitter.FULL', Jitter.FULL],
  ['false', false],
  ['true', true],
  ['RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE', RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE],
  ['lambda.Architecture.ARM_64', lambda.Architecture.ARM_64],
  ['logs.RetentionDays.ONE_MONTH', logs.RetentionDays.ONE_MONTH],
]);

/** Returns the defaults in the doc comments of a file's properties, except those described in words (`- …`). */
function documented(file: string): Record<string, unknown> {
  const source = fs.readFileSync(path.join(__dirname, '..', 'src', file), 'utf8');
  const properties = [...source.matchAll(/@default (.+)\n\s+\*\/\n\s+readonly (\w+)\?:/g)];
  expect(properties).toHaveLength((source.match(/readonly \w+\?:/g) ?? []).length);
  const named = properties.filter(([, text]) => text?.startsWith('- ') === false);
  return Object.fromEntries(
    named.map(([, text = '', name = '']) => {
      expect([...MEANING.keys()]).toContain(text);
      return [name, MEANING.get(text)];
    }),
  );
}

function template(props: AsyncRetriesProps, options: AttachOptions): unknown {
  const stack = newStack();
  const retries = newRetries(stack, props);
  retries.attach(newFunction(stack), options);
  return Template.fromStack(stack).toJSON();
}

test('omitted properties have their documented defaults', () => {
  const policy = { ...documented('function-policy.ts'), ...documented('policy.ts') };
  const others = documented('props.ts');
  const options = documented('attach.ts');
  expect(Object.keys(policy)).toHaveLength(12);
  expect(Object.keys(others)).toHaveLength(6);
  expect(Object.keys(options)).toHaveLength(1);
  const said = template({ ...policy, ...others }, options);
  expect(said).toEqual(template({}, {}));
});
