//! `comeback simulate`: a day in fast motion.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | its flags |
//! | `run` | one run: checked, made, and what is printed and written of it |
//! | `seeds` | `--seeds N`: many runs, on all cores |
//! | `tally` | [`Tally`](tally::Tally): the figures of many runs |
//! | `repeat` | the command that makes a run again |
//! | `figures` | a run's figures as text |
//! | `warnings` | what the figures alone do not say |
//! | `table`, `histogram` | the figures in the terminal |
//! | `minutes_csv` | `--csv`: the run minute by minute |
//! | `page` | `--report`: the page to share |

mod arguments;
mod figures;
mod histogram;
mod minutes_csv;
mod page;
mod repeat;
mod run;
mod seeds;
mod table;
mod tally;
mod warnings;

pub(crate) use arguments::{EXAMPLES, SimulateArguments};
pub(crate) use run::run;
