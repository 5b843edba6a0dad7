//! The commands that work on a deployment in an AWS account.

mod alarms;
mod attach;
mod dead;
pub(crate) mod deployment;
mod doctor;
pub(crate) mod function;
mod handler_setting;
pub(crate) mod history;
mod log;
mod metrics;
mod pause;
pub(crate) mod pauses;
mod retry;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod waiting;

use clap::Subcommand;

use crate::failure::CommandFailure;
use session::{Common, Session, run_in_session};

#[derive(Debug, Subcommand)]
pub(crate) enum OperateCommand {
    /// Send the failures of a function to Comeback: show the changes, ask, make them, and check them
    ///
    /// The order of the changes is safe. If a run is interrupted, run the command again. The function's earlier settings are
    /// kept in its tags, and `detach` brings them back.
    #[command(after_help = attach::ATTACH_EXAMPLES)]
    Attach(attach::AttachArguments),
    /// Leave the failures of a function to Lambda again; events that still wait are invoked once more
    ///
    /// Removes the destination at once. The allow-list entry, the permissions and the recursion setting stay
    /// until the function's events have left the retry queue; then run the command again to remove them.
    /// Until then it exits with 3.
    #[command(after_help = attach::DETACH_EXAMPLES)]
    Detach(attach::DetachArguments),
    /// Check a deployment and the functions attached to it, and name the command that fixes each problem
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArguments),
    /// Show what waits, what is due, what was given up, and whether retries run
    #[command(after_help = status::EXAMPLES)]
    Status(status::StatusArguments),
    /// Show which events wait, for what and until when, from the handler's log
    ///
    /// SQS cannot list a queue, so the handler's log is the index: its last line about a message says whether it waits. This
    /// reads no further back than a wait can last, and compares what it found with SQS's own counts.
    #[command(after_help = waiting::EXAMPLES)]
    Waiting(waiting::WaitingArguments),
    /// Show one event's life as a timeline: its failures, waits and retries, and how it stands
    ///
    /// The handler's log is the index: it has an event from its first failure on, without its payload. A success leaves
    /// no line there, so after the last retry this says what is known: whether a failure was seen since, and whether the
    /// function's own log has the REPORT of the invocation.
    #[command(after_help = trace::EXAMPLES)]
    Trace(trace::TraceArguments),
    /// Pause the retries of one function or of all, or list who paused what and why
    ///
    /// Events that fail meanwhile wait. The pause uses up no retry and does not count towards MAX_AGE, but SQS keeps a
    /// message for only 14 days.
    #[command(after_help = pause::PAUSE_EXAMPLES)]
    Pause(pause::PauseArguments),
    /// Release the retries of a paused function, spread over some time
    #[command(after_help = pause::RESUME_EXAMPLES)]
    Resume(pause::ResumeArguments),
    /// After a fix, retry the waiting events of one function, or of all, now
    ///
    /// Every event that has failed so far becomes due at a random moment within the given time, or at its own due time
    /// if that is sooner. These are ordinary retries: pauses come first, and a wait that the function asked for with
    /// RetryAfter is left alone. A hidden message cannot be recalled: the handler finds the request when the message's
    /// present hiding ends, which may take as long as MAX_BACKOFF, up to 12 hours.
    #[command(after_help = retry::EXAMPLES)]
    Retry(retry::RetryArguments),
    /// List, show, redrive, discard and import dead-letters
    #[command(after_help = dead::EXAMPLES)]
    Dead(dead::DeadArguments),
}

impl OperateCommand {
    fn common(&self) -> &Common {
        match self {
            Self::Attach(it) => &it.common,
            Self::Detach(it) => &it.common,
            Self::Doctor(it) => &it.common,
            Self::Status(it) => &it.common,
            Self::Waiting(it) => &it.common,
            Self::Trace(it) => &it.common,
            Self::Pause(it) => &it.common,
            Self::Resume(it) => &it.common,
            Self::Retry(it) => &it.common,
            Self::Dead(it) => it.common(),
        }
    }

    pub(crate) async fn run(&self, session: Session) -> Result<(), CommandFailure> {
        match self {
            Self::Attach(it) => attach::attach(it, session).await,
            Self::Detach(it) => attach::detach(it, session).await,
            Self::Doctor(it) => doctor::run(it, session).await,
            Self::Status(it) => status::run(it, session).await,
            Self::Waiting(it) => waiting::run(it, session).await,
            Self::Trace(it) => trace::run(it, session).await,
            Self::Pause(it) => pause::pause(it, session).await,
            Self::Resume(it) => pause::resume(it, session).await,
            Self::Retry(it) => retry::run(it, session).await,
            Self::Dead(it) => dead::run(it, session).await,
        }
    }
}

pub(crate) fn run(command: &OperateCommand) -> Result<(), CommandFailure> {
    run_in_session(command.common(), |session| command.run(session))
}
