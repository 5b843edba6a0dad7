export interface Template {
  readonly Parameters?: Record<string, { readonly Default?: unknown }>;
  readonly Conditions?: Record<string, unknown>;
  readonly Resources: Record<string, Record<string, unknown>>;
}

/**
 * Returns a template's resources in a canonical form, so that equivalent templates compare equal.
 *
 * Parameters, conditions and functions that build strings are evaluated. Scalars become strings. A role's policies
 * become one set of statements, keyed by their actions and resources. A dashboard becomes its list of widgets.
 *
 * @param names the name of each resource by its logical id
 * @param parameters the values of parameters; all other parameters have their defaults
 * @throws if a resource has no name, or if the template contains an intrinsic function that is not implemented here
 */
export function canonical(
  template: Template,
  names: ReadonlyMap<string, string>,
  parameters: Readonly<Record<string, string>> = {},
): Record<string, unknown> {
  const evaluate = evaluator(template, names, parameters);
  const resources: Record<string, Record<string, unknown>> = {};
  const policies: [string, unknown][] = [];
  for (const [logicalId, { Condition, ...resource }] of Object.entries(template.Resources)) {
    if (Condition !== undefined && evaluate({ 'Fn::If': [Condition, 'yes', 'no'] }) === 'no') {
      continue;
    }
    const { Properties, ...attributes } = evaluate(resource) as Record<string, Record<string, unknown>>;
    if (resource.Type === 'AWS::IAM::Policy') {
      const { Roles, PolicyDocument } = Properties ?? {};
      policies.push(...(Roles as string[]).map((role): [string, unknown] => [role, PolicyDocument]));
      continue;
    }
    // CloudFormation deletes resources by default.
    const defaults = { DeletionPolicy: 'Delete', UpdateReplacePolicy: 'Delete' };
    resources[nameOf(logicalId, names)] = {
      ...defaults,
      ...attributes,
      ...Properties,
      ...widgetsOf(Properties),
    };
  }
  for (const [name, role] of Object.entries(resources).filter(([, { Type }]) => Type === 'AWS::IAM::Role')) {
    const { Policies = [], ...rest } = role;
    const inline = (Policies as { PolicyDocument: unknown }[]).map((policy) => policy.PolicyDocument);
    const attached = policies.filter(([owner]) => owner === `\${${name}}`).map(([, document]) => document);
    resources[name] = { ...rest, Allowed: union([...inline, ...attached] as Record<string, unknown>[]) };
  }
  return resources;
}

function widgetsOf(properties: Record<string, unknown> = {}): Record<string, unknown> {
  const { DashboardBody } = properties;
  return typeof DashboardBody === 'string' ? { DashboardBody: JSON.parse(DashboardBody) as unknown } : {};
}

/** Returns the path of each difference between two templates, with the value on each side. */
export function differences(left: unknown, right: unknown, path = ''): Map<string, [unknown, unknown]> {
  const found = new Map<string, [unknown, unknown]>();
  const ofOneLength = Array.isArray(left) && Array.isArray(right) && left.length === right.length;
  if (ofOneLength || (isObject(left) && isObject(right))) {
    const [ours, theirs] = [left, right] as [Record<string, unknown>, Record<string, unknown>];
    for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
      const nested = differences(ours[key], theirs[key], path === '' ? key : `${path}.${key}`);
      nested.forEach((sides, where) => found.set(where, sides));
    }
  } else if (JSON.stringify(left) !== JSON.stringify(right)) {
    found.set(path, [left, right]);
  }
  return found;
}

function evaluator(
  template: Template,
  names: ReadonlyMap<string, string>,
  parameters: Readonly<Record<string, string>>,
): (value: unknown) => unknown {
  const reference = (logicalId: string): unknown => {
    const parameter = template.Parameters?.[logicalId];
    if (parameter !== undefined) {
      return parameters[logicalId] ?? text(parameter.Default);
    }
    if (logicalId === 'AWS::NoValue') {
      return undefined;
    }
    return logicalId.startsWith('AWS::') ? `\${${logicalId}}` : `\${${nameOf(logicalId, names)}}`;
  };
  const attribute = (logicalId: string, name: string) => `\${${nameOf(logicalId, names)}.${name}}`;
  const condition = (name: string): boolean => holds(template.Conditions?.[name]);
  const holds = (value: unknown): boolean => {
    const [[operator, operands] = ['', []]] = Object.entries(value as Record<string, unknown[]>);
    switch (operator) {
      case 'Condition':
        return condition(String(operands));
      case 'Fn::Equals':
        return evaluate(operands[0]) === evaluate(operands[1]);
      case 'Fn::Not':
        return !operands.some(holds);
      case 'Fn::And':
        return operands.every(holds);
      case 'Fn::Or':
        return operands.some(holds);
      default:
        throw new Error(`${operator} is not understood: ${JSON.stringify(value)}`);
    }
  };
  const functions: Record<string, (argument: never) => unknown> = {
    Ref: (logicalId: string) => reference(logicalId),
    'Fn::GetAtt': ([logicalId, name]: [string, string]) => attribute(logicalId, name),
    'Fn::If': ([name, yes, no]: [string, unknown, unknown]) => evaluate(condition(name) ? yes : no),
    'Fn::Join': ([separator, parts]: [string, unknown]) => (evaluate(parts) as string[]).join(separator),
    'Fn::Split': ([separator, whole]: [string, unknown]) => (evaluate(whole) as string).split(separator),
    'Fn::Sub': (argument: string | [string, Record<string, unknown>]) => {
      const [pattern, values] = typeof argument === 'string' ? [argument, {}] : argument;
      return pattern.replace(/\$\{([\w:]+)(?:\.(\w+))?\}/g, (_, logicalId: string, name?: string) => {
        const value = logicalId in values ? evaluate(values[logicalId]) : undefined;
        return name === undefined ? String(value ?? reference(logicalId)) : attribute(logicalId, name);
      });
    },
  };
  const evaluate = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.map(evaluate).filter((entry) => entry !== undefined);
    }
    if (!isObject(value)) {
      return text(value);
    }
    const [[key, argument] = ['', undefined], ...others] = Object.entries(value);
    if (others.length === 0 && (key === 'Ref' || key.startsWith('Fn::'))) {
      const apply = functions[key];
      if (apply === undefined) {
        throw new Error(`${key} is not understood: ${JSON.stringify(value)}`);
      }
      return apply(argument as never);
    }
    if ('Statement' in value) {
      return byWhatTheyAllow(evaluate(value.Statement) as Record<string, unknown>[]);
    }
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, evaluate(member)]));
  };
  return evaluate;
}

/**
 * Returns IAM policy statements keyed by their sorted actions and resources, so that order makes no difference.
 */
function byWhatTheyAllow(statements: Record<string, unknown>[]): Record<string, unknown> {
  const list = (value: unknown) => [value].flat().sort().join(' ');
  const parts = statements.map(({ Action, Resource, ...rest }) => ({
    [Resource === undefined ? list(Action) : `${list(Action)} on ${list(Resource)}`]: rest,
  }));
  return union(parts);
}

/** Merges objects, and fails if two of them have the same key. */
function union(objects: Record<string, unknown>[]): Record<string, unknown> {
  const all = Object.assign({}, ...objects) as Record<string, unknown>;
  const members = objects.flatMap((object) => Object.keys(object));
  if (members.length !== Object.keys(all).length) {
    throw new Error(`two statements allow the same: ${members.join(', ')}`);
  }
  return all;
}

function nameOf(logicalId: string, names: ReadonlyMap<string, string>): string {
  const name = names.get(logicalId);
  if (name === undefined) {
    throw new Error(`the resource ${logicalId} has no counterpart to be compared with`);
  }
  return name;
}

function text(value: unknown): unknown {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
