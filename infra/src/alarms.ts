import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { type Construct } from 'constructs';

import { type Watched } from './monitor';
import { type RetryHandler } from './retry-handler';

/** An alarm without what all of them have. */
export type AlarmProps = Omit<cloudwatch.AlarmProps, 'treatMissingData'>;

/** The page that says of each alarm what it means and what to do. */
export const RUNBOOK = 'https://github.com/comeback-retries/comeback/blob/main/docs/alarms.md';

const MINUTE = Duration.minutes(1);
const QUARTER_HOUR = Duration.minutes(15);
const { GREATER_THAN_THRESHOLD, GREATER_THAN_OR_EQUAL_TO_THRESHOLD } = cloudwatch.ComparisonOperator;

/** Each alarm of a deployment, by its id. */
export function alarms(watched: Watched, needed: cloudwatch.IMetric): Record<string, AlarmProps> {
  return { ...ofDeadLetters(watched), ...ofHandler(watched, needed), ...ofRetryQueue(watched) };
}

/** The lines of the level ERROR in the handler's log: most are about what does not pass by itself. */
export function operatorFilter(scope: Construct, handler: RetryHandler): cloudwatch.IMetric {
  const filter = new logs.MetricFilter(scope, 'NeedsAnOperatorFilter', {
    logGroup: handler.logGroup,
    filterPattern: logs.FilterPattern.stringValue('$.level', '=', 'ERROR'),
    // A filter gives its metric no dimension that is not in the line, so the handler's name is in the namespace.
    metricNamespace: `Comeback/${handler.function.functionName}`,
    metricName: 'NeedsAnOperator',
    metricValue: '1',
  });
  return filter.metric({ statistic: 'Sum', period: Duration.minutes(5) });
}

/** What Lambda could not send to the retry queue, and dropped. */
export function lostOnTheWay(fn: lambda.IFunction): AlarmProps {
  return {
    metric: fn.metric('DestinationDeliveryFailures', { statistic: 'Sum', period: Duration.minutes(5) }),
    threshold: 1,
    comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    evaluationPeriods: 1,
    alarmDescription:
      'Lambda could not send failed events of this function to the retry queue, and has dropped them. ' +
      `Run comeback doctor FUNCTION. ${RUNBOOK}#lost-on-the-way`,
  };
}

function ofDeadLetters({ deadLetterQueue: queue }: Watched): Record<string, AlarmProps> {
  // In flight too: letters that somebody reads are hidden, and are there.
  const held = (period: Duration) =>
    expression('visible + hidden', period, { visible: visible(queue), hidden: hidden(queue) });
  return {
    DeadLetters: {
      metric: held(MINUTE),
      threshold: 1,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 5,
      alarmDescription:
        'Events were given up, and wait in the dead-letter queue until somebody decides. ' +
        `Run comeback dead list, then redrive or discard them. ${RUNBOOK}#dead-letters`,
    },
    DeadLettersExpire: {
      metric: held(Duration.hours(1)),
      threshold: 1,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      // CloudWatch looks back on 7 days at most.
      evaluationPeriods: 7 * 24,
      alarmDescription:
        'The dead-letter queue has not been empty for 7 days, which is as long as CloudWatch looks back, and SQS deletes ' +
        'each letter 14 days after it was sent. Run comeback status for the age of the oldest, then comeback dead list. ' +
        `${RUNBOOK}#dead-letters-expire`,
    },
  };
}

function ofHandler({ handler }: Watched, needed: cloudwatch.IMetric): Record<string, AlarmProps> {
  const fn = handler.function;
  return {
    HandlerErrors: {
      metric: fn.metricErrors({ period: MINUTE }),
      threshold: 1,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 5,
      datapointsToAlarm: 2,
      alarmDescription:
        'The retry handler fails, which it never does by itself: a setting that it refuses, a timeout or a bug. Events wait, ' +
        `and none is lost. Run comeback doctor, and read the log of the handler. ${RUNBOOK}#handler-errors`,
    },
    Throttled: {
      metric: expression('IF(throttles > 0 AND FILL(invocations, 0) == 0, 1, 0)', QUARTER_HOUR, {
        throttles: fn.metricThrottles(),
        invocations: fn.metricInvocations(),
      }),
      threshold: 1,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 1,
      alarmDescription:
        'Lambda has throttled the retry handler for 15 minutes and has run it not once: the account has no concurrency left, ' +
        'or the handler has a reserved concurrency. Each try hides its messages for 20 minutes. Run comeback doctor. ' +
        `${RUNBOOK}#throttled`,
    },
    NeedsAnOperator: {
      metric: needed,
      threshold: 1,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      // One event is looked at once an hour at least, and logs an ERROR each time.
      evaluationPeriods: 13,
      datapointsToAlarm: 1,
      alarmDescription:
        'The log of the retry handler has an ERROR, such as a missing permission or a disabled key. Most do not pass by ' +
        `themselves, and their lines name the remedy. Run comeback doctor. ${RUNBOOK}#needs-an-operator`,
    },
  };
}

function ofRetryQueue({ queue }: Watched): Record<string, AlarmProps> {
  return {
    Stalled: {
      metric: expression('IF(visible > 0 AND FILL(received, 0) == 0, 1, 0)', MINUTE, {
        visible: visible(queue),
        received: queue.metricNumberOfMessagesReceived({ statistic: 'Sum' }),
      }),
      threshold: 1,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 15,
      alarmDescription:
        'Retries are due, and for 15 minutes nothing has received a message: the event source mapping of the retry handler ' +
        `is disabled or gone, its role may not receive, or the queue is full. Run comeback doctor. ${RUNBOOK}#stalled`,
    },
    Late: {
      metric: visible(queue, MINUTE),
      threshold: 1_000,
      comparisonOperator: GREATER_THAN_THRESHOLD,
      evaluationPeriods: 15,
      alarmDescription:
        'Over 1,000 retries have been due for 15 minutes: the pollers are too few, so retries come late. ' +
        `Raise MAXIMUM_CONCURRENCY to what comeback schedule --rate prints. ${RUNBOOK}#late`,
    },
    Crowded: {
      metric: hidden(queue, MINUTE),
      threshold: 105_000,
      comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 5,
      alarmDescription:
        '105,000 messages are hidden: more than 2 x HIDE_UP_TO at its default, and near the 120,000 or so at which SQS ' +
        `delivers nothing and all retries stall. Run comeback status and comeback doctor. ${RUNBOOK}#crowded`,
    },
  };
}

function expression(
  text: string,
  period: Duration,
  usingMetrics: Record<string, cloudwatch.IMetric>,
): cloudwatch.MathExpression {
  return new cloudwatch.MathExpression({ expression: text, period, usingMetrics });
}

function visible(queue: sqs.IQueue, period?: Duration): cloudwatch.Metric {
  return queue.metricApproximateNumberOfMessagesVisible({ statistic: 'Maximum', period });
}

function hidden(queue: sqs.IQueue, period?: Duration): cloudwatch.Metric {
  return queue.metricApproximateNumberOfMessagesNotVisible({ statistic: 'Maximum', period });
}
