import { Names, Stack } from 'aws-cdk-lib';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sns from 'aws-cdk-lib/aws-sns';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

import { alarms, type AlarmProps, lostOnTheWay, operatorFilter } from './alarms';
import { dashboard } from './dashboard';
import { saveQueries } from './queries';
import { type RetryHandler } from './retry-handler';
import { unqualified } from './target';

/** Who is notified, and what is shown. */
export interface MonitorOptions {
  /**
   * The standard topic that hears when an alarm is raised, and when it is over.
   *
   * @default - the alarms change their state, and nobody is notified
   */
  readonly topic?: sns.ITopic;

  /**
   * Whether there is a dashboard too, which CloudWatch bills by the month.
   *
   * @default false
   */
  readonly dashboard?: boolean;
}

/** All that is watched: the two queues, the handler between them, and how the room for hidden messages is bounded. */
export interface Watched {
  readonly queue: sqs.IQueue;
  readonly deadLetterQueue: sqs.IQueue;
  readonly handler: RetryHandler;
  /** `HIDE_UP_TO`. */
  readonly hideUpTo: string;
}

/** Checks the topic. */
export function checkTopic({ topic }: MonitorOptions, refusals: string[]): void {
  if (topic?.fifo === true) {
    refusals.push(`topic is ${topic.node.path}; it must be a standard topic, not a FIFO one`);
  }
}

/** The alarms, the queries that are saved for the handler's log, and the dashboard. */
export class Monitor extends Construct {
  private readonly action: SnsAction | undefined;
  /** Those of this stack, which the dashboard shows. */
  private readonly shown: cloudwatch.Alarm[] = [];
  private readonly functions = new Set<lambda.IFunction>();

  constructor(scope: Construct, watched: Watched, options: MonitorOptions) {
    super(scope, 'Monitor');
    this.action = options.topic && new SnsAction(options.topic);
    const filter = operatorFilter(this, watched.handler);
    for (const [id, props] of Object.entries(alarms(watched, filter))) {
      this.alarm(this, id, props);
    }
    saveQueries(this, watched.handler.logGroup);
    if (options.dashboard === true) {
      dashboard(this, watched, this.shown);
    }
  }

  /**
   * Watches what Lambda could not send to the retry queue for a function. The alarm belongs to the stack of the function,
   * which refers to that of the retries already.
   */
  watch(target: lambda.IFunction): void {
    const fn = unqualified(target);
    if (!this.functions.has(fn)) {
      this.functions.add(fn);
      // Two AsyncRetries may have aliases of one function.
      const id = `LostOnTheWay${Names.nodeUniqueId(fn.node)}${this.node.addr.slice(-8)}`;
      this.alarm(Stack.of(fn), id, lostOnTheWay(fn));
    }
  }

  private alarm(scope: Construct, id: string, props: AlarmProps): void {
    const alarm = new cloudwatch.Alarm(scope, id, {
      ...props,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
    if (this.action !== undefined) {
      alarm.addAlarmAction(this.action);
      alarm.addOkAction(this.action);
    }
    if (Stack.of(scope) === Stack.of(this)) {
      this.shown.push(alarm);
    }
  }
}
