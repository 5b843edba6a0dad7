//! Simulated AWS: an SQS queue, an event source mapping and asynchronous invocations, on a virtual clock. Nothing here
//! knows about faults, the checks, or how an event ends.

pub(crate) mod agenda;
pub(crate) mod contract;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod target;
