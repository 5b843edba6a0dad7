//! The commands that work on a deployment in an AWS account. Their work is done in `comeback-operate`; here are their
//! arguments, and what is printed.
//!
//! | file | holds |
//! |---|---|
//! | `common` | the flags that all of them take, and the deployment that these name |
//! | `confirm` | asking before something is changed |
//! | `dead` | `comeback dead`: the letters of the dead-letter queue |
//! | `session` | one command's run: the runtime, Ctrl-C, the account |
//! | `status` | `comeback status`: the state of a deployment on one screen |

mod common;
mod confirm;
mod dead;
mod session;
mod status;

use clap::Subcommand;

use crate::failure::Failure;
use session::run_in_session;

#[derive(Debug, Subcommand)]
pub(crate) enum OperateCommand {
    /// Show what waits, what is due, what was given up, and whether retries run
    #[command(after_help = status::EXAMPLES)]
    Status(status::StatusArguments),
    /// List, show, redrive, discard and import dead-letters
    #[command(after_help = dead::EXAMPLES)]
    Dead(dead::DeadArguments),
}

pub(crate) fn run(command: &OperateCommand) -> Result<(), Failure> {
    match command {
        OperateCommand::Status(arguments) => {
            run_in_session(&arguments.common, |session| status::run(arguments, session))
        }
        OperateCommand::Dead(arguments) => dead::run(arguments),
    }
}
