import { type CfnElement, Stack, Token, TokenComparison } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';

import { allows, functionArn, generatedName } from './target-functions';

/** The type of the metadata entry that says which `AsyncRetries` construct created an invoke configuration. */
export const ATTACHED_TO = 'comeback-cdk:attachedTo';

/** Returns the function that a version or an alias belongs to, or the given function itself. */
export function unqualified(target: lambda.IFunction): lambda.IFunction {
  return 'lambda' in target ? (target as lambda.IVersion).lambda : target;
}

/** Returns the construct to configure: the function itself for the qualifier `$LATEST`, otherwise the given target. */
export function configurable(target: lambda.IFunction): lambda.IFunction {
  return qualifierOf(target) === '$LATEST' ? unqualified(target) : target;
}

/** Returns the CloudFormation resource for a function, if this app creates the function. */
export function resourceOf(fn: lambda.IFunction): lambda.CfnFunction | undefined {
  const resource = fn.node.defaultChild;
  return resource instanceof lambda.CfnFunction ? resource : undefined;
}

/** Returns the name that the app gives a function, if any. */
export function givenName({ functionName }: lambda.CfnFunction): string | undefined {
  return Token.isUnresolved(functionName) ? undefined : functionName;
}

/** Returns a resource's logical id in the template, even if the app overrides it. */
export function logicalIdOf(resource: CfnElement): string {
  return resource.stack.resolve(resource.logicalId) as string;
}

/**
 * Returns the `TARGET_FUNCTIONS` entry that allows every version and alias of a function.
 *
 * The entry must not refer to a function in another stack, because that stack already refers to this one.
 *
 * @param entries the `TARGET_FUNCTIONS` entries from the property `targetFunctions`
 * @returns undefined if one of the entries already allows the function
 * @throws if the function is in another stack, has no `functionName`, and is not allowed by any of the entries
 */
export function entryFor(fn: lambda.IFunction, stack: Stack, entries: string[]): string | undefined {
  const resource = resourceOf(fn);
  if (resource === undefined) {
    return functionArn(stack, fn.functionName);
  }
  const given = givenName(resource);
  const name = given ?? generatedName(resource.stack.stackName, logicalIdOf(resource));
  if (entries.some((entry) => allows(stack, entry, name))) {
    return undefined;
  }
  if (resource.stack === stack) {
    return fn.functionArn;
  }
  if (given !== undefined) {
    return functionArn(stack, given);
  }
  throw new Error(
    `${fn.node.path} is in another stack, has no functionName, and no pattern of targetFunctions allows it; allowing ` +
      'it by its generated name would make the two stacks depend on each other: give it a functionName, or give ' +
      `targetFunctions a pattern that matches what CloudFormation will name it (${name.replace(/[?0]+$/, '…')})`,
  );
}

/**
 * Returns the pattern for a target's entry in `POLICIES`: its function's name, with the qualifier if there is one.
 *
 * @throws if the function is in another stack and has no `functionName`
 */
export function patternFor(target: lambda.IFunction, stack: Stack): string {
  const fn = unqualified(target);
  const resource = resourceOf(fn);
  if (resource !== undefined && resource.stack !== stack && givenName(resource) === undefined) {
    throw new Error(
      `${fn.node.path} is in another stack and has no functionName; naming it in POLICIES by its generated name would ` +
        'make the two stacks depend on each other: give it a functionName',
    );
  }
  const name = (resource && givenName(resource)) ?? fn.functionName;
  return target === fn ? name : `${name}:${qualifierOf(target)}`;
}

/**
 * Refuses a function that cannot be attached, or whose events cannot be retried.
 *
 * @throws if the function is in another account or region, already has an invoke configuration, has
 *   `recursiveLoop: TERMINATE`, is durable, or is in tenant isolation mode
 */
export function checkTarget(target: lambda.IFunction, stack: Stack): void {
  const fn = unqualified(target);
  for (const place of ['account', 'region'] as const) {
    if (Token.compareStrings(fn.env[place], stack[place]) === TokenComparison.DIFFERENT) {
      throw new Error(
        `${target.node.path} is in ${place} ${fn.env[place]}, but this AsyncRetries is in ${stack[place]}; ` +
          "create an AsyncRetries in the function's own account and region",
      );
    }
  }
  const resource = resourceOf(fn);
  if (target === fn && resource === undefined && fn.functionArn.split(':').length > 7) {
    throw new Error(
      `${target.node.path} was imported by the ARN of a version or an alias; import it with ` +
        'Version.fromVersionArn or Alias.fromAliasAttributes instead',
    );
  }
  if (resource?.recursiveLoop === lambda.RecursiveLoop.TERMINATE) {
    throw new Error(
      `${fn.node.path} has recursiveLoop: TERMINATE, so Lambda would stop each event after 16 rounds; leave ` +
        'recursiveLoop out, and attach allows the loop',
    );
  }
  if (resource?.durableConfig !== undefined) {
    throw new Error(
      `${fn.node.path} is a durable function (durableConfig): AWS documents a dead-letter queue for its failed ` +
        'events, and no destination; let its steps retry, and set its deadLetterQueue',
    );
  }
  if (resource?.tenancyConfig !== undefined) {
    throw new Error(
      `${fn.node.path} is in tenant isolation mode (tenancyConfig): each invocation needs a tenant id, and a retry has ` +
        'none; attach a function that invokes this one with its tenant id, and fails if that does',
    );
  }
  const existing = invokeConfigOf(target);
  const retries = existing && attachedTo(existing);
  if (retries !== undefined) {
    throw new Error(`${target.node.path} is already attached to ${retries}`);
  }
  if (existing !== undefined) {
    throw new Error(
      `${target.node.path} already has an invoke configuration, ${existing.node.path}, and can have only one; ` +
        'remove it, and pass its onSuccess and maxEventAge to attach',
    );
  }
}

/** Returns the path of the `AsyncRetries` construct that created an invoke configuration, if any. */
function attachedTo(config: lambda.CfnEventInvokeConfig): string | undefined {
  const metadata = config.node.scope?.node.metadata.find(({ type }) => type === ATTACHED_TO);
  return metadata?.data as string | undefined;
}

/** Returns the target's invoke configuration, from its props, `configureAsyncInvoke` or a separate construct. */
function invokeConfigOf(target: lambda.IFunction): lambda.CfnEventInvokeConfig | undefined {
  const fn = unqualified(target);
  const stack = Stack.of(target);
  const text = (value: unknown) => JSON.stringify(stack.resolve(value));
  const names = [fn.functionName, fn.functionArn, resourceOf(fn)?.functionName].map(text);
  const own = configurable(target).node.tryFindChild('EventInvokeConfig');
  return stack.node
    .findAll()
    .filter((construct) => construct instanceof lambda.CfnEventInvokeConfig)
    .find(
      (config) =>
        config.node.scope === own ||
        (names.includes(text(config.functionName)) && text(config.qualifier) === text(qualifierOf(target))),
    );
}

function qualifierOf(target: lambda.IFunction): string {
  const { aliasName, version } = target as Partial<lambda.IAlias> & Partial<lambda.IVersion>;
  return aliasName ?? version ?? '$LATEST';
}
