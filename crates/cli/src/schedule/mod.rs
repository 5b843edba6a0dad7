//! `comeback schedule`: what a policy means before anyone deploys it.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | its flags |
//! | `run` | the events followed, and what is printed and written of them |
//! | `table` | the policy, the retries and the outcome, as text |
//! | `timeline`, `plot` | when retries come: in the terminal, and as SVG |
//! | `axis` | the time axis of both |

mod arguments;
mod axis;
mod plot;
mod run;
mod table;
mod timeline;

pub(crate) use arguments::{EXAMPLES, ScheduleArguments};
pub(crate) use run::run;
