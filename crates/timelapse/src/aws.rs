//! What AWS does: an SQS queue, an event source mapping and asynchronous invocations, on a virtual clock.
//! Nothing here knows of faults, of the checks, or of how an event ends.

pub(crate) mod agenda;
pub(crate) mod contract;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod target;
