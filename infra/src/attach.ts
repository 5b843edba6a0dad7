import { Annotations, CfnResource, Duration, Stack, Token } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { type IDependable } from 'constructs';

import { type FunctionPolicy } from './function-policy';
import { allowKey, type RetryHandler } from './retry-handler';
import { ATTACHED_TO, configurable, logicalIdOf, resourceOf, unqualified } from './target';
import { literal } from './values';

/** Options for attaching a function. */
export interface AttachOptions {
  /**
   * The maximum time for which Lambda keeps an event while the function is throttled; 60 seconds to 6 hours.
   *
   * After that, Comeback retries the event as if the function had failed.
   *
   * @default Duration.minutes(1)
   */
  readonly maxEventAge?: Duration;

  /**
   * The destination for the records of successful invocations.
   *
   * @default - none
   */
  readonly onSuccess?: lambda.IDestination;

  /**
   * The retry policy for this function, version or alias only. The policy of a version or alias overrides its
   * function's.
   *
   * @default - the policy of the AsyncRetries
   */
  readonly policy?: FunctionPolicy;
}

/** Sends a function's failed asynchronous invocations to the retry queue, and turns off Lambda's own retries. */
export function sendFailures(
  target: lambda.IFunction,
  queue: sqs.IQueue,
  handler: RetryHandler,
  options: AttachOptions,
): void {
  const fn = unqualified(target);
  const resource = resourceOf(fn);
  const [policy, mayBeSent] = grantSend(fn, queue);
  const configured = configurable(target);
  configured.configureAsyncInvoke({
    // SqsDestination is not used, because it grants more than sending.
    onFailure: { bind: () => ({ destination: queue.queueArn }) },
    onSuccess: options.onSuccess,
    maxEventAge: options.maxEventAge ?? Duration.minutes(1),
    retryAttempts: 0,
  });
  const configuration = configured.node.findChild('EventInvokeConfig').node;
  configuration.addMetadata(ATTACHED_TO, handler.node.scope?.node.path);
  // Without this dependency, the handler would dead-letter the function's events until its own update is deployed.
  configuration.addDependency(handler.function, handler.role);
  if (resource !== undefined) {
    // By default, Lambda stops this Lambda→SQS→Lambda loop after 16 rounds. The retry policy limits the rounds instead.
    resource.recursiveLoop = lambda.RecursiveLoop.ALLOW;
  } else if (policy !== undefined) {
    // Lambda checks the permission when the destination is set. A function that this app creates already depends on its
    // role.
    configuration.addDependency(policy);
  }
  if (hasDeadLetterQueue(fn)) {
    Annotations.of(target).addWarningV2(
      'comeback-cdk:ownDeadLetterQueue',
      'it has its own dead-letter queue, and Lambda sends every failed attempt there too; remove its deadLetterQueue, ' +
        'deadLetterQueueEnabled and deadLetterTopic',
    );
  }
  const duties = [
    ...(mayBeSent ? [] : [sendDuty(queue)]),
    ...(resource === undefined ? [recursionDuty(fn)] : []),
  ];
  if (duties.length > 0) {
    const text = `attached, but some steps cannot be taken from this app; its owner must ${duties.join('; and ')}`;
    Annotations.of(target).addWarningV2('comeback-cdk:ownerMust', text);
  }
}

function hasDeadLetterQueue(fn: lambda.IFunction): boolean {
  return (
    fn instanceof lambda.Function && (fn.deadLetterQueue !== undefined || fn.deadLetterTopic !== undefined)
  );
}

/**
 * Allows the function's role to send to the queue. Returns the policy that the function must wait for, and false if
 * nothing is deployed because the role is unknown or immutable.
 */
function grantSend({ role }: lambda.IFunction, queue: sqs.IQueue): [IDependable | undefined, boolean] {
  if (role === undefined) {
    return [undefined, false];
  }
  allowKey(queue, role);
  const statement = new iam.PolicyStatement({ actions: ['sqs:SendMessage'], resources: [queue.queueArn] });
  const { policyDependable } = role.addToPrincipalPolicy(statement);
  return [policyDependable, hasPolicy(role)];
}

/**
 * Returns true if statements that were added to the role are deployed. An immutable role drops them, but claims that
 * they were added.
 */
function hasPolicy(role: iam.IRole): boolean {
  const resources = role.node.findAll().filter((construct) => CfnResource.isCfnResource(construct));
  return iam.Role.isRole(role) || resources.some((it) => it.cfnResourceType === 'AWS::IAM::Policy');
}

function sendDuty(queue: sqs.IQueue): string {
  const stack = Stack.of(queue);
  const name = `${literal(stack.stackName)}-${logicalIdOf(queue.node.defaultChild as sqs.CfnQueue)}-`;
  const key = queue.encryptionMasterKey && ", and kms:GenerateDataKey and kms:Decrypt on the queue's key";
  return (
    `allow sqs:SendMessage on the retry queue (its name will begin with ${name})${key ?? ''} in the function's ` +
    'execution role, before this is deployed, or Lambda refuses the destination (import the function with its role, ' +
    'by Function.fromFunctionAttributes, and this is done for you, unless that role is immutable)'
  );
}

function recursionDuty(fn: lambda.IFunction): string {
  const name = Token.isUnresolved(fn.functionName) ? `NAME, the name of ${fn.node.path}` : fn.functionName;
  return (
    'set its recursive loop detection, or Lambda stops each event after 16 rounds: ' +
    `aws lambda put-function-recursion-config --recursive-loop Allow --function-name ${name}`
  );
}
