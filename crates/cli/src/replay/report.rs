use std::path::Path;

use comeback_engine::{BatchEvent, Moved, Outcome, Policy, Record, Step, Timestamp};
use comeback_timelapse::{Call, rehearse};
use serde::Serialize;

use crate::failure::BadFile;
use crate::replay::event_file::{EventFile, last_due};

/// What the handler does with a file. Its JSON has the members in this order.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// The file, as it was named.
    pub file: String,
    /// `None`: not an SQS event, so nothing for the handler to do.
    pub handled: Option<Handled>,
}

/// What the handler did with an SQS event.
#[derive(Debug, Serialize)]
pub struct Handled {
    /// The handler's clock.
    pub at: Timestamp,
    /// In the order of the event; messages that lack an attribute SQS always writes come last.
    pub decisions: Vec<MessageDecision>,
    /// In the order in which they were made.
    pub calls: Vec<Call>,
    /// Ids of the messages that SQS keeps.
    pub batch_item_failures: Vec<String>,
}

/// What was decided about a message.
#[derive(Debug, Serialize)]
pub struct MessageDecision {
    /// SQS's id.
    pub message_id: String,
    /// The target, where the message could be understood.
    pub function_arn: Option<String>,
    /// The retry it is about, where the message could be understood.
    pub retry: Option<u64>,
    /// `defer`, `reinvoke` or `dead_letter`; `null` for a message that is only kept.
    pub step: Option<&'static str>,
    /// The reason of a dead-letter.
    pub reason: Option<&'static str>,
    /// When the retry is due, RFC 3339.
    pub due: Option<String>,
    /// How many seconds the message is hidden for.
    pub visibility_timeout: Option<u64>,
    /// The delay in seconds with which it is sent again, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// Why, for people.
    pub why: String,
}

impl FileReport {
    /// Runs the handler on a file's text. `at` is its clock; without it, the moment at which the
    /// file's last message is due.
    ///
    /// # Errors
    ///
    /// The file is not readable.
    pub fn of(path: &Path, text: &str, policy: &Policy, at: Option<Timestamp>) -> Result<Self, BadFile> {
        let handled = match EventFile::read(path, text)? {
            EventFile::Payload => None,
            EventFile::Sqs(batch) => {
                let at = at.or_else(|| last_due(&batch, policy)).unwrap_or(Timestamp::from_secs(0));
                Some(Handled::of(&batch, policy, at))
            }
        };
        Ok(Self { file: path.display().to_string(), handled })
    }
}

impl Handled {
    fn of(batch: &BatchEvent, policy: &Policy, at: Timestamp) -> Self {
        let rehearsal = rehearse(batch, policy, at);
        let failures: Vec<String> = rehearsal.report.batch_item_failures().map(Into::into).collect();
        if let Some(missing) = rehearsal.report.kept_whole {
            let kept = |id: &String| MessageDecision::kept(id, missing.to_string());
            let decisions = failures.iter().map(kept).collect();
            return Self { at, decisions, calls: Vec::new(), batch_item_failures: failures };
        }
        let mut decisions: Vec<MessageDecision> = rehearsal
            .report
            .outcomes
            .iter()
            .map(|outcome| MessageDecision::of(outcome, &batch.records))
            .collect();
        for garbled in &batch.garbled {
            let of_it = |decision: &&mut MessageDecision| decision.message_id == garbled.message_id;
            for decision in decisions.iter_mut().filter(of_it) {
                decision.why +=
                    &format!("; {}: it is ignored, and the message counts as a new one", garbled.problem);
            }
        }
        for incomplete in &batch.incomplete {
            let why = format!("{} is missing or unreadable; SQS always writes it", incomplete.what);
            decisions.push(MessageDecision::kept(&incomplete.message_id, why));
        }
        Self { at, decisions, calls: rehearsal.calls, batch_item_failures: failures }
    }
}

impl MessageDecision {
    /// A message that is neither judged nor hidden.
    fn kept(message_id: &str, why: String) -> Self {
        Self {
            message_id: message_id.into(),
            function_arn: None,
            retry: None,
            step: None,
            reason: None,
            due: None,
            visibility_timeout: None,
            delay: None,
            why,
        }
    }

    fn of(outcome: &Outcome<'_>, records: &[Record]) -> Self {
        let record = records.iter().rfind(|record| record.message_id == outcome.message_id);
        Self {
            message_id: outcome.message_id.into(),
            function_arn: outcome.retry.as_ref().map(|retry| retry.function_arn.clone()),
            retry: outcome.retry.as_ref().map(|retry| retry.number),
            step: outcome.step.as_ref().map(Step::name),
            reason: outcome.reason().map(|reason| reason.code.name()),
            due: outcome.due().map(|due| due.to_string()),
            visibility_timeout: outcome.visibility_timeout().map(|timeout| timeout.as_secs()),
            delay: outcome.moved.map(|delay| delay.as_secs()),
            why: record.map(|record| why(outcome, record)).unwrap_or_default(),
        }
    }
}

fn why(outcome: &Outcome<'_>, record: &Record) -> String {
    let receives = record.receive_count;
    match (&outcome.step, &record.moved) {
        (Some(Step::DeadLetter { reason, .. }), _) => reason.detail.clone(),
        (Some(Step::Defer { due, .. }), Some(moved)) => {
            let times = if moved.moves == 1 { "once".into() } else { format!("{} times", moved.moves) };
            format!("moved {times}; its backoff ends at {due}")
        }
        (Some(Step::Defer { due, .. }), None) if receives <= 1 => {
            format!("first receive; its backoff ends at {due}")
        }
        (Some(Step::Defer { due, .. }), None) => {
            format!("receive {receives}, back early; its backoff ends at {due}")
        }
        (Some(Step::Keep { .. }), Some(Moved { not_before: Some(until), .. })) => {
            format!("it waits until {until}: an earlier call for it did not work, or its function was paused")
        }
        (Some(Step::Hold { due, .. }), _) => format!("its function is paused; its retry is due since {due}"),
        (Some(Step::Keep { .. }), _) => "TARGET_FUNCTIONS is empty".into(),
        (Some(Step::Reinvoke { due }), _) => format!("receive {receives}; its backoff ended at {due}"),
        (None, _) => String::new(),
    }
}
