//! The commands that work on a deployment in an AWS account. Their work is done in `comeback-operate`; here are their
//! arguments, and what is printed.
//!
//! | file | holds |
//! |---|---|
//! | `attach`, `detach` | `comeback attach` and `comeback detach`: send a function's failures to Comeback, or to Lambda again |
//! | `carry_out` | what both do with a plan: show it, ask, make the changes, look whether they are there |
//! | `common` | the flags that all of them take, and the deployment that these name |
//! | `confirm` | asking before something is changed |
//! | `dead` | `comeback dead`: the letters of the dead-letter queue |
//! | `pause`, `resume` | `comeback pause` and `comeback resume`: hold the retries of a function, and let them go again |
//! | `doctor` | `comeback doctor`: numbered checks, each with what repairs what it found |
//! | `session` | one command's run: the runtime, Ctrl-C, the account |
//! | `status` | `comeback status`: the state of a deployment on one screen |
//! | `trace` | `comeback trace`: one event's life as a timeline |

mod attach;
mod carry_out;
mod common;
mod confirm;
mod dead;
mod detach;
mod doctor;
mod pause;
mod resume;
mod session;
mod status;
mod trace;

use clap::Subcommand;

use crate::failure::Failure;
use session::run_in_session;

#[derive(Debug, Subcommand)]
pub(crate) enum OperateCommand {
    /// Send the failures of a function to Comeback: show what is to be changed, ask, do it, and look
    ///
    /// The order is safe, and a run that was interrupted is resumed by repeating it. The function's settings of before are
    /// kept in its tags, and `detach` brings them back.
    #[command(after_help = attach::EXAMPLES)]
    Attach(attach::AttachArguments),
    /// Leave the failures of a function to Lambda again, and let what waits of it be invoked once more
    ///
    /// The destination goes at once. The allow-list, the permissions and the recursion setting stay until the function's
    /// events have left the retry queue; repeat the command to take them away too. It ends with 3 while it is too early.
    #[command(after_help = detach::EXAMPLES)]
    Detach(detach::DetachArguments),
    /// Check a deployment and the functions attached to it, and say what repairs what is wrong
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArguments),
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
    /// Hold the retries of a function, or of every function; list who did so and why
    ///
    /// What fails meanwhile waits. It uses up no retry, and time does not count towards its MAX_AGE, but SQS keeps no message
    /// for longer than 14 days.
    #[command(after_help = pause::EXAMPLES)]
    Pause(pause::PauseArguments),
    /// Let the retries of a paused function go again, spread over some time
    #[command(after_help = resume::EXAMPLES)]
    Resume(resume::ResumeArguments),
    /// List, show, redrive, discard and import dead-letters
    #[command(after_help = dead::EXAMPLES)]
    Dead(dead::DeadArguments),
}

pub(crate) fn run(command: &OperateCommand) -> Result<(), Failure> {
    match command {
        OperateCommand::Pause(arguments) => {
            run_in_session(&arguments.common, |session| pause::run(arguments, session))
        }
        OperateCommand::Resume(arguments) => {
            run_in_session(&arguments.common, |session| resume::run(arguments, session))
        }
        OperateCommand::Attach(arguments) => {
            run_in_session(&arguments.common, |session| attach::run(arguments, session))
        }
        OperateCommand::Detach(arguments) => {
            run_in_session(&arguments.common, |session| detach::run(arguments, session))
        }
        OperateCommand::Doctor(arguments) => {
            run_in_session(&arguments.common, |session| doctor::run(arguments, session))
        }
        OperateCommand::Status(arguments) => {
            run_in_session(&arguments.common, |session| status::run(arguments, session))
        }
        OperateCommand::Trace(arguments) => {
            run_in_session(&arguments.common, |session| trace::run(arguments, session))
        }
        OperateCommand::Dead(arguments) => dead::run(arguments),
    }
}
