import { Aws, Names } from 'aws-cdk-lib';
import * as logs from 'aws-cdk-lib/aws-logs';
import { type Construct } from 'constructs';

/** Each query of the handler's log, by its id: its name, and its steps. */
const QUERIES: Record<string, readonly [name: string, steps: readonly string[]]> = {
  EventLife: [
    "one event's life",
    [
      'fields @timestamp, action, retry, delay, due, error_type, reason, detail, problem, request_id, invoke_request_id',
      'filter key = "PUT THE KEY HERE"',
      'sort @timestamp asc',
    ],
  ],
  WaitingByFunction: [
    'waiting by function',
    [
      'filter ispresent(key) and not (ispresent(problem) and action in ["reinvoke", "dead_letter"])',
      'stats latest(action) as last_action by target, key',
      'filter last_action in ["defer", "keep", "hold"]',
      'stats count(*) as waiting by target',
      'sort waiting desc',
    ],
  ],
  ReasonsByHour: [
    'reasons by hour',
    [
      'filter ispresent(reason) and not ispresent(problem)',
      'stats count(*) as dead_letters by bin(1h) as hour, reason',
      'sort hour desc',
    ],
  ],
  Remedies: [
    'remedies',
    [
      'filter ispresent(remedy)',
      'stats count(*) as lines, latest(@timestamp) as last_seen by problem, remedy',
      'sort last_seen desc',
    ],
  ],
};

/** Saves each query, so that the console of CloudWatch Logs offers it. */
export function saveQueries(scope: Construct, logGroup: logs.ILogGroup): void {
  const folder = `comeback/${Aws.STACK_NAME}/${Names.uniqueResourceName(scope, { maxLength: 64 })}`;
  for (const [id, [name, steps]] of Object.entries(QUERIES)) {
    new logs.CfnQueryDefinition(scope, `${id}Query`, {
      name: `${folder}/${name}`,
      logGroupNames: [logGroup.logGroupName],
      queryString: steps.join('\n| '),
    });
  }
}
