//! `comeback contention`: the contention study, as tables, CSV, JSON and plots.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | its flags, and the points they name |
//! | `run` | the study, and what is printed and written of it |
//! | `tables`, `figures` | its figures, for people and as CSV |
//! | `plot` | its pictures |

mod arguments;
mod figures;
mod plot;
mod run;
mod tables;

pub(crate) use arguments::{ContentionArguments, EXAMPLES};
pub(crate) use run::run;
