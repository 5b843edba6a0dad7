/**
 * An app with two functions that share one AsyncRetries construct. Only the Rust function opens a retry's envelope.
 *
 * The functions are built for arm64, or for x86_64 with `-c architecture=x86_64`.
 */
import { execFileSync } from 'node:child_process';
import * as path from 'node:path';
import { App, CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { RustFunction } from 'cargo-lambda-cdk';
import { type Construct } from 'constructs';

import { AsyncRetries, EnvelopeStyle, Jitter } from '../src';

const CHECKOUT = path.join(__dirname, '..', '..');

/** A function that fails as often as its event requests. */
const ORDERS = `
def handler(event, context):
    attempt = event.get("_retry_metadata", {"attempt": 0})["attempt"]
    if attempt < event["fail_times"]: raise RuntimeError(f"attempt {attempt} was asked to fail")
`;

/**
 * Builds this checkout's retry handler, and returns its folder. Cargo writes only to standard error, because the CDK
 * reserves standard output for itself.
 */
function builtHandler(architecture: lambda.Architecture): string {
  const folder = path.join(CHECKOUT, 'target', 'cdk-example');
  const flags = ['--flatten', 'retry-handler', `--${architecture.name.replace('_', '-')}`];
  execFileSync('cargo', ['lambda', 'build', '--release', '--lambda-dir', folder, ...flags], {
    cwd: path.join(CHECKOUT, 'functions', 'retry-handler'),
    stdio: ['ignore', 2, 2],
  });
  return folder;
}

class Example extends Stack {
  constructor(scope: Construct, id: string) {
    super(scope, id);
    const wanted = this.node.tryGetContext('architecture') as string | undefined;
    const architecture = lambda.Architecture.custom(wanted ?? 'arm64');

    const flaky = new RustFunction(this, 'Flaky', {
      architecture,
      manifestPath: path.join(CHECKOUT, 'functions/flaky-target/Cargo.toml'),
    });
    const orders = new lambda.Function(this, 'Orders', {
      architecture,
      code: lambda.Code.fromInline(ORDERS),
      handler: 'index.handler',
      runtime: lambda.Runtime.PYTHON_3_14,
    });

    const retries = new AsyncRetries(this, 'Retries', {
      architecture,
      bootstrap: builtHandler(architecture),
      envelope: EnvelopeStyle.INLINE,
      // Few enough that an event that always fails is dead-lettered within a minute.
      maxRetries: 4,
      // Lets `cdk destroy` delete the queues too.
      removalPolicy: RemovalPolicy.DESTROY,
    });
    // Each function has its own policy.
    const backoffs = [1, 2, 12].map((seconds) => Duration.seconds(seconds));
    retries.attach(flaky, { policy: { backoffs, jitter: Jitter.NONE } });
    retries.attach(orders, { policy: { maxRetries: 2 } });

    const outputs = {
      ExampleTargetName: flaky.functionName,
      OrdersName: orders.functionName,
      RetryHandlerName: retries.handler.functionName,
      RetryQueueUrl: retries.queue.queueUrl,
      DeadLetterQueueUrl: retries.deadLetterQueue.queueUrl,
    };
    for (const [name, value] of Object.entries(outputs)) {
      new CfnOutput(this, name, { value });
    }
  }
}

new Example(new App(), 'ComebackExample');
