// This file is compiled but never run. It checks that the declarations fit the types of Lambda's runtime, and refuse
// what the code refuses.
import type { Context, SQSHandler, SQSRecord } from 'aws-lambda';
import { NonRetryable, RetryAfter, consumer } from 'comeback-sqs';

const work = async (record: SQSRecord, context: Context): Promise<void> => {
  if (record.body === '') throw new NonRetryable('an empty order', { cause: context.awsRequestId });
  if (record.attributes.ApproximateReceiveCount === '1') throw new RetryAfter('120', 'not now');
};

export const handler: SQSHandler = async (event, context) =>
  consumer({ maxAge: '14d' }, work)(event, context);

// @ts-expect-error: decorrelated jitter needs the previous delay
export const decorrelated = consumer({ jitter: 'decorrelated' }, work);

// @ts-expect-error: an option that does not exist
export const unknown = consumer({ maxRetries: 3 }, work);
