//! `comeback plan`: from a goal to a policy.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | its flags, and the goal they name |
//! | `run` | the plan, and what is printed and written of it |
//! | `table` | the policies that nothing else beats, as text |
//! | `limits` | why no policy meets a goal, in words |
//! | `settings` | a policy as parameters of the template and as properties of the construct |
//! | `plot` | recovery against retries, as SVG |

mod arguments;
mod limits;
mod plot;
mod run;
mod settings;
mod table;

pub(crate) use arguments::{EXAMPLES, PlanArguments, command_for};
pub(crate) use run::run;
