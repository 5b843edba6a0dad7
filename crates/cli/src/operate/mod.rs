//! The commands that work on a deployment in an AWS account. Their work is done in `comeback-operate`; here are their
//! arguments, and what is printed.
//!
//! | file | holds |
//! |---|---|
//! | `common` | the flags that all of them take, and the deployment that these name |
//! | `confirm` | asking before something is changed |
//! | `session` | one command's run: the runtime, Ctrl-C, the account |
//! | `status` | `comeback status`: the state of a deployment on one screen |
//! | `trace` | `comeback trace`: one event's life as a timeline |

mod common;
mod confirm;
mod session;
mod status;
mod trace;

use clap::Subcommand;

use crate::failure::Failure;
use session::run_in_session;

#[derive(Debug, Subcommand)]
pub(crate) enum OperateCommand {
    /// Show what waits, what is due, what was given up, and whether retries run
    #[command(after_help = status::EXAMPLES)]
    Status(status::StatusArguments),
    /// Show one event's life as a timeline: its failures, waits and retries, and how it stands
    ///
    /// The handler's log is the index: an event is in it from its first failure on, without its payload. A success leaves
    /// no line there, so after the last retry it is said what is known: whether a failure was seen since, and whether the
    /// function's own log has the REPORT of the invocation.
    #[command(after_help = trace::EXAMPLES)]
    Trace(trace::TraceArguments),
}

pub(crate) fn run(command: &OperateCommand) -> Result<(), Failure> {
    match command {
        OperateCommand::Status(arguments) => {
            run_in_session(&arguments.common, |session| status::run(arguments, session))
        }
        OperateCommand::Trace(arguments) => {
            run_in_session(&arguments.common, |session| trace::run(arguments, session))
        }
    }
}
