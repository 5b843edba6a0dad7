//! `comeback trace ID`: one event's life as a timeline.

pub(crate) mod story;

use std::io::Write as _;
use std::time::Duration;

use anstyle::AnsiColor;
use clap::Args;
use comeback_engine::Timestamp;

use crate::clock::now;
use crate::failure::Failure;
use crate::operate::session::{Common, Session, coloured};
use crate::operate::trace::story::{End, Invocation, Report, Step, Trace, What};
use crate::output::json_line;
use crate::text::durations::{self, short};
use crate::text::terminal::{Progress, shown};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --logs --since 2d
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --json";

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// The event's key (origin_request_id), or the request id of one of its invocations
    #[arg(value_name = "KEY|REQUEST_ID")]
    id: String,
    /// Add the target's own log lines of each invocation
    #[arg(long)]
    logs: bool,
    /// How far back to search
    #[arg(long, value_name = "DURATION", default_value = "14d", value_parser = durations::read)]
    since: Duration,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &TraceArguments, session: Session) -> Result<(), Failure> {
    let now = now();
    let back = u64::try_from(arguments.since.as_millis()).unwrap_or(u64::MAX);
    let since = Timestamp::from_millis(now.as_millis().saturating_sub(back));
    let progress = Progress::endless("searching the log: {pos} lines");
    let work = async {
        let deployment = session.deployment().await?;
        let found = |lines: usize| progress.set(lines as u64);
        Trace::find(&session.account, &deployment, &arguments.id, since, arguments.logs, &found).await
    };
    let trace = session.interrupt.or(work).await?;
    drop(progress);
    let mut out = anstream::stdout();
    if session.common.json {
        writeln!(out, "{}", json_line(&serde_json::json!(trace)))?;
    } else {
        write!(out, "{}", text(&trace, now))?;
    }
    Ok(())
}

/// Where the text of a line begins: after a clock time and two spaces.
const MARGIN: usize = 14;

/// The timeline of an event, with what is known of its end.
pub(crate) fn text(trace: &Trace, now: Timestamp) -> String {
    let story = &trace.story;
    let mut text = format!("event   {}\ntarget  {}\n", shown(&story.key), shown(&story.target));
    let mut date = String::new();
    for step in &story.steps {
        let at = step.at.to_string();
        let (day, clock) = (at.get(..10).unwrap_or_default(), at.get(11..23).unwrap_or_default());
        if day != date {
            text += &format!("\n{day} (UTC)\n");
            date = day.to_owned();
        }
        text += &format!("{clock}  {}\n", sentence(step));
        // The log of an attempt stands below its start, or below its failure if we did not start it.
        if let What::Invoked { request_id, .. } | What::Failed { attempt: 0, request_id, .. } = &step.what {
            let logged = invocation(trace, request_id).into_iter().flat_map(|invocation| &invocation.lines);
            let lines = logged.flat_map(|logged| logged.line.lines());
            lines.for_each(|line| text += &format!("{:MARGIN$}| {}\n", "", shown(line)));
        }
    }
    if story.copies > 0 {
        let copies = story.copies;
        text += &format!("\n{copies} attempts failed more than once: copies of the event are retried, too\n");
    }
    text + "\n" + &end(trace, now) + "\n"
}

fn invocation<'t>(trace: &'t Trace, request_id: &Option<String>) -> Option<&'t Invocation> {
    trace.invocations.iter().find(|invocation| Some(&invocation.request_id) == request_id.as_ref())
}

/// A step in words, without its time.
pub(crate) fn sentence(step: &Step) -> String {
    let red = |text: String| coloured(AnsiColor::Red, &shown(&text));
    let id = |id: &Option<String>| id.as_ref().map(|id| format!("  {}", shown(id))).unwrap_or_default();
    match &step.what {
        What::Failed { attempt, request_id, error_type } => {
            let error = error_type.as_deref().unwrap_or("an unknown error");
            red(format!("attempt {attempt} failed with {error}")) + &id(request_id)
        }
        What::Redriven => "redriven: its retries start anew".into(),
        What::Waits { retry, due } => {
            format!("waits {} for retry {retry}, until {due}", short(due.since(step.at).as_secs_f64()))
        }
        What::Held { retry, last } => {
            format!("retry {retry} is due, and held: the function is paused (last looked at {last})")
        }
        What::Invoked { retry, request_id, late_ms } => {
            let late = late_ms.filter(|late| *late >= 1_000).map(|late| late as f64 / 1_000.0);
            let late = late.map(|late| format!(", {} after it was due", short(late))).unwrap_or_default();
            format!("retry {retry} invoked{late}") + &id(request_id)
        }
        What::Kept { action, problem, remedy } => {
            let remedy = remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            red(format!("{action} did not work, and the event is kept: {problem}{remedy}"))
        }
        What::GivenUp { reason, detail } => {
            let detail = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            red(format!("dead-lettered, {reason}{detail}"))
        }
    }
}

/// What is known, and no more.
fn end(trace: &Trace, now: Timestamp) -> String {
    match &trace.story.end {
        End::Waiting { due } if *due > now => {
            format!("It waits. Its next retry is due in {}.", short(due.since(now).as_secs_f64()))
        }
        End::Waiting { due } => {
            let late = short(now.since(*due).as_secs_f64());
            format!("Its next retry has been due for {late}. `comeback doctor` says whether retries run.")
        }
        End::Held => "Its function is paused. `comeback pause --list` says by whom and why.".into(),
        End::Kept => "It is kept, and the handler will try again.".into(),
        End::GivenUp => {
            "It is over: the event is in the dead-letter queue, or was redriven from it since.".into()
        }
        End::Invoked { request_id, at } => {
            let since = short(now.since(*at).as_secs_f64());
            let seen = match invocation(trace, request_id).map(|invocation| &invocation.report) {
                Some(Report::Seen { at, status: None }) => format!("the function's REPORT was seen at {at}"),
                Some(Report::Seen { at, status: Some(status) }) => {
                    format!("the function's REPORT was seen at {at}, with status {status}")
                }
                Some(Report::NotSeen) => "the function's REPORT was not seen yet".into(),
                Some(Report::Unread { why }) => format!("the function's log could not be read: {why}"),
                None => "the id of its invocation is not known, so its log was not searched".into(),
            };
            coloured(AnsiColor::Green, &shown(&format!("No failure since, for {since}; {seen}.")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::trace::story::{LoggedLine, Story};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1_789_400_000 + second)
    }

    fn trace(steps: Vec<(u64, What)>, end: End, invocations: Vec<Invocation>) -> Trace {
        let steps = steps.into_iter().map(|(second, what)| Step { at: at(second), what }).collect();
        let (key, target, first_failure) = ("k-1".into(), "arn:f".into(), Some(at(0)));
        let targets = std::collections::BTreeMap::new();
        Trace { story: Story { key, target, targets, first_failure, steps, end, copies: 0 }, invocations }
    }

    fn plain(trace: &Trace, now: u64) -> String {
        anstream::adapter::strip_str(&text(trace, at(now))).to_string()
    }

    fn failed(attempt: u64) -> What {
        What::Failed {
            attempt,
            request_id: Some(format!("r-{attempt}")),
            error_type: Some("TargetDown".into()),
        }
    }

    fn invoked(retry: u64) -> What {
        What::Invoked { retry, request_id: Some(format!("r-{retry}")), late_ms: Some(1_500) }
    }

    #[test]
    fn a_timeline_has_the_day_once_and_the_targets_lines_below_its_invocation() {
        let line = |line: &str| LoggedLine { at: at(4), line: line.into() };
        let invocation = Invocation {
            request_id: "r-1".into(),
            report: Report::Seen { at: at(5), status: None },
            lines: vec![line("START"), line("succeeded")],
        };
        let steps = vec![(0, failed(0)), (1, What::Waits { retry: 1, due: at(3) }), (4, invoked(1))];
        let trace =
            trace(steps, End::Invoked { request_id: Some("r-1".into()), at: at(4) }, vec![invocation]);
        let expected = "\
event   k-1
target  arn:f

2026-09-14 (UTC)
15:33:20.000  attempt 0 failed with TargetDown  r-0
15:33:21.000  waits 2s for retry 1, until 2026-09-14T15:33:23.000Z
15:33:24.000  retry 1 invoked, 1.5s after it was due  r-1
              | START
              | succeeded

No failure since, for 1m; the function's REPORT was seen at 2026-09-14T15:33:25.000Z.
";
        assert_eq!(plain(&trace, 64), expected);
    }

    #[test]
    fn nothing_logged_can_command_the_terminal() {
        let hostile = || HOSTILE.to_owned();
        let steps = [
            What::Failed { attempt: 0, request_id: Some(hostile()), error_type: Some(hostile()) },
            What::Invoked { retry: 1, request_id: Some(hostile()), late_ms: None },
            What::Kept { action: hostile(), problem: hostile(), remedy: Some(hostile()) },
            What::GivenUp { reason: hostile(), detail: Some(hostile()) },
        ];
        let invocation = Invocation {
            request_id: hostile(),
            report: Report::Seen { at: at(5), status: Some(hostile()) },
            lines: vec![LoggedLine { at: at(4), line: hostile() }],
        };
        let end = End::Invoked { request_id: Some(hostile()), at: at(4) };
        let mut trace = trace(steps.map(|what| (0, what)).into(), end, vec![invocation]);
        (trace.story.key, trace.story.target) = (hostile(), hostile());
        let text = text(&trace, at(64));
        assert!(text.contains("failed with a\\u{1b}]") && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn the_last_sentence_says_what_is_known_and_no_more() {
        let last = |end, invocations| {
            let text = plain(&trace(vec![(0, failed(0))], end, invocations), 10);
            text.lines().last().unwrap().to_owned()
        };
        let unread = Invocation {
            request_id: "r-1".into(),
            report: Report::Unread { why: "denied".into() },
            lines: Vec::new(),
        };
        let not_seen = Invocation { report: Report::NotSeen, ..unread.clone() };
        let timeout = Report::Seen { at: at(5), status: Some("timeout".into()) };
        let timeout = Invocation { report: timeout, ..unread.clone() };
        let invoked = || End::Invoked { request_id: Some("r-1".into()), at: at(0) };
        for (end, invocations, expected) in [
            (End::Waiting { due: at(70) }, vec![], "It waits. Its next retry is due in 1m."),
            (
                End::Waiting { due: at(0) },
                vec![],
                "Its next retry has been due for 10s. `comeback doctor` says whether retries run.",
            ),
            (End::Held, vec![], "Its function is paused. `comeback pause --list` says by whom and why."),
            (End::Kept, vec![], "It is kept, and the handler will try again."),
            (
                End::GivenUp,
                vec![],
                "It is over: the event is in the dead-letter queue, or was redriven from it since.",
            ),
            (
                invoked(),
                vec![unread],
                "No failure since, for 10s; the function's log could not be read: denied.",
            ),
            (invoked(), vec![not_seen], "No failure since, for 10s; the function's REPORT was not seen yet."),
            (
                invoked(),
                vec![timeout],
                "No failure since, for 10s; the function's REPORT was seen at 2026-09-14T15:33:25.000Z, with status timeout.",
            ),
            (
                invoked(),
                vec![],
                "No failure since, for 10s; the id of its invocation is not known, so its log was not searched.",
            ),
        ] {
            assert_eq!(last(end, invocations), expected);
        }
    }
}
