//! `comeback replay FILE…`: the retry handler on recorded events.

mod event_file;
mod report;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use clap::Args;
use comeback_engine::Timestamp;
use comeback_timelapse::Call;

use crate::failure::Failure;
use crate::flags::{PolicyFlags, moment};
use crate::output::print_json;

pub(crate) use event_file::text_of;
pub use event_file::{EventFile, last_due};
pub use report::{FileReport, Handled, MessageDecision};

/// What `--target-functions` allows by default: the function of the samples in `events/`.
pub const SAMPLE_TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback replay events/*.json                      what the handler does with each sample
  comeback replay --at 2026-09-14T16:00:00Z events/early-return.json
  comeback replay --non-retryable-errors 'Order*' events/non-retryable-error.json";

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// SQS event files to run the handler on
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON: the same arguments give the same bytes
    #[arg(long)]
    json: bool,
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
    let policy =
        arguments.policy.policy(target_functions).map_err(|refused| Failure::refused(refused, Vec::new()))?;
    let report = |path: &Path| -> Result<FileReport, Failure> {
        Ok(FileReport::of(path, &text_of(path)?, &policy, arguments.at)?)
    };
    if arguments.json {
        let reports = arguments.files.iter().map(|path| report(path)).collect::<Result<Vec<_>, _>>()?;
        return print_json(&reports);
    }
    let mut out = anstream::stdout().lock();
    for path in &arguments.files {
        write_report(&mut out, &report(path)?)?;
    }
    Ok(())
}

fn write_report(out: &mut impl Write, report: &FileReport) -> io::Result<()> {
    let Some(handled) = &report.handled else {
        return writeln!(
            out,
            "{}: not an SQS event: a payload for the target; nothing for the handler to do\n",
            report.file
        );
    };
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#} at {}", report.file, handled.at)?;
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
    write!(out, "  {}: {style}{step}{style:#}", shown(&decision.message_id))?;
    if let Some(reason) = decision.reason {
        write!(out, " {reason}")?;
    }
    if let Some(retry) = decision.retry {
        write!(out, ", retry {retry}")?;
    }
    if let Some(function_arn) = &decision.function_arn {
        write!(out, " of {function_arn}")?;
    }
    writeln!(out, "\n    {}", decision.why)
}

fn write_call(out: &mut impl Write, call: &Call) -> io::Result<()> {
    match call {
        Call::ChangeMessageVisibilityBatch { entries } => {
            writeln!(out, "  → sqs:ChangeMessageVisibilityBatch")?;
            entries.iter().try_for_each(|entry| {
                writeln!(out, "    {} for {} s", entry.message_id, entry.visibility_timeout)
            })
        }
        Call::Invoke { function_name, payload } => {
            writeln!(out, "  → lambda:Invoke {function_name}\n    {payload}")
        }
        Call::SendMessageBatch { messages } => {
            writeln!(out, "  → sqs:SendMessageBatch")?;
            messages.iter().try_for_each(|message| {
                let attributes: Vec<_> =
                    message.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
                writeln!(out, "    {}\n    {}", attributes.join(" "), message.body)
            })
        }
        Call::SendAgain { copies } => {
            writeln!(out, "  → sqs:SendMessageBatch (retry queue)")?;
            copies.iter().try_for_each(|copy| {
                writeln!(
                    out,
                    "    {} with a delay of {} s\n    Comeback={}",
                    copy.message_id, copy.delay, copy.comeback
                )
            })
        }
    }
}

fn write_response(out: &mut impl Write, handled: &Handled) -> io::Result<()> {
    match handled.batch_item_failures.as_slice() {
        [] => writeln!(out, "  batchItemFailures: none; SQS deletes every message\n"),
        kept => {
            let kept: Vec<&str> = kept.iter().map(|id| shown(id)).collect();
            writeln!(out, "  batchItemFailures: {}\n", kept.join(", "))
        }
    }
}

/// A missing id is an empty one.
fn shown(message_id: &str) -> &str {
    if message_id.is_empty() { "\"\"" } else { message_id }
}
