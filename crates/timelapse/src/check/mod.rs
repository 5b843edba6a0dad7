//! What must hold of every run, and the checks of it: an independent oracle. It sees what the simulated
//! world sees, never what the handler says of itself, and it has arithmetic of its own.
//!
//! | file | holds |
//! |---|---|
//! | `invariants` | [`Invariant`](invariants::Invariant): each thing that must hold |
//! | `bounds` | the bounds that a policy sets on each call |
//! | `asked` | when a target asked to be retried |
//! | `hops` | how often a message was moved |
//! | `room` | how many messages are in flight, and that none is visible for want of room |
//! | `pauses` | what a handler can know of the pauses |
//! | `payload` | that payloads stay as they were |
//! | `ledger` | what became of each event |
//! | `copies` | how often each message was re-invoked or dead-lettered |
//! | `origin` | what the checks know of an invocation and of a message |
//! | `violation` | [`Violation`](violation::Violation): an invariant that did not hold, and what led to it |

pub(crate) mod asked;
pub(crate) mod bounds;
pub(crate) mod copies;
pub(crate) mod hops;
pub(crate) mod invariants;
pub(crate) mod ledger;
pub(crate) mod origin;
pub(crate) mod pauses;
pub(crate) mod payload;
pub(crate) mod room;
pub(crate) mod violation;
