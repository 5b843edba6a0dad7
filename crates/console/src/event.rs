//! The page of one event: its life as a chart and a table, what happens next, and the handler's log lines about it.

use askama::Template;
use axum::Router;
use axum::response::Response;
use comeback_engine::{Timestamp, WaitsFor, What};
use comeback_operate::durations::{self, short};
use comeback_operate::function::{command_name, shown_name};
use comeback_operate::trace::Trace;
use comeback_operate::trace::logs::Report;
use comeback_operate::trace::story::{End, Happened, LoggedLine, Step, Story};
use comeback_operate::{Fact, Moment, Text, text};
use comeback_rehearsal::figure::{Chart, WIDE};
use comeback_rehearsal::life::{self, Mark};

use crate::access::token;
use crate::console::Console;
use crate::dead::OfEvent;
use crate::page::{Frame, Problem, Visit, ok, page};
use crate::response::{encoded, go_to};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/event", page(event))
}

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage {
    frame: Frame,
    /// The event's life, or the reason why the event was not found.
    life: Result<Life, Text>,
    /// The event's dead-letter; `None` unless the event is dead-lettered and the newest scan has it.
    dead: Option<OfEvent>,
    once: String,
}

struct Life {
    key: String,
    /// The event's function, first failure, last error, and outcome or next step.
    facts: Vec<Fact>,
    /// Paths of the plans to retry the event now and to cancel it; `None` unless the event is waiting. An event that a
    /// pause holds can only be cancelled.
    actions: Option<(Option<String>, String)>,
    is_dead: bool,
    chart: Option<Chart>,
    /// The function's log lines from the event's last failed attempt; `None` if the attempt's request id is unknown.
    last_failure: Option<LastFailure>,
    timeline: Vec<Moment>,
    /// Remarks about what the timeline cannot show.
    remarks: Vec<Text>,
    /// Path of this page with the function's own log lines; `None` if the page already shows these lines.
    with_logs: Option<String>,
    /// The handler's log lines about the event.
    lines: Vec<Moment>,
}

/// The function's log lines from the event's last failed attempt.
struct LastFailure {
    what: Text,
    lines: Result<Vec<String>, Text>,
}

impl Life {
    /// Returns true if the timeline includes log lines of the function.
    fn is_logged(&self) -> bool {
        self.timeline.iter().any(|moment| !moment.below.is_empty())
    }
}

async fn event(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query();
    let Some(id) = fields.get("id") else { return Ok(go_to("/waiting")) };
    let logs = fields.get("logs").is_some();
    let read = visit.console.trace(id, logs).await;
    let with_logs = (!logs).then(|| format!("/event?id={}&logs=yes", encoded(id)));
    let (headline, life) = match &read.value {
        Ok(trace) => (headline(trace), Ok(life(trace, with_logs))),
        Err(failure) => ("Event".into(), Err(failure.text())),
    };
    let dead = life.as_ref().ok().filter(|life| life.is_dead);
    ok(&EventPage {
        frame: visit.frame(headline, None).of(read.at),
        dead: dead.and_then(|life| OfEvent::in_scan(&visit.console, &life.key)),
        once: token(),
        life,
    })
}

fn life(trace: &Trace, with_logs: Option<String>) -> Life {
    let story = &trace.story;
    let of_log =
        |line: &LoggedLine| Moment { at: line.at, text: line.line.clone().into(), below: Vec::new() };
    Life {
        key: story.key.clone(),
        facts: facts(trace),
        actions: actions(trace),
        is_dead: matches!(story.end, End::DeadLettered),
        chart: chart(trace),
        last_failure: last_failure(trace),
        timeline: timeline(trace, with_logs.is_none()),
        remarks: trace.copies().into_iter().chain(trace.unknown_pause()).collect(),
        with_logs,
        lines: story.lines.iter().map(of_log).collect(),
    }
}

/// Returns the event's steps, with the function's log lines if `with_lines` is true. Otherwise, the page shows the log
/// lines of the last failure separately.
fn timeline(trace: &Trace, with_lines: bool) -> Vec<Moment> {
    let mut moments = trace.timeline();
    moments.iter_mut().filter(|_| !with_lines).for_each(|moment| moment.below.clear());
    moments
}

/// The event's state in a few words, such as `Waiting: retry 5 in 1m 29s`.
fn headline(trace: &Trace) -> String {
    let retry = trace.story.steps.last().map(|step| step.event.retry).unwrap_or_default();
    match &trace.story.end {
        End::DeadLettered => "Dead-lettered".into(),
        End::Invoked { .. } if is_over(trace) => format!("Probably succeeded: retry {retry}"),
        End::Invoked { .. } => format!("Retry {retry} was invoked"),
        End::Waits(_) if trace.not_allowed.is_some() => "Not on the allow-list".into(),
        End::Waits(_) if is_held(trace) => format!("Held by a pause: retry {retry}"),
        End::Waits(WaitsFor::Due { due, .. }) if *due > trace.now => {
            format!("Waiting: retry {retry} in {}", short(due.since(trace.now).as_secs_f64().ceil()))
        }
        End::Waits(WaitsFor::Due { .. }) => format!("Due: retry {retry}"),
        End::Waits(_) => format!("Waiting: retry {retry}"),
    }
}

/// Returns true if a pause in force holds the event.
fn is_held(trace: &Trace) -> bool {
    let due = match &trace.story.end {
        End::Waits(WaitsFor::Due { due, .. }) => Some(*due),
        End::Waits(_) => None,
        End::DeadLettered | End::Invoked { .. } => return false,
    };
    trace.pause.is_some_and(|pause| pause.holds(due))
}

fn last_failure(trace: &Trace) -> Option<LastFailure> {
    let step = trace.story.steps.iter().rfind(|step| step.happened == Happened::Failed)?;
    let invocation = trace.invocation(step.request_id())?;
    let lines = match &invocation.report {
        Report::Unread { why } => Err(why.into()),
        _ => Ok(invocation.lines.iter().map(|logged| logged.line.clone()).collect()),
    };
    Some(LastFailure { what: last_error(step)?, lines })
}

fn facts(trace: &Trace) -> Vec<Fact> {
    let story = &trace.story;
    let error = story.steps.iter().rev().find_map(last_error);
    let end = if is_over(trace) { "Outcome" } else { "Next" };
    let facts = [
        ("Function", Some(trace.deployment.function(&story.target, shown_name(&story.target)))),
        ("First failure", story.first_failure.map(Text::from)),
        ("Error", error),
        (end, Some(trace.ending())),
    ];
    facts.into_iter().filter_map(|(title, text)| Some(Fact::new(title, vec![text?]))).collect()
}

fn actions(trace: &Trace) -> Option<(Option<String>, String)> {
    let Story { key, target, end: End::Waits(_), .. } = &trace.story else { return None };
    let name = command_name(target, &trace.deployment.handler_arn);
    let fields = format!("plan=yes&function={}&key={}", encoded(&name), encoded(key));
    let retry = (!is_held(trace)).then(|| format!("/retry?{fields}"));
    Some((retry, format!("/cancel?{fields}")))
}

/// The error of a failed attempt; `None` for any other step.
fn last_error(step: &Step) -> Option<Text> {
    let error = step.event.error_type.as_ref().filter(|_| step.happened == Happened::Failed)?;
    Some(text![format!("{error}, attempt {} at ", step.attempt()), step.at])
}

/// Returns true if the event was dead-lettered or has probably succeeded.
fn is_over(trace: &Trace) -> bool {
    match &trace.story.end {
        End::DeadLettered => true,
        End::Invoked { request_id, .. } => {
            trace.invocation(request_id.as_deref()).is_some_and(|invocation| invocation.report.is_success())
        }
        End::Waits(_) => false,
    }
}

fn chart(trace: &Trace) -> Option<Chart> {
    let Trace { story, now, .. } = trace;
    let first = story.first_failure?;
    let mut attempt = 0;
    let mut moments: Vec<_> = story
        .steps
        .iter()
        .map(|step| {
            let (own, mark) = mark(step);
            attempt = own.unwrap_or(attempt);
            life::Moment { since: step.at.since(first), attempt, mark }
        })
        .collect();
    let rest = rest(trace).map(|(at, mark)| life::Moment { since: at.since(first), attempt, mark });
    moments.extend(rest);
    let waits = story.steps.iter().filter(|step| is_wait(step)).count();
    let is_future = matches!(story.end, End::Waits(WaitsFor::Due { due, .. }) if due > *now);
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

fn is_wait(step: &Step) -> bool {
    matches!(step.happened, Happened::Logged(What::Defer { failure: None, .. }))
}

/// The number of the attempt that a step belongs to, and the step's mark in the chart.
fn mark(step: &Step) -> (Option<u64>, Mark) {
    let what = match &step.happened {
        Happened::Failed => return (Some(step.attempt()), Mark::Failed),
        Happened::Redriven => return (Some(0), Mark::Other),
        Happened::Logged(what) => what,
    };
    match what {
        What::Defer { failure: None, .. } | What::Hold { failure: None, .. } => {
            (Some(step.event.retry), Mark::Hid)
        }
        What::Reinvoke { .. } => (Some(step.event.retry), Mark::Other),
        What::DeadLetter { .. } => (None, Mark::DeadLettered),
        What::Defer { .. } | What::Hold { .. } | What::Keep { .. } => (None, Mark::Other),
    }
}

/// Returns the last point in the chart, after the last step: the end of the wait, or the outcome of the last
/// invocation. `None` if nothing follows the last step.
fn rest(trace: &Trace) -> Option<(Timestamp, Mark)> {
    let now = trace.now;
    match &trace.story.end {
        End::Waits(WaitsFor::Due { due, .. }) => Some(((*due).max(now), Mark::Other)),
        End::Waits(_) => Some((now, Mark::Other)),
        End::DeadLettered => None,
        End::Invoked { request_id, .. } => match &trace.invocation(request_id.as_deref())?.report {
            report @ Report::Seen { at, .. } if report.is_success() => Some((*at, Mark::Succeeded)),
            Report::Seen { at, .. } => Some((*at, Mark::Failed)),
            Report::NotSeen | Report::Unread { .. } => None,
        },
    }
}
