import * as fs from 'node:fs';
import * as path from 'node:path';
import { Annotations, Aspects, Aws, Duration, Lazy, Names, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

import { environmentLeft, environmentProblems } from './environment';
import { handlerFunction } from './handler-code';
import { DEFAULT_MAX_CONCURRENCY } from './policy';
import { type AsyncRetriesProps } from './props';

/** The version of this package, which is also the version of the handler. */
const { version: VERSION } = JSON.parse(
  fs.readFileSync(path.join(__dirname, '..', 'package.json'), 'utf8'),
) as { version: string };

const NO_TARGET = 'comeback-cdk:noTarget';
const ENVIRONMENT = 'comeback-cdk:environment';

export interface RetryHandlerProps extends AsyncRetriesProps {
  readonly queue: sqs.IQueue;
  readonly deadLetterQueue: sqs.IQueue;
  readonly settings: Record<string, string>;
}

/** The retry handler's Lambda function, its role, its log, and the event source mapping that feeds it. */
export class RetryHandler extends Construct {
  readonly function: lambda.Function;
  readonly role: iam.Role;
  readonly logGroup: logs.LogGroup;
  private readonly targets = new Set<string>();
  /** The settings for each pattern that has its own policy. */
  private readonly policies = new Map<string, string>();
  private readonly reinvokeTargets = new iam.PolicyStatement({
    sid: 'ReinvokeTargets',
    actions: ['lambda:InvokeFunction'],
  });

  constructor(scope: Construct, id: string, props: RetryHandlerProps) {
    super(scope, id);
    this.logGroup = new logs.LogGroup(this, 'Logs', {
      retention: props.logRetention ?? logs.RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    // The name of the SSM parameter for the pauses, without the leading slash.
    const pauses = `comeback/${Aws.STACK_NAME}/${Names.uniqueResourceName(scope, { maxLength: 64 })}/pauses`;
    const environment = {
      RETRY_QUEUE_URL: props.queue.queueUrl,
      DEAD_LETTER_QUEUE_URL: props.deadLetterQueue.queueUrl,
      TARGET_FUNCTIONS: Lazy.string({ produce: () => [...this.targets].join(',') }),
      // The first pause creates the parameter. Each execution environment reads it twice a minute.
      PAUSES: `/${pauses}`,
      POLICIES: Lazy.string({ produce: () => this.policyEntries() }),
      ...props.settings,
    };
    // The environment is checked once the app is complete, because each attached function adds to it.
    this.node.addValidation({ validate: () => environmentProblems(Stack.of(this), environment) });
    Aspects.of(this).add({
      visit: (node) => {
        if (node === this && this.policies.size > 0) {
          Annotations.of(this).addInfoV2(ENVIRONMENT, environmentLeft(Stack.of(this), environment));
        }
      },
    });
    this.role = new iam.Role(this, 'Role', { assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com') });
    this.grant(props, pauses);
    this.function = handlerFunction(this, 'Function', props.bootstrap, {
      description: 'Defers, re-invokes or dead-letters the messages of the retry queue.',
      architecture: props.architecture ?? lambda.Architecture.ARM_64,
      memorySize: props.memorySize ?? 256,
      timeout: Duration.seconds(60),
      role: this.role,
      logGroup: this.logGroup,
      // By default, Lambda stops this Lambda→SQS→Lambda loop after 16 rounds. The retry policy limits the rounds
      // instead.
      recursiveLoop: lambda.RecursiveLoop.ALLOW,
      environment,
    });
    // `comeback status` shows this tag.
    Tags.of(this.function).add('comeback:version', VERSION);
    new lambda.EventSourceMapping(this, 'Mapping', {
      target: this.function,
      eventSourceArn: props.queue.queueArn,
      batchSize: props.batchSize ?? 10,
      // A batching window would lengthen every short backoff on a quiet queue.
      maxBatchingWindow: Duration.seconds(0),
      reportBatchItemFailures: true,
      maxConcurrency: props.maxConcurrency ?? DEFAULT_MAX_CONCURRENCY,
    });
    Annotations.of(this).addWarningV2(
      NO_TARGET,
      'targetFunctions (TARGET_FUNCTIONS) is empty, and no function is attached; the handler will keep whatever arrives, ' +
        'and retry nothing',
    );
  }

  /** Adds an entry to `TARGET_FUNCTIONS`, and allows the handler to re-invoke the entry's functions. */
  allow(entry: string): void {
    if (this.targets.size === 0) {
      this.role.addToPrincipalPolicy(this.reinvokeTargets);
      Annotations.of(this).acknowledgeWarning(NO_TARGET);
    }
    if (!this.targets.has(entry)) {
      this.targets.add(entry);
      // The ARN in an invocation record has a qualifier.
      this.reinvokeTargets.addResources(entry, `${entry}:*`);
    }
  }

  setPolicy(pattern: string, settings: string): void {
    this.policies.set(pattern, settings);
  }

  /** Returns the `POLICIES` variable, with versions and aliases first, because the first matching entry applies. */
  private policyEntries(): string {
    const isQualified = ([pattern]: [string, string]) => Number(pattern.includes(':'));
    const entries = [...this.policies].sort((one, other) => isQualified(other) - isQualified(one));
    return entries.map(([pattern, settings]) => `${pattern} ${settings}`).join(';');
  }

  /** Allows only the calls that the retry handler makes; the queues' own grant methods would allow more. */
  private grant({ queue, deadLetterQueue }: RetryHandlerProps, pauses: string): void {
    const allow = (sid: string, resource: string, service: string, ...calls: string[]) => {
      const actions = calls.map((call) => `${service}:${call}`);
      this.role.addToPrincipalPolicy(new iam.PolicyStatement({ sid, actions, resources: [resource] }));
    };
    const taking = ['ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes', 'ChangeMessageVisibility'];
    const parameter = { service: 'ssm', resource: 'parameter', resourceName: pauses };
    allow('TakeFromTheRetryQueue', queue.queueArn, 'sqs', ...taking);
    allow('DeadLetter', deadLetterQueue.queueArn, 'sqs', 'SendMessage');
    // Once HIDE_UP_TO messages are hidden, the handler sends the rest to the retry queue again, with a delay.
    allow('Move', queue.queueArn, 'sqs', 'SendMessage');
    allow('ReadPauses', Stack.of(this).formatArn(parameter), 'ssm', 'GetParameter');
    allow('Log', this.logGroup.logGroupArn, 'logs', 'CreateLogStream', 'PutLogEvents');
    for (const sentTo of [queue, deadLetterQueue]) {
      allowKey(sentTo, this.role);
    }
  }
}

/**
 * Allows a role to use a queue's encryption key through SQS, if the queue has one.
 *
 * @throws if this app cannot grant access to the key; without it, events would be lost silently
 */
export function allowKey({ encryptionMasterKey: key }: sqs.IQueue, role: iam.IRole): void {
  if (key !== undefined && !key.grant(throughSqs(role), 'kms:GenerateDataKey', 'kms:Decrypt').success) {
    throw new Error(
      `${key.node.path} cannot be granted to ${role.node.path}; import the key with Key.fromKeyArn, not an alias by name`,
    );
  }
}

/**
 * Wraps a role so that grants to it apply only to requests through SQS. `key.grant` itself accepts no conditions.
 *
 * The value of `kms:ViaService` ends in `amazonaws.com` in all partitions.
 */
function throughSqs(role: iam.IRole): iam.IGrantable {
  const grantee = Object.create(role) as iam.IRole;
  const viaService = { 'kms:ViaService': `sqs.${Aws.REGION}.amazonaws.com` };
  return Object.defineProperties(grantee, {
    grantPrincipal: { value: grantee },
    addToPrincipalPolicy: {
      value: (statement: iam.PolicyStatement) => {
        statement.addCondition('StringEquals', viaService);
        return role.addToPrincipalPolicy(statement);
      },
    },
  });
}
