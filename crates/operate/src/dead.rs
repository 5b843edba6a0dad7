//! Lists, shows, redrives, discards and imports dead-letters.
//!
//! SQS cannot list messages. A [`scan()`] receives every dead-letter once, hides it for
//! [`HIDDEN_FOR`](crate::deployment::queue::HIDDEN_FOR), and makes it visible again at the end.
//!
//! A command deletes a dead-letter only after a queue or a file has a copy. A killed command loses none, but may
//! duplicate those that it was processing. A duplicate has the same key as the original. Every dead-letter that the
//! command hid becomes visible again when its visibility timeout expires.

pub mod discard;
pub mod file;
pub mod filter;
pub mod groups;
pub mod import;
pub mod list;
pub mod pace;
pub mod plan;
mod received;
pub mod redrive;
pub mod rules;
pub mod scan;
pub mod show;
pub mod snapshot;
#[cfg(any(test, feature = "simulated"))]
pub mod testing;
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
