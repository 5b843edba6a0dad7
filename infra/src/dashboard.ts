import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { type Construct } from 'constructs';

import { RUNBOOK, type Watched } from './alarms';

const PERIOD = Duration.minutes(5);
const HALF = { width: 12, height: 6 };
const FROM_ZERO = { min: 0 };

const LINKS = [
  '**Comeback** retries failed asynchronous events.',
  `If something is wrong, see [what each alarm means](${RUNBOOK}),`,
  `[how to operate Comeback](${new URL('operate.md', RUNBOOK).href})`,
  `and [what happens to an event](${new URL('what-happens-to.md', RUNBOOK).href}),`,
  'or run `comeback status` and `comeback doctor`.',
];

/** Creates the dashboard. Alarms added to `alarms` later are shown too. */
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

function waiting({ queue, hideUpTo }: Watched): cloudwatch.IWidget {
  const hidden = queue.metricApproximateNumberOfMessagesNotVisible({ statistic: 'Maximum', label: 'Hidden' });
  const budget = hideUpTo === 'always' ? '120000' : `(2 * ${hideUpTo})`;
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: 'Waiting messages, and how much of the room for hidden ones is used',
    left: [
      hidden,
      queue.metricApproximateNumberOfMessagesDelayed({
        statistic: 'Maximum',
        label: 'Delayed, past HIDE_UP_TO',
      }),
    ],
    leftYAxis: FROM_ZERO,
    right: [
      new cloudwatch.MathExpression({
        expression: `100 * hidden / ${budget}`,
        usingMetrics: { hidden },
        label: 'Room used, %',
      }),
    ],
    rightYAxis: { min: 0, max: 100 },
  });
}

function throughput({ queue, deadLetterQueue }: Watched): cloudwatch.IWidget {
  const dead = deadLetterQueue.metricNumberOfMessagesSent({ statistic: 'Sum', label: 'Dead-lettered' });
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: 'Failures, retries and dead-letters (past HIDE_UP_TO, a move counts as a failure and as a retry)',
    left: [
      queue.metricNumberOfMessagesSent({ statistic: 'Sum', label: 'Failures' }),
      new cloudwatch.MathExpression({
        expression: 'settled - FILL(dead, 0)',
        usingMetrics: { settled: queue.metricNumberOfMessagesDeleted({ statistic: 'Sum' }), dead },
        label: 'Retries',
      }),
      dead,
    ],
    leftYAxis: FROM_ZERO,
  });
}

function lateness({ queue }: Watched): cloudwatch.IWidget {
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: 'Lateness: due but not yet received by the handler',
    left: [queue.metricApproximateNumberOfMessagesVisible({ statistic: 'Maximum', label: 'Due' })],
    leftYAxis: FROM_ZERO,
  });
}

function oldest({ queue, deadLetterQueue }: Watched): cloudwatch.IWidget {
  const age = { statistic: 'Maximum' };
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: 'Age of the oldest message, in seconds',
    left: [
      queue.metricApproximateAgeOfOldestMessage({ ...age, label: 'Waiting' }),
      deadLetterQueue.metricApproximateAgeOfOldestMessage({
        ...age,
        label: 'Dead-letter (only those received fewer than three times)',
      }),
    ],
    leftYAxis: FROM_ZERO,
  });
}

function health({ handler }: Watched): cloudwatch.IWidget {
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: 'Retry handler: errors and throttles',
    left: [
      handler.function.metricErrors({ label: 'Errors' }),
      handler.function.metricThrottles({ label: 'Throttles' }),
    ],
    leftYAxis: FROM_ZERO,
  });
}

function duration({ handler }: Watched): cloudwatch.IWidget {
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: 'Retry handler: duration of a batch, in milliseconds',
    left: [
      handler.function.metricDuration({ statistic: 'Average', label: 'Average' }),
      handler.function.metricDuration({ statistic: 'Maximum', label: 'Longest' }),
    ],
    leftYAxis: FROM_ZERO,
  });
}

/**
 * Returns a graph of a metric, for the ten functions in the region with the highest values. The graph includes
 * functions that are not attached, because CloudWatch cannot search by failure destination.
 */
function ofFunctions(metric: 'Errors' | 'Throttles'): cloudwatch.IWidget {
  const all = `SEARCH('{AWS/Lambda,FunctionName} MetricName="${metric}"', 'Sum', ${String(PERIOD.toSeconds())})`;
  return new cloudwatch.GraphWidget({
    ...HALF,
    title: `${metric}: the ten functions of this region with the most`,
    left: [
      new cloudwatch.MathExpression({ expression: `SORT(REMOVE_EMPTY(${all}), SUM, DESC, 10)`, label: '' }),
    ],
    leftYAxis: FROM_ZERO,
  });
}
