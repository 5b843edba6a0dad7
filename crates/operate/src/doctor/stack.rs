//! The checks of the deployment itself.
//!
//! | file | holds |
//! |---|---|
//! | `mapping` | the event source mapping |
//! | `queues` | the retry queue and the dead-letter queue |
//! | `handler` | the retry handler and its log |
//! | `role` | what the handler's role may do |
//! | `alarms` | who hears of problems |
//! | `pauses` | what is paused |

pub(super) mod alarms;
pub(super) mod handler;
pub(super) mod mapping;
pub(super) mod pauses;
pub(super) mod queues;
pub(super) mod role;
