export { AsyncRetries } from './async-retries';
export { type AttachOptions } from './attach';
export { EnvelopeStyle, type FunctionPolicy, Jitter } from './function-policy';
export { type MonitorOptions } from './monitor';
export { HandlerMetrics, type PolicyProps, type WaitingProps } from './policy';
export { type AsyncRetriesProps } from './props';
