import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { type Construct } from 'constructs';

import { RUNBOOK, type Watched } from './alarms';

const PERIOD = Duration.minutes(5);

const LINKS = [
  '**Comeback** retries failed asynchronous events.',
  `If something is wrong, see [what each alarm means](${RUNBOOK}),`,
  `[how to operate Comeback](${new URL('operate.md', RUNBOOK).href})`,
  `and [what happens to an event](${new URL('what-happens-to.md', RUNBOOK).href}),`,
  'or run `comeback status` and `comeback doctor`.',
];

/** Creates the dashboard, which also shows alarms that are added to `alarms` later. */
export function dashboard(scope: Construct, watched: Watched, alarms: cloudwatch.IAlarm[]): void {
  new cloudwatch.Dashboard(scope, 'Dashboard', {
    widgets: [
      [new cloudwatch.TextWidget({ markdown: LINKS.join(' '), width: 24, height: 2 })],
      [new cloudwatch.AlarmStatusWidget({ title: 'Alarms', alarms, width: 24, height: 4 })],
      [waiting(watched), throughput(watched)],
      [lateness(watched), oldest(watched)],
      [health(watched), duration(watched)],
      [ofFunctions('Errors'), ofFunctions('Throttles')],
    ],
  });
}

function graph(
  title: string,
  left: cloudwatch.IMetric[],
  more: cloudwatch.GraphWidgetProps = {},
): cloudwatch.IWidget {
  return new cloudwatch.GraphWidget({ width: 12, height: 6, title, left, leftYAxis: { min: 0 }, ...more });
}

function waiting({ queue, hideUpTo }: Watched): cloudwatch.IWidget {
  const hidden = queue.metricApproximateNumberOfMessagesNotVisible({ statistic: 'Maximum', label: 'Hidden' });
  const delayed = { statistic: 'Maximum', label: 'Delayed, past HIDE_UP_TO' };
  const room = hideUpTo === 'always' ? '120000' : `(2 * ${hideUpTo})`;
  const used = new cloudwatch.MathExpression({
    expression: `100 * hidden / ${room}`,
    usingMetrics: { hidden },
    label: 'Room used, %',
  });
  return graph(
    'Waiting messages, and how much of the room for hidden ones is used',
    [hidden, queue.metricApproximateNumberOfMessagesDelayed(delayed)],
    { right: [used], rightYAxis: { min: 0, max: 100 } },
  );
}

function throughput({ queue, deadLetterQueue }: Watched): cloudwatch.IWidget {
  const dead = deadLetterQueue.metricNumberOfMessagesSent({ statistic: 'Sum', label: 'Dead-lettered' });
  const settled = queue.metricNumberOfMessagesDeleted({ statistic: 'Sum' });
  return graph(
    'Failures, retries and dead-letters (past HIDE_UP_TO, a move counts as a failure and as a retry)',
    [
      queue.metricNumberOfMessagesSent({ statistic: 'Sum', label: 'Failures' }),
      new cloudwatch.MathExpression({
        expression: 'settled - FILL(dead, 0)',
        usingMetrics: { settled, dead },
        label: 'Retries',
      }),
      dead,
    ],
  );
}

function lateness({ queue }: Watched): cloudwatch.IWidget {
  return graph('Lateness: due but not yet received by the handler', [
    queue.metricApproximateNumberOfMessagesVisible({ statistic: 'Maximum', label: 'Due' }),
  ]);
}

function oldest({ queue, deadLetterQueue }: Watched): cloudwatch.IWidget {
  const dead = 'Dead-letter (only those received fewer than three times)';
  return graph('Age of the oldest message, in seconds', [
    queue.metricApproximateAgeOfOldestMessage({ statistic: 'Maximum', label: 'Waiting' }),
    deadLetterQueue.metricApproximateAgeOfOldestMessage({ statistic: 'Maximum', label: dead }),
  ]);
}

function health({ handler }: Watched): cloudwatch.IWidget {
  return graph('Retry handler: errors and throttles', [
    handler.function.metricErrors({ label: 'Errors' }),
    handler.function.metricThrottles({ label: 'Throttles' }),
  ]);
}

function duration({ handler }: Watched): cloudwatch.IWidget {
  return graph('Retry handler: duration of a batch, in milliseconds', [
    handler.function.metricDuration({ statistic: 'Average', label: 'Average' }),
    handler.function.metricDuration({ statistic: 'Maximum', label: 'Longest' }),
  ]);
}

/**
 * Returns a graph of the region's ten functions with the highest values.
 *
 * Functions that are not attached count too, because CloudWatch cannot search by failure destination.
 */
function ofFunctions(metric: 'Errors' | 'Throttles'): cloudwatch.IWidget {
  const all = `SEARCH('{AWS/Lambda,FunctionName} MetricName="${metric}"', 'Sum', ${PERIOD.toSeconds()})`;
  const most = `SORT(REMOVE_EMPTY(${all}), SUM, DESC, 10)`;
  return graph(`${metric}: the ten functions of this region with the most`, [
    new cloudwatch.MathExpression({ expression: most, label: '' }),
  ]);
}
