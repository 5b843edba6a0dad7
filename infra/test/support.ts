import * as fs from 'node:fs';
import * as path from 'node:path';
import { App, type CfnElement, Stack, type StackProps } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { type Construct, type IConstruct } from 'constructs';

import { AsyncRetries, type AsyncRetriesProps } from '../src';

export const REPOSITORY = path.join(__dirname, '..', '..');

const { SCRATCH: scratch = '' } = process.env;

/** A folder with a fake retry handler. */
export const BOOTSTRAP = fs.mkdtempSync(path.join(scratch, 'code-'));
fs.writeFileSync(path.join(BOOTSTRAP, 'bootstrap'), '#!/bin/sh\n', { mode: 0o755 });

export const ENV = { account: '123456789012', region: 'eu-west-1' };

export interface Resource {
  readonly Type: string;
  readonly Properties: Record<string, unknown>;
  readonly [attribute: string]: unknown;
}

/** Creates an app that writes to the scratch folder, which is deleted after the tests. */
export function newApp(): App {
  return new App({ outdir: fs.mkdtempSync(path.join(scratch, 'cdk.out-')) });
}

export function newStack(id = 'Stack', props: StackProps = {}): Stack {
  return new Stack(newApp(), id, props);
}

export function newRetries(scope: Construct, props: AsyncRetriesProps = {}): AsyncRetries {
  return new AsyncRetries(scope, 'Retries', { bootstrap: BOOTSTRAP, ...props });
}

export function newFunction(
  scope: Construct,
  id = 'Orders',
  props: Partial<lambda.FunctionProps> = {},
): lambda.Function {
  return new lambda.Function(scope, id, {
    runtime: lambda.Runtime.PYTHON_3_13,
    handler: 'index.handler',
    code: lambda.Code.fromInline('def handler(event, context): pass'),
    ...props,
  });
}

export function withOne(props: AsyncRetriesProps = {}): {
  stack: Stack;
  retries: AsyncRetries;
  orders: lambda.Function;
} {
  const stack = newStack();
  const retries = newRetries(stack, props);
  const orders = newFunction(stack);
  retries.attach(orders);
  return { stack, retries, orders };
}

export function resources(stack: Stack, type: string): Resource[] {
  return Object.values(Template.fromStack(stack).findResources(type)) as Resource[];
}

export function resource(construct: IConstruct): Resource {
  const stack = Stack.of(construct);
  const { Resources } = Template.fromStack(stack).toJSON() as { Resources: Record<string, Resource> };
  const found = Resources[logicalId(construct)];
  if (found === undefined) {
    throw new Error(`no resource for ${construct.node.path}`);
  }
  return found;
}

/** Returns the logical id of a construct's resource. Call this only when the app is complete. */
export function logicalId(construct: IConstruct): string {
  const { defaultChild } = construct.node;
  return Stack.of(construct).resolve((defaultChild as CfnElement).logicalId) as string;
}

export function arn(construct: IConstruct): unknown {
  return { 'Fn::GetAtt': [logicalId(construct), 'Arn'] };
}

export function ref(construct: IConstruct): unknown {
  return { Ref: logicalId(construct) };
}

export function statements(role: IConstruct): unknown[] {
  const stack = Stack.of(role);
  const own = JSON.stringify([ref(role)]);
  return resources(stack, 'AWS::IAM::Policy')
    .filter(({ Properties }) => JSON.stringify(Properties.Roles) === own)
    .flatMap(({ Properties }) => (Properties.PolicyDocument as { Statement: unknown[] }).Statement);
}

export function refusal(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}
