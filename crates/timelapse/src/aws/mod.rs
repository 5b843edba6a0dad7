//! What AWS does: an SQS queue, an event source mapping and asynchronous invocations, on a virtual clock.
//! Nothing here knows of faults, of the checks, or of what becomes of an event.
//!
//! | file | holds |
//! |---|---|
//! | `agenda` | what happens when, ordered by (time, sequence) |
//! | `queue` | an SQS standard queue |
//! | `mapping` | the event source mapping: pollers, batches, partial responses |
//! | `target`, `failure_record` | asynchronous invocations, and the records that Lambda writes of failed ones |
//! | `id` | request and message ids |
//! | `contract` | the queue and the mapping alone, for the contract that the real ones fulfil too |

pub(crate) mod agenda;
pub(crate) mod contract;
pub(crate) mod failure_record;
pub(crate) mod id;
pub(crate) mod mapping;
pub(crate) mod queue;
pub(crate) mod target;
