//! `comeback replay FILE…`: the retry handler on recorded events.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | its flags |
//! | `run` | each file in turn, and what is printed of it |
//! | `event_file` | [`EventFile`]: what a JSON file is, and when its last message is due |
//! | `report` | [`FileReport`]: what the handler decided |
//! | `calls` | [`MadeCall`]: what it then called |

mod arguments;
mod calls;
mod event_file;
mod report;
mod run;

pub use arguments::SAMPLE_TARGET;
pub(crate) use arguments::{EXAMPLES, ReplayArguments};
pub use calls::{Hidden, MadeCall, SentMessage};
pub(crate) use event_file::text_of;
pub use event_file::{EventFile, last_due};
pub use report::{FileReport, Handled, MessageDecision};
pub(crate) use run::run;
