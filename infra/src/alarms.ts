import { Aws, Duration, Stack } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { type Construct } from 'constructs';

import { type RetryHandler } from './retry-handler';

export interface Watched {
  readonly queue: sqs.IQueue;
  readonly deadLetterQueue: sqs.IQueue;
  readonly handler: RetryHandler;
  /** The setting `HIDE_UP_TO`. */
  readonly hideUpTo: string;
}

/** The properties that differ from alarm to alarm. */
type AlarmProps = Pick<cloudwatch.AlarmProps, 'metric' | 'alarmDescription'> & Partial<cloudwatch.AlarmProps>;

export const RUNBOOK = 'https://github.com/comeback-retries/comeback/blob/main/docs/alarms.md';

const STACK = `--stack ${Aws.STACK_NAME}`;

const MINUTE = Duration.minutes(1);
const QUARTER_HOUR = Duration.minutes(15);

export function alarms(watched: Watched, logged: LogMetrics): Record<string, cloudwatch.AlarmProps> {
  const all = { ...ofDeadLetters(watched, logged), ...ofHandler(watched, logged), ...ofRetryQueue(watched) };
  return Object.fromEntries(Object.entries(all).map(([id, props]) => [id, completed(id, props)]));
}

/** Adds the properties that all alarms share, and a link to the alarm's section in the runbook. */
function completed(id: string, { alarmDescription = '', ...props }: AlarmProps): cloudwatch.AlarmProps {
  const section = id.replace(/\B[A-Z]/g, '-$&').toLowerCase();
  return {
    threshold: 1,
    comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    evaluationPeriods: 1,
    treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    ...props,
    alarmDescription: `${alarmDescription} ${RUNBOOK}#${section}`,
  };
}

export interface LogMetrics {
  /** The number of ERROR lines in the log. */
  readonly needsAnOperator: cloudwatch.IMetric;
  /** The number of dead-lettered records that lack their event's payload. */
  readonly lostPayload: cloudwatch.IMetric;
}

export function logMetrics(scope: Construct, handler: RetryHandler): LogMetrics {
  const is = (member: string, value: string) => logs.FilterPattern.stringValue(member, '=', value);
  return {
    needsAnOperator: counted(scope, handler, 'NeedsAnOperator', is('$.level', 'ERROR')),
    lostPayload: counted(scope, handler, 'LostPayload', is('$.reason', 'payload_lost')),
  };
}

function counted(
  scope: Construct,
  handler: RetryHandler,
  metricName: string,
  filterPattern: logs.IFilterPattern,
): cloudwatch.IMetric {
  const filter = new logs.MetricFilter(scope, `${metricName}Filter`, {
    logGroup: handler.logGroup,
    filterPattern,
    // A metric filter can read dimensions only from the log line, so the handler's name is in the namespace.
    metricNamespace: `Comeback/${handler.function.functionName}`,
    metricName,
    metricValue: '1',
  });
  return filter.metric({ statistic: 'Sum', period: Duration.minutes(5) });
}

/**
 * Returns the properties of an alarm on events that Lambda drops on the way from `fn` to the retry queue. `of` is the
 * queue's stack.
 */
export function lostOnTheWay(fn: lambda.IFunction, of: Stack): cloudwatch.AlarmProps {
  // If the function is in the retry queue's stack, the pseudo parameter gives the name under which that stack is
  // deployed.
  const name = Stack.of(fn) === of ? Aws.STACK_NAME : of.stackName;
  return completed('LostOnTheWay', {
    metric: fn.metric('DestinationDeliveryFailures', { statistic: 'Sum', period: Duration.minutes(5) }),
    alarmDescription:
      'Lambda could not send failed events of this function to the retry queue, and has dropped them. Run ' +
      `comeback doctor --stack ${name} ${fn.functionName}.`,
  });
}

function ofDeadLetters(
  { deadLetterQueue: queue }: Watched,
  { lostPayload }: LogMetrics,
): Record<string, AlarmProps> {
  // Messages in flight count too, because dead-letters are hidden while somebody reads them.
  const held = (period: Duration) =>
    expression('visible + hidden', period, { visible: visible(queue), hidden: hidden(queue) });
  return {
    DeadLetters: {
      metric: held(MINUTE),
      evaluationPeriods: 5,
      alarmDescription:
        'Comeback has dead-lettered events, and somebody must decide what to do with them. Run comeback ' +
        `dead list ${STACK}, then redrive or discard them.`,
    },
    DeadLettersExpire: {
      metric: held(Duration.hours(1)),
      // An alarm can evaluate at most 7 days.
      evaluationPeriods: 7 * 24,
      alarmDescription:
        'The dead-letter queue has not been empty for 7 days, the longest that CloudWatch can look back, ' +
        `and SQS deletes each dead-letter 14 days after it was sent. Run comeback dead list ${STACK}, ` +
        'which shows the age of the oldest, then redrive or discard them.',
    },
    LostPayload: {
      metric: lostPayload,
      alarmDescription:
        'Lambda has left the payload out of the record of a failed event, because it was too large. The ' +
        `event is lost, and its record is a dead-letter. Run comeback dead list ${STACK} --reason ` +
        'payload_lost.',
    },
  };
}

function ofHandler({ handler }: Watched, { needsAnOperator }: LogMetrics): Record<string, AlarmProps> {
  const fn = handler.function;
  return {
    HandlerErrors: {
      metric: fn.metricErrors({ period: MINUTE }),
      evaluationPeriods: 5,
      datapointsToAlarm: 2,
      alarmDescription:
        'The retry handler is failing, which never happens in normal operation: it refuses a setting, ' +
        `times out or has a bug. Events wait, and none is lost. Run comeback doctor ${STACK}, and read ` +
        "the handler's log.",
    },
    Throttled: {
      metric: expression('IF(throttles > 0 AND FILL(invocations, 0) == 0, 1, 0)', QUARTER_HOUR, {
        throttles: fn.metricThrottles(),
        invocations: fn.metricInvocations(),
      }),
      alarmDescription:
        'Lambda has throttled the retry handler for 15 minutes without running it once: the account has ' +
        'no concurrency left, or the handler has a reserved concurrency. Each attempt hides its messages ' +
        `for 20 minutes. Run comeback doctor ${STACK}.`,
    },
    NeedsAnOperator: {
      metric: needsAnOperator,
      // While a problem lasts, the handler checks each affected event at least once an hour, and logs an ERROR each
      // time.
      evaluationPeriods: 13,
      datapointsToAlarm: 1,
      alarmDescription:
        'The retry handler has logged an ERROR, such as a missing permission or a disabled key. Most such ' +
        'problems do not go away by themselves, and their log lines name the remedy. Run comeback doctor ' +
        `${STACK}.`,
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
      evaluationPeriods: 15,
      alarmDescription:
        "Retries are due, but for 15 minutes nothing has received a message: the retry handler's event " +
        'source mapping is disabled or gone, its role may not receive, or the queue is full. Run comeback ' +
        `doctor ${STACK}.`,
    },
    Late: {
      metric: visible(queue, MINUTE),
      threshold: 1_000,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: 15,
      alarmDescription:
        'More than 1,000 retries have been due for 15 minutes: there are too few pollers, so retries come ' +
        `late. Run comeback waiting ${STACK} to see which functions fail, and raise MaximumConcurrency ` +
        '(maxConcurrency in the construct).',
    },
    Crowded: {
      metric: hidden(queue, MINUTE),
      threshold: 105_000,
      evaluationPeriods: 5,
      alarmDescription:
        '105,000 messages are hidden. That is more than 2 x HIDE_UP_TO at its default, and close to the ' +
        `120,000 or so at which SQS stops delivering and all retries stall. Run comeback status ${STACK} ` +
        `and comeback doctor ${STACK}.`,
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
