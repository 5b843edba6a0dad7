//! `comeback dead redrive --server`: SQS's own redrive of a whole queue. It goes on if this command is killed.

use std::io::Write as _;
use std::time::Duration;

use aws_sdk_sqs::types::ListMessageMoveTasksResultEntry as Task;
use serde_json::json;

use crate::account::{Account, Failure, Or as _};
use crate::clock;
use crate::failure;
use crate::operate::dead::plan::DeadLetters;
use crate::operate::dead::scan::Locked;
use crate::operate::dead::work::Pace;
use crate::operate::deployment::Depth;
use crate::operate::session::{Interrupt, confirm};
use crate::text::durations;
use crate::text::numbers::{counted, rate_text};

/// SQS's own limit.
const MOST_A_SECOND: f64 = 500.0;
const LOOK_AFTER: Duration = Duration::from_secs(1);
const RUNNING: &str = "RUNNING";
const CANCELLING: &str = "CANCELLING";
/// How many times to look for a task that was just started: SQS may list it some seconds later.
const LOOKS_FOR_A_NEW_ONE: u32 = 60;

pub(crate) async fn run(rate: f64, dry_run: bool, letters: &DeadLetters) -> Result<(), failure::Failure> {
    let session = &letters.session;
    let per_second = rate.floor();
    if !(1.0..=MOST_A_SECOND).contains(&per_second) {
        return Err(Failure::Refused(format!(
            "--rate: SQS moves 1 to {MOST_A_SECOND} letters a second, and not {}",
            rate_text(rate)
        ))
        .into());
    }
    let (now, depth) = (clock::now(), letters.depth().await?);
    let visible = depth.visible;
    let answer = |moved: u64| {
        let locked = Locked::of(depth, moved, now);
        session.answer(&json!({"about": visible, "dry_run": dry_run, "moved": moved, "locked": locked}));
        locked
    };
    let end = |moved: u64| {
        let locked = answer(moved);
        let locked = locked.map(|locked| Failure::Undone(format!("{locked}: SQS has not moved these")));
        locked.map_or(Ok(()), |undone| Err(failure::Failure::from(undone)))
    };
    let (from, to) = (&letters.deployment.dead_letter_queue, &letters.deployment.retry_queue);
    let count = counted(visible, "letter", "letters");
    let time = durations::short(Pace(per_second).time_for(visible).as_secs_f64());
    let mut out = anstream::stdout();
    let is_json = session.common.json;
    if !is_json {
        let (from, to) = (from.name(), to.name());
        writeln!(out, "to move: about {count} from {from} to {to}, by SQS itself, in about {time}")?;
    }
    if dry_run {
        return end(0);
    }
    answer(0);
    confirm(&question(depth, to.name()), session).await?;
    let task = MoveTask { account: &session.account, from: &from.arn, to: &to.arn };
    let reader = letters.reader(visible);
    let progress = |moved| {
        answer(moved);
        (reader.progress)(moved);
    };
    let moved = task.follow(per_second as i32, reader.interrupt, &progress).await;
    drop(reader);
    let (moved, was_running) = moved?;
    if !is_json {
        let followed = if was_running { " (a move task that was running already)" } else { "" };
        writeln!(out, "moved about {}{followed}", counted(moved, "letter", "letters"))?;
    }
    end(moved)
}

/// SQS also moves what arrives or becomes visible while its task runs.
fn question(depth: Depth, to: &str) -> String {
    let visible = counted(depth.visible, "letter", "letters");
    let in_flight = match depth.in_flight {
        0 => String::new(),
        count => format!(", those of {} that become visible", counted(count, "hidden one", "hidden ones")),
    };
    format!("move about {visible} to {to}{in_flight}, and what arrives meanwhile?")
}

/// A move from one queue to another, by their ARNs.
struct MoveTask<'a> {
    account: &'a Account,
    from: &'a str,
    to: &'a str,
}

impl MoveTask<'_> {
    /// Has SQS move every letter, at most `per_second`, and follows the task to its end; or follows one that is running.
    /// Ctrl-C cancels it. What was moved stays moved. Gives how many letters were moved, approximately, and whether the task
    /// was running before.
    async fn follow(
        &self,
        per_second: i32,
        interrupt: &Interrupt,
        progress: &dyn Fn(u64),
    ) -> Result<(u64, bool), Failure> {
        let before = self.last_task().await?;
        // SQS refuses a second task beside it.
        let running = before.as_ref().filter(|task| task.status() == Some(RUNNING));
        let was_running = running.is_some();
        let (handle, older) = match running {
            Some(task) if task.destination_arn() == Some(self.to) => (task.task_handle.clone(), None),
            Some(task) => {
                let to = task.destination_arn().unwrap_or("where SQS took the messages from");
                return Err(Failure::CouldNot(format!(
                    "a move task to {to} is running; wait for its end, or cancel it with `aws sqs cancel-message-move-task`"
                )));
            }
            None => (self.start_task(per_second).await?, before.map(|task| task.started_timestamp())),
        };
        let mut looks = 0;
        loop {
            let task = self.last_task().await?.filter(|task| Some(task.started_timestamp()) != older);
            let letters =
                task.as_ref().map(|task| task.approximate_number_of_messages_moved().unsigned_abs());
            letters.into_iter().for_each(progress);
            let letters = letters.unwrap_or_default();
            let status = task.as_ref().map(|task| task.status().unwrap_or_default());
            match status {
                Some("COMPLETED") => return Ok((letters, was_running)),
                None | Some(RUNNING) if interrupt.is_raised() => {
                    return Err(self.cancel(handle, progress).await?);
                }
                None => looks += 1,
                Some(RUNNING | CANCELLING) => {}
                Some(status) => {
                    let why = task.as_ref().and_then(Task::failure_reason).unwrap_or("SQS gives no reason");
                    let moved = format!("about {letters} letters were moved before");
                    return Err(Failure::Undone(format!("SQS's move task is {status}: {why}; {moved}")));
                }
            }
            if looks == LOOKS_FOR_A_NEW_ONE {
                return Err(Failure::Undone(format!(
                    "SQS accepted a move task and does not list it; look for it with `aws sqs list-message-move-tasks \
                     --source-arn {}`",
                    self.from
                )));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AFTER) => {}
                // A task that is being cancelled ends by itself soon.
                () = interrupt.raised(), if status != Some(CANCELLING) => {}
            }
        }
    }

    /// Gives the task's handle.
    async fn start_task(&self, per_second: i32) -> Result<Option<String>, Failure> {
        let call = self.account.sqs.start_message_move_task().source_arn(self.from);
        // Without a destination, SQS sends each message to the queue it came from. The handler's letters came from none.
        let call = call.destination_arn(self.to).max_number_of_messages_per_second(per_second);
        Ok(call.send().await.or_failure("sqs:StartMessageMoveTask", self.from)?.task_handle)
    }

    async fn last_task(&self) -> Result<Option<Task>, Failure> {
        let call = self.account.sqs.list_message_move_tasks().source_arn(self.from).max_results(1);
        let answer = call.send().await.or_failure("sqs:ListMessageMoveTasks", self.from)?;
        Ok(answer.results.unwrap_or_default().into_iter().next())
    }

    /// Gives why the command ends: it was interrupted.
    async fn cancel(&self, task_handle: Option<String>, progress: &dyn Fn(u64)) -> Result<Failure, Failure> {
        let call = self.account.sqs.cancel_message_move_task().set_task_handle(task_handle);
        let answer = call.send().await.or_failure("sqs:CancelMessageMoveTask", self.from)?;
        let moved = answer.approximate_number_of_messages_moved().unsigned_abs();
        progress(moved);
        Ok(Failure::Interrupted(format!(
            "the move task is cancelled; about {moved} letters were moved, and the others are still in the dead-letter \
             queue"
        )))
    }
}

#[cfg(test)]
mod tests {
    //! Against canned answers in the form of SQS's API reference: neither MiniStack 1.5.33 nor moto 5.2.5 has move tasks.

    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    const FROM: &str = "arn:aws:sqs:eu-west-1:123456789012:dead";
    const TO: &str = "arn:aws:sqs:eu-west-1:123456789012:retry";

    type Requests = Arc<Mutex<Vec<(String, Value)>>>;

    /// An account that answers `ListMessageMoveTasks` with these tasks, one after another, and allows everything else.
    async fn with_tasks<const N: usize>(tasks: [Value; N]) -> (Account, Requests) {
        let requests = Requests::default();
        let (seen, tasks) = (requests.clone(), Mutex::new(tasks.into_iter()));
        let account = Account::answering(move |operation, body| {
            seen.lock().unwrap().push((operation.to_owned(), body));
            match operation {
                "ListMessageMoveTasks" => {
                    let task = tasks.lock().unwrap().next().expect("no more looks are expected");
                    json!({"Results": if task.is_null() { Vec::new() } else { vec![task] }})
                }
                "StartMessageMoveTask" => json!({"TaskHandle": "task"}),
                "CancelMessageMoveTask" => json!({"ApproximateNumberOfMessagesMoved": 3}),
                other => panic!("{other} is not expected"),
            }
        });
        (account.await, requests)
    }

    /// Follows a task, and sends each progress to `progress`.
    async fn follow(
        account: &Account,
        interrupt: &Interrupt,
        progress: &dyn Fn(u64),
    ) -> Result<(u64, bool), Failure> {
        MoveTask { account, from: FROM, to: TO }.follow(50, interrupt, progress).await
    }

    fn task(status: &str, moved: u64) -> Value {
        json!({
            "TaskHandle": "task", "Status": status, "SourceArn": FROM, "DestinationArn": TO, "StartedTimestamp": 1_700_000_060,
            "ApproximateNumberOfMessagesMoved": moved, "ApproximateNumberOfMessagesToMove": 9,
        })
    }

    fn operations(requests: &Requests) -> Vec<String> {
        requests.lock().unwrap().iter().map(|(operation, _)| operation.clone()).collect()
    }

    #[test]
    fn the_question_names_what_may_become_visible() {
        let ask = |in_flight| question(Depth { visible: 1_200, in_flight, delayed: 0 }, "retries");
        assert_eq!(ask(0), "move about 1,200 letters to retries, and what arrives meanwhile?");
        let expected = "move about 1,200 letters to retries, those of 3 hidden ones that become visible, and what arrives \
                        meanwhile?";
        assert_eq!(ask(3), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_started_and_followed() {
        let mut old = task("COMPLETED", 1);
        old["StartedTimestamp"] = 1_700_000_000.into();
        // The new one is listed a moment after it was started.
        let tasks =
            [old.clone(), old, Value::Null, task("RUNNING", 4), task("CANCELLING", 5), task("COMPLETED", 9)];
        let (account, requests) = with_tasks(tasks).await;
        let (_raise, interrupt) = Interrupt::new();
        let heard = Mutex::new(Vec::new());
        let tell = |progress| heard.lock().unwrap().push(progress);
        let moved = follow(&account, &interrupt, &tell).await;
        assert_eq!(moved, Ok((9, false)));
        assert_eq!(*heard.lock().unwrap(), [4, 5, 9]);
        let start = json!({"SourceArn": FROM, "DestinationArn": TO, "MaxNumberOfMessagesPerSecond": 50});
        assert_eq!(requests.lock().unwrap()[1], ("StartMessageMoveTask".into(), start));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_runs_already_is_followed() {
        let (account, requests) = with_tasks([task("RUNNING", 4), task("COMPLETED", 9)]).await;
        let (_raise, interrupt) = Interrupt::new();
        let moved = follow(&account, &interrupt, &|_| ()).await;
        assert_eq!(moved, Ok((9, true)));
        assert_eq!(operations(&requests), ["ListMessageMoveTasks"; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_to_somewhere_else_is_left_alone() {
        let mut elsewhere = task("RUNNING", 4);
        elsewhere["DestinationArn"] = "arn:aws:sqs:eu-west-1:123456789012:other".into();
        let (account, requests) = with_tasks([elsewhere]).await;
        let (_raise, interrupt) = Interrupt::new();
        let expected = "a move task to arn:aws:sqs:eu-west-1:123456789012:other is running; wait for its end, or cancel it \
            with `aws sqs cancel-message-move-task`";
        let moved = follow(&account, &interrupt, &|_| ()).await;
        assert_eq!(moved, Err(Failure::CouldNot(expected.into())));
        assert_eq!(operations(&requests), ["ListMessageMoveTasks"]);
    }

    #[tokio::test(start_paused = true)]
    async fn ctrl_c_cancels_the_task() {
        let (account, requests) = with_tasks([Value::Null, task("RUNNING", 2), task("RUNNING", 3)]).await;
        let (raise, interrupt) = Interrupt::new();
        let tell = |_| raise.send(true).unwrap();
        let expected = "the move task is cancelled; about 3 letters were moved, and the others are still in the dead-letter \
            queue";
        let moved = follow(&account, &interrupt, &tell).await;
        assert_eq!(moved, Err(Failure::Interrupted(expected.into())));
        let cancel = ("CancelMessageMoveTask".to_owned(), json!({"TaskHandle": "task"}));
        assert_eq!(requests.lock().unwrap().last(), Some(&cancel));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_never_listed_is_given_up() {
        let (account, _) = with_tasks([const { Value::Null }; 61]).await;
        let (_raise, interrupt) = Interrupt::new();
        let moved = follow(&account, &interrupt, &|_| ()).await;
        assert!(matches!(&moved, Err(Failure::Undone(why)) if why.contains("does not list it")), "{moved:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn ctrl_c_cancels_a_task_that_is_not_listed_yet() {
        let (account, requests) = with_tasks([Value::Null, Value::Null]).await;
        let (raise, interrupt) = Interrupt::new();
        raise.send(true).unwrap();
        let moved = follow(&account, &interrupt, &|_| ()).await;
        assert!(matches!(moved, Err(Failure::Interrupted(_))), "{moved:?}");
        let cancel = ("CancelMessageMoveTask".to_owned(), json!({"TaskHandle": "task"}));
        assert_eq!(requests.lock().unwrap().last(), Some(&cancel));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_task_is_reported_with_its_reason() {
        let mut failed = task("FAILED", 2);
        failed["FailureReason"] = "AccessDenied".into();
        let (account, _) = with_tasks([Value::Null, failed]).await;
        let (_raise, interrupt) = Interrupt::new();
        let expected = "SQS's move task is FAILED: AccessDenied; about 2 letters were moved before";
        let moved = follow(&account, &interrupt, &|_| ()).await;
        assert_eq!(moved, Err(Failure::Undone(expected.into())));
    }
}
