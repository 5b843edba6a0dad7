//! Lists, shows, redrives, discards and imports dead-letters.
//!
//! SQS cannot list the messages in a queue. To read a dead-letter, a command must receive it, which hides it from
//! other consumers. A [`scan()`] receives every dead-letter once, hides it for
//! [`HIDDEN_FOR`](crate::deployment::queue::HIDDEN_FOR), and makes all of them visible again at the end. The scan
//! returns a [`Snapshot`], which does not contain payloads.
//!
//! A command that changes the queue selects dead-letters from a snapshot, records their ids in its plan, and receives
//! them again to act on them. It deletes a dead-letter only after a queue or a file has a copy, so a killed command
//! loses none. Hidden dead-letters become visible again after a while. Only those being processed when the command was
//! killed can be duplicated, and a duplicate has the same key.

pub mod discard;
pub mod file;
pub mod filter;
pub mod groups;
pub mod import;
pub mod list;
pub mod pace;
pub mod plan;
pub mod received;
pub mod redrive;
pub mod rules;
#[cfg(any(test, feature = "simulated"))]
pub mod samples;
pub mod scan;
pub mod show;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod work;

pub use discard::Discard;
pub use file::export;
pub use filter::Filter;
pub use import::Import;
pub use list::list;
pub use plan::Chosen;
pub use redrive::Redrive;
pub use show::show;
pub use snapshot::{Selection, Snapshot, scan};
