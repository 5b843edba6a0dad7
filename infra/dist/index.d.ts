export { AsyncRetries } from './async-retries';
export { type AttachOptions } from './attach';
export { EnvelopeStyle, Jitter, type PolicyProps } from './policy';
export { type AsyncRetriesProps } from './props';
export { type WaitingProps } from './waiting';
