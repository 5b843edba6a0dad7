//! What must hold of any bytes at all. Each entry point takes bytes and panics if something does not.
//!
//! `fuzz_targets` hands them libFuzzer's bytes, `tests/bounded.rs` random ones, on stable Rust.
//!
//! | file | holds |
//! |---|---|
//! | `batch_event` | each message of an event is handled or kept, whatever its batch-mates are |
//! | `invocation_record` | a message's body is read as it stands, or refused |
//! | `envelope` | what was sealed opens to the same bytes; envelopes never nest |
//! | `decide` | [`decide()`] answers whatever it is asked, within its bounds |
//! | `seeds` | the repository's `events/` as input of each |

mod batch_event;
mod decide;
mod envelope;
mod invocation_record;
mod seeds;

pub use batch_event::batch_event;
pub use decide::{Question, decide};
pub use envelope::envelope;
pub use invocation_record::invocation_record;
pub use seeds::{Seed, seeds};
