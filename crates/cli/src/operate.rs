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
    #[command(after_help = doctor::EXAMPLES, mut_args(session::without_change_flags))]
    Doctor(OnDeployment<doctor::DoctorArguments>),
    /// Show what is waiting, due and dead-lettered, and whether retries are running
    #[command(after_help = status::EXAMPLES, mut_args(session::without_change_flags))]
    Status(OnDeployment<status::StatusArguments>),
    /// List waiting events, why each waits and when it is due
    ///
    /// SQS cannot list the messages in a queue, so this command reads the handler's log for the longest period that an
    /// event can wait, and compares the number of events found there with SQS's own counts.
    #[command(after_help = waiting::EXAMPLES, mut_args(session::without_change_flags))]
    Waiting(OnDeployment<waiting::WaitingArguments>),
    /// Show the timeline of one event: its failures, waits and retries
    ///
    /// Reads the handler's log, which does not record successes. So for the last retry, this command says whether a
    /// failure followed, and whether the function's own log reports the end of the invocation.
    #[command(after_help = trace::EXAMPLES, mut_args(session::without_change_flags))]
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
    #[command(after_help = history::EXAMPLES, mut_args(session::without_change_flags))]
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Args, Command, FromArgMatches as _};
    use comeback_operate::Interrupt;
    use comeback_operate::aws::simulated::{Sample, SimulatedAws};
    use comeback_operate::dead::testing::{Dead, NOW, event};

    use super::*;
    use dead::{DiscardArguments, ImportArguments, RedriveArguments};
    use session::Session;

    /// Parses the words after a command's name, and runs the command in the simulated account.
    async fn ran<A: Args>(
        aws: &SimulatedAws,
        words: &str,
        command: impl AsyncFnOnce(A, Session) -> Result<(), CommandFailure>,
    ) {
        let words = ["comeback"].into_iter().chain(words.split(' '));
        let matches = OnDeployment::<A>::augment_args(Command::new("comeback")).get_matches_from(words);
        let OnDeployment { arguments, common } = OnDeployment::from_arg_matches(&matches).unwrap();
        let session = Session { account: aws.account(), interrupt: Interrupt::default(), common };
        command(arguments, session).await.unwrap();
    }

    /// Names of the commands below this one whose help shows `--dry-run`.
    fn with_dry_run(command: &Command) -> BTreeSet<String> {
        let has_it = |command: &Command| {
            command.get_arguments().any(|it| it.get_long() == Some("dry-run") && !it.is_hide_set())
        };
        let below = command.get_subcommands().flat_map(with_dry_run);
        below.chain(has_it(command).then(|| command.get_name().to_owned())).collect()
    }

    #[test]
    fn dry_run_needs_a_plan() {
        for words in ["attach --list", "pause --list", "retry --all --watch", "doctor --probe"] {
            let words = format!("comeback {words} --dry-run");
            let all = OperateCommand::augment_subcommands(Command::new("comeback"));
            let refused = all.try_get_matches_from(words.split(' ')).unwrap_err().to_string();
            assert!(refused.contains("cannot be used with '--dry-run'"), "{words}: {refused}");
        }
    }

    /// Returns an account with a pause, a request to cancel and a dead-letter. Writes another dead-letter to `file`.
    async fn operated(file: &str) -> SimulatedAws {
        let others = BTreeSet::from(["invoices".to_owned()]);
        let dead = Dead { aws: Sample { is_attached: true, others, ..Sample::new(NOW) }.build() };
        let aws = dead.aws.clone();
        dead.put(&event("Fatal"));
        ran(&aws, &format!("--all --export {file} --yes"), DiscardArguments::run).await;
        dead.put(&event("Timeout"));
        ran(&aws, "--all --reason why --yes", pause::pause).await;
        ran(&aws, "--key k-1 --yes", request::cancel).await;
        aws
    }

    #[tokio::test]
    async fn each_change_has_a_dry_run() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["old", "new"].map(|name| folder.path().join(name).display().to_string());
        let aws = operated(&file).await;
        aws.on_call(|call| {
            let (_, verb) = call.action.split_once(':').unwrap();
            let reads =
                ["Get", "List", "Describe", "Filter", "Simulate", "Receive", "ChangeMessageVisibility"];
            assert!(reads.iter().any(|it| verb.starts_with(it)), "{call:?}");
            None
        });
        let json = |words: &str| format!("{words} --dry-run --json --yes");
        let discard = json(&format!("--all --export {other}"));
        ran(&aws, &json("invoices"), attach::attach).await;
        ran(&aws, &json("orders"), attach::detach).await;
        ran(&aws, &json("orders --reason why"), pause::pause).await;
        ran(&aws, &json("--all"), pause::resume).await;
        ran(&aws, &json("--key k-2"), request::retry).await;
        ran(&aws, &json("--key k-2"), request::cancel).await;
        ran(&aws, &json("--all --withdraw"), request::cancel).await;
        ran(&aws, &json("--all"), RedriveArguments::run).await;
        ran(&aws, &discard, DiscardArguments::run).await;
        ran(&aws, &json(&file), ImportArguments::run).await;
        assert!(!std::path::Path::new(&other).exists());
        let all = OperateCommand::augment_subcommands(Command::new("comeback"));
        let tested =
            ["attach", "detach", "pause", "resume", "retry", "cancel", "redrive", "discard", "import"];
        assert_eq!(with_dry_run(&all), tested.map(ToOwned::to_owned).into());
    }
}
