//! `comeback replay FILE…`: the retry handler on recorded events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::Args;
use comeback_engine::{BatchEvent, Moved, Outcome, Pauses, Policies, Record, Step, Timestamp, decide};
use comeback_timelapse::{Call, rehearse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{BadFile, Failure};
use crate::flags::{PolicyFlags, moment, warn_of_unmatched};
use crate::output::print_json;
use crate::text::terminal::{shown, shown_lines};

/// What `--target-functions` allows by default: the function of the samples in `events/`.
pub const SAMPLE_TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback replay events/*.json                      what the handler does with each sample
  comeback replay --at 2026-09-14T16:00:00Z events/early-return.json
  comeback replay --non-retryable-errors 'Order*' events/non-retryable-error.json
  comeback replay --policies 'flaky-target MAX_AGE=2h' events/early-return.json";

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// SQS event files to run the handler on
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON: the same arguments give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// The handler's clock, RFC 3339 [default: the moment the file's last message is due]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
    /// TARGET_FUNCTIONS: ARNs of functions that may be re-invoked [default: the samples' target]
    #[arg(long, value_name = "ARNS")]
    target_functions: Option<String>,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), Failure> {
    let target_functions = arguments.target_functions.as_deref().unwrap_or(SAMPLE_TARGET);
    let policies = arguments
        .policy
        .policies(target_functions)
        .map_err(|refused| Failure::refused(refused, Vec::new()))?;
    let mut functions = Vec::new();
    let mut reports = arguments.files.iter().map(|path| {
        let report = FileReport::of(path, &text_of(path)?, &policies, arguments.at)?;
        let decisions = report.handled.iter().flat_map(|handled| &handled.decisions);
        functions.extend(decisions.filter_map(|decision| decision.function_arn.clone()));
        Ok::<_, BadFile>(report)
    });
    if arguments.json {
        let files = reports.collect::<Result<Vec<_>, _>>()?;
        print_json(&BTreeMap::from([("files", files)]))?;
    } else {
        let mut out = anstream::stdout().lock();
        reports.try_for_each(|report| Ok::<_, Failure>(write_report(&mut out, &report?)?))?;
    }
    warn_of_unmatched(&policies, &functions, "of these events");
    Ok(())
}

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
#[derive(Debug, Default, Serialize)]
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
    pub fn of(path: &Path, text: &str, policies: &Policies, at: Option<Timestamp>) -> Result<Self, BadFile> {
        let handled = sqs_event(path, text)?.map(|batch| {
            let at = at.or_else(|| last_due(&batch, policies)).unwrap_or(Timestamp::from_secs(0));
            Handled::of(&batch, policies, at)
        });
        Ok(Self { file: path.display().to_string(), handled })
    }
}

impl Handled {
    fn of(batch: &BatchEvent, policies: &Policies, at: Timestamp) -> Self {
        let rehearsal = rehearse(batch, policies, at);
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
        Self { message_id: message_id.into(), why, ..Self::default() }
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

/// The SQS event in a file's text, read as the Lambda reads its event; `None` for any other JSON, which is a payload
/// for a target function.
///
/// # Errors
///
/// The text is not JSON.
pub fn sqs_event(path: &Path, text: &str) -> Result<Option<BatchEvent>, BadFile> {
    let json: &RawValue =
        serde_json::from_str(text).map_err(|error| BadFile::new(path, format!("not JSON: {error}")))?;
    if !is_sqs_event(json) {
        return Ok(None);
    }
    BatchEvent::read(text).map(Some).map_err(|error| BadFile::new(path, error))
}

/// S3 and SNS events have `Records` too, and a target may be invoked with one.
fn is_sqs_event(json: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow, rename = "Records")]
        records: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Message<'a> {
        #[serde(borrow)]
        event_source: Option<&'a RawValue>,
        #[serde(borrow)]
        receipt_handle: Option<&'a RawValue>,
    }
    let is_message = |record: &&RawValue| {
        serde_json::from_str::<Message<'_>>(record.get()).is_ok_and(|message| {
            message.receipt_handle.is_some()
                || message.event_source.is_some_and(|source| source.get() == "\"aws:sqs\"")
        })
    };
    json.get().starts_with('{')
        && serde_json::from_str::<Event<'_>>(json.get())
            .is_ok_and(|event| event.records.iter().any(is_message))
}

/// A file's text.
pub(crate) fn text_of(path: &Path) -> Result<String, BadFile> {
    std::fs::read_to_string(path).map_err(|error| BadFile::new(path, error))
}

/// The moment at which the last of the messages is due: a first receive when it was sent, a
/// later one when its backoff ends, or at its first receive if there will be no retry.
/// `None` without messages.
pub fn last_due(batch: &BatchEvent, policies: &Policies) -> Option<Timestamp> {
    let due = |record: &Record| match record.receive_count {
        0 | 1 => record.sent,
        _ => decide(record, policies, &Pauses::default(), record.first_receive)
            .due()
            .unwrap_or(record.first_receive),
    };
    batch.records.iter().map(due).max()
}

fn write_report(out: &mut impl Write, report: &FileReport) -> io::Result<()> {
    let Some(handled) = &report.handled else {
        return writeln!(
            out,
            "{}: not an SQS event: a payload for the target; nothing for the handler to do\n",
            shown(&report.file)
        );
    };
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#} at {}", shown(&report.file), handled.at)?;
    handled.decisions.iter().try_for_each(|decision| write_decision(out, decision))?;
    handled.calls.iter().try_for_each(|call| write_call(out, call))?;
    write_response(out, handled)
}

fn write_decision(out: &mut impl Write, decision: &MessageDecision) -> io::Result<()> {
    let step = decision.step.unwrap_or("keep");
    let color = match step {
        "reinvoke" => AnsiColor::Green,
        "dead_letter" => AnsiColor::Red,
        _ => AnsiColor::Cyan,
    };
    let style = color.on_default();
    write!(out, "  {}: {style}{step}{style:#}", id_text(&decision.message_id))?;
    if let Some(reason) = decision.reason {
        write!(out, " {reason}")?;
    }
    if let Some(retry) = decision.retry {
        write!(out, ", retry {retry}")?;
    }
    if let Some(function_arn) = &decision.function_arn {
        write!(out, " of {}", shown(function_arn))?;
    }
    writeln!(out, "\n    {}", shown(&decision.why))
}

fn write_call(out: &mut impl Write, call: &Call) -> io::Result<()> {
    match call {
        Call::ChangeMessageVisibilityBatch { entries } => {
            writeln!(out, "  → sqs:ChangeMessageVisibilityBatch")?;
            entries.iter().try_for_each(|entry| {
                writeln!(out, "    {} for {} s", shown(&entry.message_id), entry.visibility_timeout)
            })
        }
        Call::Invoke { function_name, payload } => {
            writeln!(out, "  → lambda:Invoke {}\n    {}", shown(function_name), shown_lines(payload))
        }
        Call::SendMessageBatch { messages } => {
            writeln!(out, "  → sqs:SendMessageBatch")?;
            messages.iter().try_for_each(|message| {
                let attributes: Vec<_> =
                    message.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
                writeln!(out, "    {}\n    {}", shown(&attributes.join(" ")), shown_lines(&message.body))
            })
        }
        Call::SendAgain { copies } => {
            writeln!(out, "  → sqs:SendMessageBatch (retry queue)")?;
            copies.iter().try_for_each(|copy| {
                let (id, comeback) = (shown(&copy.message_id), shown(&copy.comeback));
                writeln!(out, "    {id} with a delay of {} s\n    Comeback={comeback}", copy.delay)
            })
        }
    }
}

fn write_response(out: &mut impl Write, handled: &Handled) -> io::Result<()> {
    match handled.batch_item_failures.as_slice() {
        [] => writeln!(out, "  batchItemFailures: none; SQS deletes every message\n"),
        kept => {
            let kept: Vec<_> = kept.iter().map(|id| id_text(id)).collect();
            writeln!(out, "  batchItemFailures: {}\n", kept.join(", "))
        }
    }
}

/// A missing id is an empty one.
fn id_text(message_id: &str) -> Cow<'_, str> {
    if message_id.is_empty() { "\"\"".into() } else { shown(message_id) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn a_recorded_event_cannot_command_the_terminal() {
        let mut written = Vec::new();
        write_decision(&mut written, &MessageDecision::kept(HOSTILE, HOSTILE.into())).unwrap();
        let invoke = Call::Invoke { function_name: HOSTILE.into(), payload: HOSTILE.into() };
        write_call(&mut written, &invoke).unwrap();
        write_report(&mut written, &FileReport { file: HOSTILE.into(), handled: None }).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.contains("\\u{9b}2J") && !is_obeyed_anywhere(&written), "{written}");
    }

    fn read(text: &str) -> Result<Option<BatchEvent>, String> {
        sqs_event(Path::new("event.json"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn anything_but_sqs_messages_is_a_payload() {
        for payload in [
            "null",
            "[]",
            r#"{"order": 7}"#,
            r#"{"Records": []}"#,
            r#"{"Records": [{"eventSource": "aws:s3"}]}"#,
        ] {
            assert!(matches!(read(payload), Ok(None)), "{payload}");
        }
    }

    #[test]
    fn an_incomplete_message_is_set_apart_as_it_is_for_the_handler() {
        for (message, what) in [
            (r#"{"eventSource": "aws:sqs", "messageId": "m"}"#, "receiptHandle"),
            (r#"{"receiptHandle": 7}"#, "messageId"),
            (r#"{"messageId": "m", "receiptHandle": 7}"#, "receiptHandle"),
        ] {
            let Ok(Some(messages)) = read(&format!(r#"{{"Records": [{message}]}}"#)) else {
                panic!("an SQS event")
            };
            assert!(messages.records.is_empty());
            assert_eq!(messages.incomplete[0].what, what);
            assert_eq!(messages.incomplete[0].message_id, if message.contains(r#""m""#) { "m" } else { "" });
        }
    }

    #[test]
    fn errors_name_the_file_and_the_position() {
        assert_eq!(
            read("{\n  \"Records\": }").unwrap_err(),
            "event.json: not JSON: expected value at line 2 column 14"
        );
    }
}
