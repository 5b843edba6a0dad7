//! SQS's own redrive of a whole queue. It goes on if this command is killed.

use std::time::Duration;

use aws_sdk_sqs::types::ListMessageMoveTasksResultEntry as Task;

use super::DeadLetters;
use super::read::Progress;
use crate::{Failure, Interrupt};

/// Between two looks at the task.
const LOOK_AFTER: Duration = Duration::from_secs(1);
const RUNNING: &str = "RUNNING";
/// Looks for a task that was just started, before it is given up. SQS may list it some seconds later.
const LOOKS_FOR_A_NEW_ONE: u32 = 60;

/// What a move task did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// About how many letters it moved.
    pub letters: u64,
    /// Whether it ran already when this command began, and was only followed.
    pub was_running: bool,
}

impl DeadLetters {
    /// Has SQS move every letter to the retry queue, `per_second` of them at most, and follows that to its end. A task
    /// that runs already is followed. Ctrl-C cancels it; what was moved stays moved.
    ///
    /// # Errors
    ///
    /// SQS refuses it, or it does not end well.
    pub async fn move_all(
        &self,
        per_second: i32,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Moved, Failure> {
        let before = self.last_task().await?;
        let was_running = self.is_running_to_the_retry_queue(before.as_ref())?;
        let started = if was_running { None } else { Some(self.start_task(per_second).await?) };
        let older = before.filter(|_| !was_running).map(|task| task.started_timestamp());
        let mut looks = 0;
        loop {
            let task = self.last_task().await?.filter(|task| Some(task.started_timestamp()) != older);
            let Some(task) = task else {
                looks += 1;
                if looks == LOOKS_FOR_A_NEW_ONE {
                    return Err(self.unlisted());
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK_AFTER) => continue,
                    () = interrupt.raised() => return Err(self.cancel(started.as_deref()).await?),
                }
            };
            let letters = task.approximate_number_of_messages_moved().unsigned_abs();
            tell(Progress::Done(letters));
            match task.status().unwrap_or_default() {
                "COMPLETED" => return Ok(Moved { letters, was_running }),
                RUNNING if interrupt.is_raised() => return Err(self.cancel(task.task_handle()).await?),
                // Nothing more can be done about it, so an interrupt does not end this wait.
                "CANCELLING" => tokio::time::sleep(LOOK_AFTER).await,
                RUNNING => tokio::select! {
                    () = tokio::time::sleep(LOOK_AFTER) => {}
                    () = interrupt.raised() => {}
                },
                status => {
                    let why = task.failure_reason().unwrap_or("SQS gives no reason");
                    let moved = format!("about {letters} letters were moved before");
                    return Err(Failure::Undone(format!("SQS's move task is {status}: {why}; {moved}")));
                }
            }
        }
    }

    fn unlisted(&self) -> Failure {
        Failure::Undone(format!(
            "SQS accepted a move task and does not list it; look for it with `aws sqs list-message-move-tasks --source-arn \
             {}`",
            self.dead_letter_queue.arn
        ))
    }

    /// Gives the task's handle.
    async fn start_task(&self, per_second: i32) -> Result<String, Failure> {
        let source = &self.dead_letter_queue.arn;
        let call = self
            .account
            .sqs
            .start_message_move_task()
            .source_arn(source)
            // Without one, SQS sends each back where SQS took it from; the handler's letters came from nowhere.
            .destination_arn(&self.retry_queue.arn)
            .max_number_of_messages_per_second(per_second);
        let started = call.send().await;
        let started =
            started.map_err(|error| Failure::of_call("sqs:StartMessageMoveTask", source, &error))?;
        Ok(started.task_handle.unwrap_or_default())
    }

    /// Whether the last task is running, to the retry queue. A second one cannot be started beside it.
    fn is_running_to_the_retry_queue(&self, last: Option<&Task>) -> Result<bool, Failure> {
        let Some(task) = last.filter(|task| task.status() == Some(RUNNING)) else {
            return Ok(false);
        };
        match task.destination_arn() {
            Some(arn) if arn == self.retry_queue.arn => Ok(true),
            other => Err(Failure::CouldNot(format!(
                "a move task to {} is running; wait for its end, or cancel it with `aws sqs cancel-message-move-task`",
                other.unwrap_or("where SQS took the messages from")
            ))),
        }
    }

    async fn last_task(&self) -> Result<Option<Task>, Failure> {
        let source = &self.dead_letter_queue.arn;
        let answer =
            self.account.sqs.list_message_move_tasks().source_arn(source).max_results(1).send().await;
        let answer = answer.map_err(|error| Failure::of_call("sqs:ListMessageMoveTasks", source, &error))?;
        Ok(answer.results.unwrap_or_default().into_iter().next())
    }

    /// Why the command ends: interrupted.
    async fn cancel(&self, task_handle: Option<&str>) -> Result<Failure, Failure> {
        let handle = task_handle.unwrap_or_default();
        let answer = self.account.sqs.cancel_message_move_task().task_handle(handle).send().await;
        let source = &self.dead_letter_queue.arn;
        let answer = answer.map_err(|error| Failure::of_call("sqs:CancelMessageMoveTask", source, &error))?;
        let moved = answer.approximate_number_of_messages_moved().unsigned_abs();
        Ok(Failure::Interrupted(format!(
            "the move task is cancelled; about {moved} letters were moved, and the others are still in the dead-letter \
             queue"
        )))
    }
}
