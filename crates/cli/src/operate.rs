//! The subcommands that work on a deployment in an AWS account.

mod attach;
pub(crate) mod dead;
pub(crate) mod doctor;
mod history;
mod pause;
mod request;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod waiting;

use clap::Subcommand;

use crate::failure::CommandFailure;
use session::OnDeployment;

#[derive(Debug, Subcommand)]
pub(crate) enum OperateCommand {
    /// Route a function's failures to Comeback: preview, confirm, apply and verify
    ///
    /// If the command is interrupted, run it again. The function's previous settings are stored in its tags, and
    /// `detach` restores them.
    #[command(after_help = attach::ATTACH_EXAMPLES)]
    Attach(OnDeployment<attach::AttachArguments>),
    /// Hand a function's failures back to Lambda; waiting events get one more attempt
    ///
    /// Removes the failure destination at once, and exits with 3 if events are still waiting. Run the command again
    /// once they have left the retry queue: it then removes the allow-list entry, the permissions and the recursion
    /// setting.
    #[command(after_help = attach::DETACH_EXAMPLES)]
    Detach(OnDeployment<attach::DetachArguments>),
    /// Check a deployment and its functions, and name the command that fixes each problem
    #[command(after_help = doctor::EXAMPLES, mut_args(session::without_yes))]
    Doctor(OnDeployment<doctor::DoctorArguments>),
    /// Show what is waiting, due and dead-lettered, and whether retries are running
    #[command(after_help = status::EXAMPLES, mut_args(session::without_yes))]
    Status(OnDeployment<status::StatusArguments>),
    /// List waiting events, why each waits and when it is due
    ///
    /// SQS cannot list the messages in a queue, so this command reads the handler's log for the longest period that an
    /// event can wait, and compares the number of events found there with SQS's own counts.
    #[command(after_help = waiting::EXAMPLES, mut_args(session::without_yes))]
    Waiting(OnDeployment<waiting::WaitingArguments>),
    /// Show the timeline of one event: its failures, waits and retries
    ///
    /// Reads the handler's log, which does not record successes. So for the last retry, this command says whether a
    /// failure followed, and whether the function's own log reports the end of the invocation.
    #[command(after_help = trace::EXAMPLES, mut_args(session::without_yes))]
    Trace(OnDeployment<trace::TraceArguments>),
    /// Pause retries for one function or for all functions, or list who paused what and why
    ///
    /// Retries are held, including those of events that are already waiting. Functions are still invoked for new
    /// events, which are held if they fail. A pause does not use up retries and does not count towards MAX_AGE. But SQS
    /// keeps a message for only 14 days, so an event is dead-lettered once its message is 13 days and 12 hours old.
    #[command(after_help = pause::PAUSE_EXAMPLES)]
    Pause(OnDeployment<pause::PauseArguments>),
    /// Resume retries for a paused function, spread over time
    ///
    /// Waits until the handler has learned that the pause is over, which takes about a minute. Then makes each held
    /// message visible when its retry is due, rather than when the handler next checks the message.
    #[command(after_help = pause::RESUME_EXAMPLES)]
    Resume(OnDeployment<pause::ResumeArguments>),
    /// After a fix, retry the waiting events of one function or of all functions
    ///
    /// Every event that has failed so far becomes due at a random moment in the period that --within sets, or at its
    /// own due time if that is sooner. Once the handler has read the request, which takes about a minute, the command
    /// makes each hidden message visible when it is due; a message sent again with a delay returns within 15 minutes.
    /// --dry-run shows how many events return, and when. The request skips paused events and, without --key, events
    /// whose function requested the wait with RetryAfter.
    #[command(after_help = request::RETRY_EXAMPLES)]
    Retry(OnDeployment<request::RetryArguments>),
    /// Cancel waiting events: dead-letter them as cancelled
    ///
    /// Nothing is deleted: a cancelled event can be redriven or discarded like any other dead-letter. Without --key,
    /// the request reaches only events that have already failed. With --key, it also reaches events with these keys
    /// that fail later.
    #[command(after_help = request::CANCEL_EXAMPLES)]
    Cancel(OnDeployment<request::CancelArguments>),
    /// List what operators changed, when and why
    ///
    /// Every change made in a terminal or in the console is recorded as a line in the handler's log group, and stays
    /// listed for as long as the group keeps that line. A change is recorded when it ends, so it is missing if the
    /// program that made it was killed.
    #[command(after_help = history::EXAMPLES, mut_args(session::without_yes))]
    History(OnDeployment<history::HistoryArguments>),
    /// List, show, redrive, discard and import dead-letters
    #[command(after_help = dead::EXAMPLES)]
    Dead(dead::DeadArguments),
}

impl OperateCommand {
    pub(crate) fn run(self) -> Result<(), CommandFailure> {
        match self {
            Self::Attach(it) => it.run(attach::attach),
            Self::Detach(it) => it.run(attach::detach),
            Self::Doctor(it) => it.run(doctor::run),
            Self::Status(it) => it.run(status::run),
            Self::Waiting(it) => it.run(waiting::run),
            Self::Trace(it) => it.run(trace::run),
            Self::Pause(it) => it.run(pause::pause),
            Self::Resume(it) => it.run(pause::resume),
            Self::Retry(it) => it.run(request::retry),
            Self::Cancel(it) => it.run(request::cancel),
            Self::History(it) => it.run(history::run),
            Self::Dead(it) => dead::run(it),
        }
    }
}
