//! One event's timeline in words.

use std::time::Duration;

use anstyle::AnsiColor;
use comeback_engine::{Cause, DueBy, Timestamp};

use crate::operate::session::coloured;
use crate::operate::trace::ending::end;
use crate::operate::trace::logs::Trace;
use crate::operate::trace::story::{Early, Step, What};
use crate::text::durations::short;
use crate::text::terminal::shown;

/// Where the text of a line begins: after a clock time and two spaces.
const MARGIN: usize = 14;

/// The timeline of an event, with what is known of its end. `place` are the flags of commands that it suggests.
pub(super) fn text(trace: &Trace, now: Timestamp, place: &str) -> String {
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
            let logged =
                trace.invocation(request_id.as_deref()).into_iter().flat_map(|invocation| &invocation.lines);
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
            let late = late_ms
                .filter(|late| *late >= 1_000)
                .map(|late| late_by(Duration::from_millis(late), step.at));
            let late = late.unwrap_or_default();
            let early = early.as_ref().filter(|early| early.otherwise_due > step.at);
            let early = early.map(|early| before_its_time(early, step.at)).unwrap_or_default();
            format!("retry {retry} invoked{early}{late}{}", policy_of("under", policy)) + &id(request_id)
        }
        What::Kept { cause, problem, remedy } => {
            let remedy = remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
            red(format!("kept: {}: {problem}{remedy}", kept_because(*cause)))
        }
        What::DeadLettered { reason, detail, policy } => {
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
/// With the due time, which a pause may have moved since the last line that named it.
fn late_by(late: Duration, at: Timestamp) -> String {
    let due = at.before(late).to_string();
    format!(", {} after it was due at {}", short(late.as_secs_f64()), due.get(11..19).unwrap_or(&due))
}

fn before_its_time(early: &Early, at: Timestamp) -> String {
    let sooner = short(early.otherwise_due.since(at).as_secs_f64());
    let by = early.asked_by.as_ref().map(|by| format!(" ({})", shown(by))).unwrap_or_default();
    let asked_at = early.asked_at.to_string();
    let asked_at = asked_at.get(11..19).unwrap_or(&asked_at);
    format!(" by `comeback retry` of {asked_at}{by}, {sooner} before its time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::trace::logs::tests::{at, invoked, trace};
    use crate::operate::trace::logs::{Invocation, Report};
    use crate::operate::trace::story::{End, LoggedLine};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

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
15:33:24.000  retry 1 invoked, 1.5s after it was due at 15:33:22, under the policy of orders-*  r-1
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
        assert_eq!(sentence(&late), "retry 3 invoked, 20s after it was due at 22:36:20");
    }

    #[test]
    fn a_dead_letter_names_the_policy_of_its_function() {
        let detail = Some("7200 s passed".into());
        for (policy, expected) in [(Some("orders-*".into()), ", under the policy of orders-*"), (None, "")] {
            let what = What::DeadLettered { reason: "max_age".into(), detail: detail.clone(), policy };
            let said = sentence(&Step { at: at(1), what });
            let said = anstream::adapter::strip_str(&said).to_string();
            assert_eq!(said, format!("dead-lettered, max_age: 7200 s passed{expected}"));
        }
    }

    fn early(asked_by: &str) -> Early {
        Early { asked_at: at(0), asked_by: Some(asked_by.into()), otherwise_due: at(25_380) }
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
            What::DeadLettered { reason: hostile(), detail: Some(hostile()), policy: Some(hostile()) },
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
}
