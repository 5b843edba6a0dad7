//! Simulated AWS: an SQS queue, an event source mapping and asynchronous invocations, on a virtual clock. This code
//! does not depend on faults, invariants or the outcomes of events.

pub(crate) mod agenda;
pub(crate) mod contract;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod target;
