use std::io::Write as _;
use std::panic::PanicHookInfo;

use comeback_engine::{BatchReport, CallFailure, Directive, Moves, Outcome, Pause, PausesRead, Step};
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

/// JSON lines on standard output, with a timestamp, whatever the function's log format says.
/// lambda_runtime's own subscriber follows that setting and leaves the timestamp to it.
pub(crate) fn init() {
    let subscriber = subscriber(std::io::stdout);
    tracing::subscriber::set_global_default(subscriber).expect("BUG: logging starts once, in main");
    std::panic::set_hook(Box::new(|panic| tracing::error!("{}", said(panic))));
}

/// A panic of ours says what is wrong. Any other may quote what was being read.
fn said(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let words = panic.payload_as_str().filter(|words| words.starts_with("BUG: "));
    format!("panicked at {place}: {}", words.unwrap_or("its words are left out, as they may quote the event"))
}

fn subscriber<W>(writer: W) -> impl Subscriber
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(Level::INFO)
        .with_writer(writer)
        .finish()
}

/// A line for each message, but for copies that are moved once more: they have one line together.
pub(crate) fn report(report: &BatchReport<'_>) {
    if let Some(problem) = report.kept_whole {
        tracing::error!("{problem}");
        return;
    }
    for message in &report.batch.incomplete {
        tracing::error!(message_id = message.message_id, "{message}; it is kept");
    }
    for message in &report.batch.garbled {
        tracing::warn!(message_id = message.message_id, "{message}");
    }
    report.outcomes.iter().filter(|it| !it.only_waits_on()).for_each(outcome);
    moves(&report.moves);
    if let Some(failure) = &report.look_failure {
        let (problem, remedy) = (cut(&failure.cause), failure.remedy);
        match remedy {
            Some(_) => tracing::error!(problem, remedy, "the messages in flight could not be counted"),
            None => tracing::warn!(problem, "the messages in flight could not be counted"),
        }
    }
    match &report.pauses {
        Some(PausesRead::Known { long }) => long.iter().for_each(long_pause),
        Some(PausesRead::AsBefore(failure)) => old_pauses(failure),
        Some(PausesRead::Unknown(failure)) => unknown_pauses(failure),
        None => {}
    }
}

/// Lines that are JSON already.
pub(crate) fn lines(lines: &[String]) {
    let mut out = std::io::stdout().lock();
    for line in lines {
        if let Err(error) = writeln!(out, "{line}") {
            tracing::error!("a line of metrics could not be written: {error}");
        }
    }
}

fn long_pause(Pause { target, from, by, why, .. }: &Pause) {
    tracing::warn!(
        paused = cut(&target.to_string()),
        since = %from,
        by = by.as_deref().map(cut),
        why = why.as_deref().map(cut),
        "paused for over 24 hours: resume it if it was forgotten"
    );
}

fn old_pauses(CallFailure { cause, remedy }: &CallFailure) {
    let problem = cut(cause);
    match remedy {
        Some(_) => {
            tracing::error!(problem, remedy, "the pauses could not be read: those of the last read count")
        }
        None => tracing::warn!(problem, "the pauses could not be read: those of the last read count"),
    }
}

/// Messages pile up until it passes, so somebody has to look.
fn unknown_pauses(CallFailure { cause, remedy }: &CallFailure) {
    tracing::error!(
        problem = cut(cause),
        remedy = remedy.unwrap_or("see that the handler reaches SSM, or unset PAUSES"),
        "the pauses could not be read, and none were read before: no function is invoked until they are"
    );
}

/// One line for all of a batch's moves, if there were any.
fn moves(Moves { made, failed, problem }: &Moves) {
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                action = "move",
                moved = made,
                hidden_instead = failed,
                problem = problem.as_ref().map(|problem| cut(&problem.cause)),
                remedy = problem.as_ref().and_then(|problem| problem.remedy),
            )
        };
    }
    match problem {
        Some(problem) if problem.remedy.is_some() => line!(Level::ERROR),
        Some(_) => line!(Level::WARN),
        None if *made > 0 => line!(Level::INFO),
        None => {}
    }
}

/// One line for what was decided for a message and whether it worked. Never the payload.
fn outcome(outcome: &Outcome<'_>) {
    let retry = outcome.retry.as_ref();
    let reason = outcome.reason();
    let problem = outcome.problem.as_ref();
    let directive = retry.and_then(|retry| retry.directive);
    let (retry_after, unreadable) = match directive {
        Some(Directive::RetryAfter(moment)) => (Some(tracing::field::display(moment)), None),
        Some(Directive::Unreadable(why)) => (None, Some(why)),
        Some(Directive::NonRetryable) | None => (None, None),
    };
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                message_id = outcome.message_id,
                key = retry.map(|retry| cut(&retry.key)),
                target = retry.map(|retry| cut(&retry.function_arn)),
                retry = retry.map(|retry| retry.number),
                action = outcome.step.as_ref().map(Step::name),
                delay = outcome.moved.or(outcome.visibility_timeout()).map(|wait| wait.as_secs()),
                due = outcome.due().map(tracing::field::display),
                request_id = retry.and_then(|retry| retry.request_id.as_deref()).map(cut),
                invoke_request_id = outcome.invoke_request_id.as_deref().map(cut),
                trace = outcome.trace,
                first_failure = retry.map(|retry| tracing::field::display(retry.first_failure)),
                error_type = retry.and_then(|retry| retry.error_type.as_deref()).map(cut),
                retry_after,
                retry_after_ignored = unreadable,
                reason = reason.map(|reason| reason.code.name()),
                detail = reason.map(|reason| reason.detail.as_str()),
                problem = problem.map(|problem| cut(&problem.cause)),
                remedy = problem.and_then(|problem| problem.remedy),
            )
        };
    }
    // An event takes its level as a constant, hence a line for each.
    match problem {
        Some(problem) if problem.remedy.is_some() => line!(Level::ERROR),
        Some(_) => line!(Level::WARN),
        None if reason.is_some() || unreadable.is_some() => line!(Level::WARN),
        None => line!(Level::INFO),
    }
}

/// Queue content and services must not decide how long a line is: CloudWatch drops what is too long.
fn cut(text: &str) -> &str {
    const CHARACTERS: usize = 512;
    text.char_indices().nth(CHARACTERS).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
pub(crate) mod tests;
