// This file is compiled but never run. It checks that the declarations fit middy and the types of Lambda's runtime, and
// refuse what the code refuses.
import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { type Opened, NonRetryable, RetryAfter, openEvent, opened } from 'comeback-envelope';

interface Order {
  order: number;
}

export const plain = async (event: unknown, context: Context): Promise<number> => {
  const { payload, attempt, key } = openEvent<Order>(event, context.awsRequestId);
  if (attempt > 3) throw new NonRetryable(`${key} has failed too often`, { cause: 'three failures' });
  if (payload.order === 0) throw new RetryAfter(new Date(), 'not now');
  return payload.order;
};

export const withMiddy = middy(async (event: Opened<Order>) => event.payload.order).use(opened());

export const header = new RetryAfter('900');

// @ts-expect-error: a list is not a time
export const list = new RetryAfter([900]);

// @ts-expect-error: the request id is required, as the first invocation's key
export const keyless = openEvent({});
