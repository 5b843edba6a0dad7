/**
 * Two functions and the construct they share: a Rust function that unwraps its envelope, and a Python function that
 * knows of retries only that an event may have one key more.
 *
 *     npx cdk deploy [-c architecture=x86_64] [-c bootstrap=FOLDER]
 */
import * as path from 'node:path';
import { App, CfnOutput, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { RustFunction } from 'cargo-lambda-cdk';
import { type Construct } from 'constructs';

import { AsyncRetries, Envelope } from '../src';

/** Fails as often as its event says: `{"fail_times": 3}`. */
const ORDERS = `
def handler(event, context):
    attempt = event.get("_retry_metadata", {"attempt": 0})["attempt"]
    if attempt < event["fail_times"]: raise RuntimeError(f"attempt {attempt} was asked to fail")
`;

class Example extends Stack {
  constructor(scope: Construct, id: string) {
    super(scope, id);
    const architecture = new lambda.Architecture(this.context('architecture') ?? 'arm64');

    const retries = new AsyncRetries(this, 'Retries', {
      architecture,
      bootstrap: this.context('bootstrap'),
      envelope: Envelope.INLINE,
      // So few that an event that always fails is dead-lettered within a minute.
      maxRetries: 4,
    });

    const flaky = new RustFunction(this, 'Flaky', {
      architecture,
      manifestPath: path.join(__dirname, '..', '..', 'functions', 'flaky-target', 'Cargo.toml'),
    });
    const orders = new lambda.Function(this, 'Orders', {
      architecture,
      runtime: lambda.Runtime.PYTHON_3_13,
      handler: 'index.handler',
      code: lambda.Code.fromInline(ORDERS),
    });
    retries.attach(flaky);
    retries.attach(orders);

    new CfnOutput(this, 'ExampleTargetName', { value: flaky.functionName });
    new CfnOutput(this, 'OrdersName', { value: orders.functionName });
    new CfnOutput(this, 'RetryQueueUrl', { value: retries.queue.queueUrl });
    new CfnOutput(this, 'DeadLetterQueueUrl', { value: retries.deadLetterQueue.queueUrl });
    new CfnOutput(this, 'RetryHandlerName', { value: retries.handler.functionName });
  }
}

new Example(new App(), 'ComebackExample');
