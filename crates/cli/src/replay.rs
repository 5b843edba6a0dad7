//! `comeback replay FILE…`: runs the retry handler on recorded events.

mod recorded;
mod shift;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::Args;
use comeback_engine::{
    BatchEvent, Directive, FailedEvent, FunctionPattern, Moved, NO_MESSAGE_ID, Outcome, Pauses, Policies,
    Record, Timestamp, What, decide, short_name,
};
use comeback_timelapse::{Call, rehearse};
use serde::Serialize;

use comeback_operate::Failure;
use comeback_operate::function::is_same_function;
use comeback_operate::shown::{shown, shown_json, shown_lines};
use comeback_rehearsal::failure::refused;
use comeback_rehearsal::flags::PolicyFlags;

use crate::clock::now;
use crate::failure::{CommandFailure, bad_content};
use crate::flags::{moment, warn_of_unmatched};
use crate::input::text_of;
use crate::output::print_json;

pub use recorded::Recorded;
pub use shift::shifted;

/// ARN of the function that failed in the sample events in `events/`.
pub const SAMPLE_TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback replay events/*.json                      what the handler does with each sample
  comeback replay --at 2026-09-14T16:00:00Z events/early-return.json
  aws sqs receive-message --queue-url $URL --message-system-attribute-names All | comeback replay -
  comeback replay --non-retryable-errors 'Order*' events/non-retryable-error.json
  comeback replay --policies 'flaky-target MAX_AGE=2h' events/early-return.json
  comeback replay --shift-to-now events/second-receive.json > /tmp/now.json
  cargo lambda invoke retry-handler --data-file /tmp/now.json";

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// File with an SQS event, the output of `aws sqs receive-message`, a message or a failure record, or several of
    /// these as JSON Lines; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON; the same arguments give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// Time on the handler's clock, RFC 3339 [default: when the file's last message is due]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
    /// TARGET_FUNCTIONS: ARNs of the functions to retry [default: every function that the files name]
    #[arg(long, value_name = "ARNS")]
    target_functions: Option<String>,
    /// Instead of running the handler, print the file as an SQS event, with its times shifted to the present: the time
    /// at which the handler would have run becomes the current time
    #[arg(long, conflicts_with_all = ["json", "target_functions"])]
    shift_to_now: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), CommandFailure> {
    let with_text = |path: &PathBuf| Ok::<_, Failure>((path.clone(), text_of(path)?));
    let files: Vec<(PathBuf, String)> = arguments.files.iter().map(with_text).collect::<Result<_, _>>()?;
    let recorded = files
        .iter()
        .map(|(path, text)| Ok::<_, Failure>((&**path, Recorded::read(path, text, arguments.at)?)));
    let recorded: Vec<(&Path, Recorded<'_>)> = recorded.collect::<Result<_, _>>()?;
    if arguments.shift_to_now {
        return print_shifted(arguments, &recorded);
    }
    let target_functions = arguments.target_functions.clone().unwrap_or_else(|| named_functions(&recorded));
    let policies = policies(&arguments.policy, &target_functions)?;
    let of =
        |(path, recorded): &(&Path, Recorded<'_>)| FileReport::of(path, recorded, &policies, arguments.at);
    let reports: Vec<FileReport> = recorded.iter().map(of).collect();
    if arguments.json {
        print_json(&BTreeMap::from([("files", &reports)]))?;
    } else {
        let mut out = anstream::stdout().lock();
        reports.iter().try_for_each(|report| write_report(&mut out, report))?;
    }
    let decisions = reports.iter().flat_map(|report| &report.handled.decisions);
    let functions: Vec<String> = decisions.filter_map(|decision| decision.function_arn.clone()).collect();
    warn_of_unmatched(&policies, &functions, "of these events");
    // The note leaves out the function in the sample events, because the default allow-list always includes it.
    let others = functions.iter().filter(|arn| is_pattern(arn) && !is_same_function(arn, SAMPLE_TARGET));
    let others: BTreeSet<_> = others.map(|arn| shown(short_name(arn))).collect();
    if arguments.target_functions.is_none() && !others.is_empty() {
        let others = others.into_iter().collect::<Vec<_>>().join(", ");
        anstream::eprintln!(
            "note: allowed, because the files name them: {others}; --target-functions narrows that"
        );
    }
    Ok(())
}

/// Returns an allow-list of the functions that the messages name. Malformed ARNs are left out.
fn named_functions(files: &[(&Path, Recorded<'_>)]) -> String {
    let records = files.iter().flat_map(|(_, recorded)| &recorded.batch.records);
    let arn = |record: &Record| FailedEvent::read(record).ok().map(|event| event.function_arn.to_string());
    let arns = records.filter_map(arn).filter(|arn| is_pattern(arn));
    // The list must not be empty, because a handler with an empty allow-list keeps every message.
    let arns: BTreeSet<String> = arns.chain([SAMPLE_TARGET.to_owned()]).collect();
    arns.into_iter().collect::<Vec<_>>().join(",")
}

fn is_pattern(arn: &str) -> bool {
    arn.parse::<FunctionPattern>().is_ok()
}

fn policies(flags: &PolicyFlags, target_functions: &str) -> Result<Policies, Failure> {
    flags.policies(target_functions).map_err(|errors| refused(errors, Vec::new()))
}

fn print_shifted(arguments: &ReplayArguments, files: &[(&Path, Recorded<'_>)]) -> Result<(), CommandFailure> {
    let [(path, Recorded { event, batch, .. })] = files else {
        return Err(Failure::refused("--shift-to-now takes one file").into());
    };
    let policies = policies(&arguments.policy, &named_functions(files))?;
    let moment = arguments
        .at
        .or_else(|| last_due(batch, &policies))
        .ok_or_else(|| bad_content(path, "no message has the times that SQS always adds"))?;
    // Bypasses `anstream`, which would drop the character DEL.
    let mut out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    out.write_all(json_for(is_terminal, &shifted(event, moment, now())).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Escapes JSON if it is printed on a terminal.
fn json_for(is_terminal: bool, json: &str) -> Cow<'_, str> {
    if is_terminal { shown_json(json).into() } else { json.into() }
}

/// The handler's actions on the messages in one file.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// The file's path, as given on the command line.
    pub file: String,
    /// True if the file lacks attributes that SQS always sets. [`Recorded::times_assumed`] says what is then assumed.
    pub times_assumed: bool,
    /// The handler's calls, and its decisions about the file's messages.
    pub handled: Handled,
}

/// The handler's decisions about a batch of messages, and its calls.
#[derive(Debug, Serialize)]
pub struct Handled {
    /// Time on the handler's clock when the handler receives the messages.
    pub at: Timestamp,
    /// The decisions, one per message, in the order of the messages. Those about incomplete messages come last; such
    /// a message lacks an attribute that SQS always sets, or the attribute is unreadable.
    pub decisions: Vec<MessageDecision>,
    /// Calls to AWS that the handler would make, in order.
    pub calls: Vec<Call>,
    /// Ids of the messages that the handler reports as failed, so that SQS keeps them.
    pub batch_item_failures: Vec<String>,
}

/// The handler's decision about one message.
#[derive(Debug, Default, Serialize)]
pub struct MessageDecision {
    /// Message id that SQS assigned.
    pub message_id: String,
    /// ARN of the target; `None` if the message could not be parsed.
    pub function_arn: Option<String>,
    /// Number of the event's next retry; `None` if the message could not be parsed.
    pub retry: Option<u64>,
    /// `defer`, `reinvoke`, `dead_letter` or `keep`; `None` for a message about which the handler made no decision.
    pub step: Option<&'static str>,
    /// The reason code if the event is dead-lettered; otherwise `None`.
    pub reason: Option<&'static str>,
    /// The due time of the retry, in RFC 3339; `None` if no retry follows.
    pub due: Option<String>,
    /// New visibility timeout of the message, in seconds; `None` if the handler does not change the timeout.
    pub visibility_timeout: Option<u64>,
    /// Delay of a moved message's copy, in seconds; `None` if the message is not moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<u64>,
    /// Reason for the decision, in words.
    pub why: String,
}

impl FileReport {
    /// Runs the handler on a file's messages at time `at`. The default is the time when the last message is due.
    pub fn of(path: &Path, recorded: &Recorded<'_>, policies: &Policies, at: Option<Timestamp>) -> Self {
        let Recorded { batch, times_assumed, .. } = recorded;
        let at = at.or_else(|| last_due(batch, policies)).unwrap_or(Timestamp::from_secs(0));
        let (file, handled) = (path.display().to_string(), Handled::of(batch, policies, at));
        Self { file, times_assumed: *times_assumed, handled }
    }
}

impl Handled {
    fn of(batch: &BatchEvent, policies: &Policies, at: Timestamp) -> Self {
        let rehearsal = rehearse(batch, policies, at);
        let failures: Vec<String> = rehearsal.report.batch_item_failures().map(Into::into).collect();
        if rehearsal.report.kept_whole {
            let kept = |id: &String| MessageDecision::kept(id, NO_MESSAGE_ID.into());
            let decisions = failures.iter().map(kept).collect();
            return Self { at, decisions, calls: Vec::new(), batch_item_failures: failures };
        }
        let mut decisions: Vec<MessageDecision> =
            rehearsal.report.outcomes.iter().map(MessageDecision::of).collect();
        for garbled in &batch.garbled {
            let of_it = |decision: &&mut MessageDecision| decision.message_id == garbled.message_id;
            for decision in decisions.iter_mut().filter(of_it) {
                decision.why +=
                    &format!("; {}: it is ignored, so the message counts as new", garbled.problem);
            }
        }
        for incomplete in &batch.incomplete {
            let why = format!("{} is missing or unreadable; SQS always adds it", incomplete.what);
            decisions.push(MessageDecision::kept(&incomplete.message_id, why));
        }
        Self { at, decisions, calls: rehearsal.calls, batch_item_failures: failures }
    }
}

impl MessageDecision {
    fn kept(message_id: &str, why: String) -> Self {
        Self { message_id: message_id.into(), why, ..Self::default() }
    }

    fn of(outcome: &Outcome<'_>) -> Self {
        Self {
            message_id: outcome.message_id().into(),
            function_arn: outcome.event.as_ref().map(|event| event.function_arn.to_string()),
            retry: outcome.retry(),
            step: outcome.step(),
            reason: outcome.reason().map(|reason| reason.code.name()),
            due: outcome.due().map(|due| due.to_string()),
            visibility_timeout: outcome.visibility_timeout().map(|timeout| timeout.as_secs()),
            delay: outcome.delay().map(|delay| delay.as_secs()),
            why: why(outcome) + &ignored(outcome),
        }
    }
}

/// Explains why the handler ignores the event's `RetryAfter`. Returns an empty string if no `RetryAfter` is ignored.
fn ignored(outcome: &Outcome<'_>) -> String {
    match outcome.event.as_ref().and_then(|event| event.directive.as_ref()) {
        Some(Directive::Unreadable { text, why }) => format!("; its RetryAfter {text:?} is ignored: {why}"),
        _ => String::new(),
    }
}

fn why(outcome: &Outcome<'_>) -> String {
    let receives = outcome.record.receive_count;
    match (&outcome.what, &outcome.record.moved) {
        (What::DeadLetter { reason, .. }, _) => reason.detail.clone(),
        (What::Reinvoke { due, .. }, _) => format!("receive {receives}; its backoff ended at {due}"),
        (What::Defer { due, .. }, Some(moved)) => {
            let times = if moved.moves == 1 { "once".into() } else { format!("{} times", moved.moves) };
            format!("moved {times}; its backoff ends at {due}")
        }
        (What::Defer { due, .. }, None) if receives <= 1 => {
            format!("first receive; its backoff ends at {due}")
        }
        (What::Defer { due, .. }, None) => {
            format!("receive {receives}, back early; its backoff ends at {due}")
        }
        (What::Hold { due, .. }, _) => format!("its function is paused; the retry has been due since {due}"),
        (What::Keep { .. }, _) if outcome.step() != Some("keep") => String::new(),
        (What::Keep { .. }, Some(Moved { not_before: Some(until), .. })) => {
            format!("it waits until {until}, because an earlier call failed or its function was paused")
        }
        (What::Keep { .. }, _) => "TARGET_FUNCTIONS is empty".into(),
    }
}

/// Returns the latest due time of a batch's messages, or `None` for an empty batch. A message received for the first
/// time counts as due when it was sent. Any other message is due when its backoff ends, or at its first receive if no
/// retry follows.
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
    let handled = &report.handled;
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#} at {}", shown(&report.file), handled.at)?;
    if report.times_assumed {
        writeln!(
            out,
            "  the file lacks SQS's times; assumed: each message was sent when its event failed, and this is \
             its first receive"
        )?;
    }
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
        [] => writeln!(out, "  batchItemFailures: none, so SQS deletes every message\n"),
        kept => {
            let kept: Vec<_> = kept.iter().map(|id| id_text(id)).collect();
            writeln!(out, "  batchItemFailures: {}\n", kept.join(", "))
        }
    }
}

/// Formats a message id for display, with `""` for a missing id.
fn id_text(message_id: &str) -> Cow<'_, str> {
    if message_id.is_empty() { "\"\"".into() } else { shown(message_id) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn a_recorded_event_cannot_command_the_terminal() {
        let mut written = Vec::new();
        write_decision(&mut written, &MessageDecision::kept(HOSTILE, HOSTILE.into())).unwrap();
        let invoke = Call::Invoke { function_name: HOSTILE.into(), payload: HOSTILE.into() };
        write_call(&mut written, &invoke).unwrap();
        let handled = Handled {
            at: Timestamp::from_secs(0),
            decisions: Vec::new(),
            calls: Vec::new(),
            batch_item_failures: vec![HOSTILE.into()],
        };
        let report = FileReport { file: HOSTILE.into(), times_assumed: false, handled };
        write_report(&mut written, &report).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.contains("\\u{9b}2J") && !is_obeyed_anywhere(&written), "{written}");
    }

    #[test]
    fn an_event_cannot_command_the_terminal() {
        let event = serde_json::to_string(&[HOSTILE]).unwrap();
        assert_eq!(json_for(false, &event), event);
        let shown = json_for(true, &event);
        assert!(shown.contains("\\u009b2J") && !is_obeyed_anywhere(&shown), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [HOSTILE]);
    }
}
