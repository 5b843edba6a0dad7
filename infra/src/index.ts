export { AsyncRetries } from './async-retries';
export { type AttachOptions } from './attach';
export { type FunctionPolicy } from './function-policy';
export { type MonitorOptions } from './monitor';
export { EnvelopeStyle, HandlerMetrics, Jitter, type PolicyProps, type WaitingProps } from './policy';
export { type AsyncRetriesProps } from './props';
