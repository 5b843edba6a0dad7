//! The page for one event: its life as a chart and a table, what happens next, and the handler's log lines about it.

use std::rc::Rc;

use askama::Template;
use axum::response::Response;
use comeback_engine::{Timestamp, What};
use comeback_operate::durations;
use comeback_operate::function::command_name;
use comeback_operate::trace::Trace;
use comeback_operate::trace::logs::{InvocationReport, LoggedInvocation};
use comeback_operate::trace::story::{LoggedLine, StepKind, Story, StoryEnd, StoryStep};
use comeback_operate::{Text, TimelineEntry};
use comeback_rehearsal::figure::{Chart, WIDE};
use comeback_rehearsal::life::{self, Mark};

use crate::access::token;
use crate::dead::OfEvent;
use crate::page::{Frame, Problem, Visit, ok};
use crate::response::{encoded, go_to};

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage {
    frame: Frame,
    trace: Result<Rc<Trace>, Text>,
    /// Path of the same page with the function's own log lines; `None` if the page already shows these lines.
    with_logs: Option<String>,
    /// The event's dead-letter, if the event was dead-lettered and the newest scan found it.
    dead: Option<OfEvent>,
    once: String,
}

pub(super) async fn event(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query();
    let Some(id) = fields.get("id") else { return Ok(go_to("/waiting")) };
    let logs = fields.get("logs").is_some();
    let read = visit.console.trace(id, logs).await;
    let with_logs = (!logs).then(|| format!("/event?id={}&logs=yes", encoded(id)));
    let trace = read.value.map_err(|failure| failure.text());
    let known = trace.as_ref().ok();
    let dead = known.filter(|trace| is_dead(trace));
    ok(&EventPage {
        frame: visit.frame(known.map_or_else(|| "Event".into(), |trace| trace.heading()), None).of(read.at),
        dead: dead.and_then(|trace| OfEvent::in_scan(&visit.console, &trace.story.key)),
        once: token(),
        trace,
        with_logs,
    })
}

fn is_dead(trace: &Trace) -> bool {
    matches!(trace.story.end, StoryEnd::DeadLettered)
}

fn handler_lines(trace: &Trace) -> Vec<TimelineEntry> {
    let moment =
        |line: &LoggedLine| TimelineEntry { at: line.at, text: line.line.clone().into(), below: Vec::new() };
    trace.story.lines.iter().map(moment).collect()
}

/// Returns the event's steps, with the function's log lines if `with_lines` is true.
fn timeline(trace: &Trace, with_lines: bool) -> Vec<TimelineEntry> {
    let mut moments = trace.timeline();
    moments.iter_mut().filter(|_| !with_lines).for_each(|moment| moment.below.clear());
    moments
}

/// Returns true if a timeline includes log lines from the function.
fn is_logged(timeline: &[TimelineEntry]) -> bool {
    timeline.iter().any(|moment| !moment.below.is_empty())
}

/// The last failed attempt, if the trace contains its invocation.
fn last_failure(trace: &Trace) -> Option<&LoggedInvocation> {
    trace.invocation(trace.story.last_failure()?.request_id())
}

/// Paths of the plans to retry and to cancel a waiting event. The first is `None` if a pause holds the event.
fn actions(trace: &Trace) -> Option<(Option<String>, String)> {
    let Story { key, target, end, .. } = &trace.story;
    if !end.is_waiting() {
        return None;
    }
    let name = command_name(target, &trace.deployment.handler_arn);
    let fields = format!("plan=yes&function={}&key={}", encoded(&name), encoded(key));
    let retry = (!trace.is_held()).then(|| format!("/retry?{fields}"));
    Some((retry, format!("/cancel?{fields}")))
}

fn chart(trace: &Trace) -> Option<Chart> {
    let Trace { story, now, .. } = trace;
    let first = story.first_failure?;
    let moment = |at: Timestamp, attempt, mark| life::Moment { since: at.since(first), attempt, mark };
    let steps = story.steps.iter().map(|step| moment(step.at, row(step), mark(step)));
    let mut moments: Vec<_> = steps.collect();
    let last = story.steps.last().map(row).unwrap_or_default();
    moments.extend(rest(trace).map(|(at, mark)| moment(at, last, mark)));
    let waits = story.steps.iter().filter(|step| is_wait(step)).count();
    let is_future = story.end.due().is_some_and(|due| due > *now);
    Some(Chart {
        id: "life",
        heading: "Timeline, logarithmic".into(),
        description: format!(
            "From its first failure, {} waits in {}; the table has each step.",
            waits,
            durations::text(moments.last().map(|moment| moment.since).unwrap_or_default())
        ),
        keys: life::keys(),
        picture: life::draw(WIDE, &moments, is_future.then(|| (now.since(first), "now"))),
        table: None,
    })
}

fn is_wait(step: &StoryStep) -> bool {
    matches!(step.happened, StepKind::Logged(What::Defer { failure: None, .. }))
}

/// The row of the chart that shows a step. Each attempt has a row, named by its number. What the handler does after a
/// failed attempt is in the row of the next one.
fn row(step: &StoryStep) -> u64 {
    match step.happened {
        StepKind::Failed | StepKind::Redriven => step.attempt(),
        StepKind::Logged(_) => step.event.retry,
    }
}

fn mark(step: &StoryStep) -> Mark {
    match &step.happened {
        StepKind::Failed => Mark::Failed,
        StepKind::Logged(What::Defer { failure: None, .. } | What::Hold { failure: None, .. }) => Mark::Hid,
        StepKind::Logged(What::DeadLetter { .. }) => Mark::DeadLettered,
        StepKind::Redriven | StepKind::Logged(_) => Mark::Other,
    }
}

/// Returns the point after the last step in the chart: the end of the wait, or the outcome of the last invocation.
fn rest(trace: &Trace) -> Option<(Timestamp, Mark)> {
    let now = trace.now;
    match &trace.story.end {
        StoryEnd::Waiting { due } => Some(((*due).max(now), Mark::Other)),
        StoryEnd::Held | StoryEnd::Kept => Some((now, Mark::Other)),
        StoryEnd::DeadLettered | StoryEnd::Invoked { .. } => {
            let report = trace.last_report()?;
            let InvocationReport::Seen { at, .. } = report else { return None };
            Some((*at, if report.is_success() { Mark::Succeeded } else { Mark::Failed }))
        }
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::LogLine;
    use serde_json::json;

    use super::*;

    /// The report of a simulation shows it there too. In the row of the failed attempt, it would hide that failure.
    #[test]
    fn dead_letter_stands_in_the_row_of_the_attempt_that_was_not_made() {
        let line = |second, retry: u64, mut what: serde_json::Value| {
            let event = json!({
                "timestamp": Timestamp::from_secs(second), "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1",
                "target": "arn:orders", "retry": retry, "request_id": format!("r-{retry}"),
                "first_failure": Timestamp::from_secs(10),
            });
            what.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
            LogLine::read(&what.to_string()).unwrap()
        };
        let due = Timestamp::from_secs(12);
        let lines = vec![
            line(10, 1, json!({"action": "defer", "due": due, "due_by": "policy", "delay": 2})),
            line(12, 1, json!({"action": "reinvoke", "due": due})),
            line(13, 2, json!({"action": "dead_letter", "reason": "max_retries", "detail": "it has 1"})),
        ];
        let story = Story::of(lines).unwrap();
        let marks: Vec<_> = story.steps.iter().map(|step| (row(step), mark(step))).collect();
        let (hid, invoked) = ((1, Mark::Hid), (1, Mark::Other));
        assert_eq!(marks, [(0, Mark::Failed), hid, invoked, (1, Mark::Failed), (2, Mark::DeadLettered)]);
    }
}
