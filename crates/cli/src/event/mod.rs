//! `comeback event FILE`: a copy of a recorded event whose moment is now.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | its flags |
//! | `run` | the file, the moment, the copy |
//! | `shift` | [`shifted`]: which texts of an event are times |
//! | `edits` | replacements in a text, every other byte as it was |

mod arguments;
mod edits;
mod run;
mod shift;

pub(crate) use arguments::{EXAMPLES, EventArguments};
pub(crate) use run::run;
pub use shift::shifted;
