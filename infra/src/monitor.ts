import { Aws, Names, Stack } from 'aws-cdk-lib';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type * as sns from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';

import { alarms, logMetrics, lostOnTheWay, type Watched } from './alarms';
import { dashboard } from './dashboard';
import { unqualified } from './target';
import { type Refusals } from './values';

/** Options for monitoring with alarms and a dashboard. */
export interface MonitorOptions {
  /**
   * The SNS standard topic to notify when an alarm is raised or cleared.
   *
   * @default - the alarms change state, but nobody is notified
   */
  readonly topic?: sns.ITopic;

  /**
   * Whether to create a dashboard, for which CloudWatch charges a monthly fee.
   *
   * @default false
   */
  readonly dashboard?: boolean;
}

const QUERIES: Record<string, readonly [name: string, steps: readonly string[]]> = {
  EventLife: [
    "one event's life",
    [
      'fields @timestamp, action, cause, retry, delay, due, error_type, reason, detail, problem, request_id, invoke_request_id',
      'filter key = "PUT THE KEY HERE"',
      'sort @timestamp asc',
    ],
  ],
  WaitingByFunction: [
    'waiting by function',
    [
      'filter ispresent(key)',
      'stats latest(action) as last_action by target, key',
      'filter last_action in ["defer", "keep", "hold"]',
      'stats count(*) as waiting by target',
      'sort waiting desc',
    ],
  ],
  ReasonsByHour: [
    'reasons by hour',
    [
      'filter action = "dead_letter"',
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

/** Refuses a FIFO topic, which alarms cannot notify. */
export function checkTopic({ topic }: MonitorOptions, refusals: Refusals): void {
  if (topic?.fifo === true) {
    refusals.push(`topic is ${topic.node.path}; it must be a standard topic, not a FIFO one`);
  }
}

/** The alarms, the saved queries for the handler's log, and the dashboard. */
export class Monitor extends Construct {
  private readonly action: SnsAction | undefined;
  /** This stack's alarms, which the dashboard shows. */
  private readonly shown: cloudwatch.Alarm[] = [];
  private readonly functions = new Set<lambda.IFunction>();

  constructor(scope: Construct, watched: Watched, options: MonitorOptions) {
    super(scope, 'Monitor');
    this.action = options.topic && new SnsAction(options.topic);
    const logged = logMetrics(this, watched.handler);
    for (const [id, props] of Object.entries(alarms(watched, logged))) {
      this.alarm(this, id, props);
    }
    saveQueries(this, watched.handler.logGroup);
    if (options.dashboard === true) {
      dashboard(this, watched, this.shown);
    }
  }

  /**
   * Watches a function for failures that Lambda could not send to the retry queue.
   *
   * The alarm belongs to the function's stack, because a reference from the construct's stack would be circular.
   */
  watch(target: lambda.IFunction): void {
    const fn = unqualified(target);
    if (!this.functions.has(fn)) {
      this.functions.add(fn);
      // Two `AsyncRetries` constructs may attach different aliases of the same function, so the id contains this
      // construct's address.
      const id = `LostOnTheWay${Names.nodeUniqueId(fn.node)}${this.node.addr.slice(-8)}`;
      this.alarm(Stack.of(fn), id, lostOnTheWay(fn, Stack.of(this)));
    }
  }

  private alarm(scope: Construct, id: string, props: cloudwatch.AlarmProps): void {
    const alarm = new cloudwatch.Alarm(scope, id, props);
    if (this.action !== undefined) {
      alarm.addAlarmAction(this.action);
      alarm.addOkAction(this.action);
    }
    if (Stack.of(scope) === Stack.of(this)) {
      this.shown.push(alarm);
    }
  }
}

function saveQueries(scope: Construct, logGroup: logs.ILogGroup): void {
  const folder = `comeback/${Aws.STACK_NAME}/${Names.uniqueResourceName(scope, { maxLength: 64 })}`;
  for (const [id, [name, steps]] of Object.entries(QUERIES)) {
    new logs.CfnQueryDefinition(scope, `${id}Query`, {
      name: `${folder}/${name}`,
      logGroupNames: [logGroup.logGroupName],
      queryString: steps.join('\n| '),
    });
  }
}
