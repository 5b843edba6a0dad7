use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::failure::Failure;
use crate::replay::arguments::{ReplayArguments, SAMPLE_TARGET};
use crate::replay::calls::MadeCall;
use crate::replay::event_file::text_of;
use crate::replay::report::{FileReport, Handled, MessageDecision};

pub(crate) fn run(arguments: &ReplayArguments) -> Result<(), Failure> {
    let target_functions = arguments.target_functions.as_deref().unwrap_or(SAMPLE_TARGET);
    let policy =
        arguments.policy.policy(target_functions).map_err(|refused| Failure::refused(refused, Vec::new()))?;
    let report = |path: &Path| -> Result<FileReport, Failure> {
        Ok(FileReport::of(path, &text_of(path)?, &policy, arguments.at)?)
    };
    let mut out = anstream::stdout().lock();
    if arguments.json {
        let reports = arguments.files.iter().map(|path| report(path)).collect::<Result<Vec<_>, _>>()?;
        let json = serde_json::to_string_pretty(&reports).expect("BUG: a report is plain JSON");
        writeln!(out, "{json}")?;
        return Ok(());
    }
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

fn write_call(out: &mut impl Write, call: &MadeCall) -> io::Result<()> {
    match call {
        MadeCall::ChangeMessageVisibilityBatch { entries } => {
            writeln!(out, "  → sqs:ChangeMessageVisibilityBatch")?;
            entries.iter().try_for_each(|entry| {
                writeln!(out, "    {} for {} s", entry.message_id, entry.visibility_timeout)
            })
        }
        MadeCall::Invoke { function_name, payload } => {
            writeln!(out, "  → lambda:Invoke {function_name}\n    {payload}")
        }
        MadeCall::SendMessageBatch { messages } => {
            writeln!(out, "  → sqs:SendMessageBatch")?;
            messages.iter().try_for_each(|message| {
                let attributes: Vec<_> =
                    message.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
                writeln!(out, "    {}\n    {}", attributes.join(" "), message.body)
            })
        }
        MadeCall::SendAgain { copies } => {
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
