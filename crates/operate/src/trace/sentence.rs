//! Describes each step of an event in words.

use comeback_engine::{Cause, DueBy, Early, LoggedEvent, Timestamp, What};

use crate::durations::short;
use crate::text;
use crate::text::{Text, Tone};
use crate::trace::story::{StepKind, StoryStep, cause};

/// Describes a step in words, without its time.
pub fn sentence(step: &StoryStep) -> Text {
    let bad = |text: String| Text::toned(Tone::Bad, text);
    let id = step.request_id().map(|id| format!("  {id}")).unwrap_or_default();
    let LoggedEvent { retry, policy, .. } = &step.event;
    let under = policy_of("under", policy.as_deref());
    let what = match &step.happened {
        StepKind::Failed => return bad(failed(step)).and(id),
        StepKind::Redriven => return "redriven; its retries start over".into(),
        StepKind::Logged(what) => what,
    };
    if let Some(failure) = what.failure() {
        let remedy = failure.remedy.as_ref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
        return bad(format!("kept: {}: {}{remedy}", kept_because(cause(what)), failure.cause));
    }
    match what {
        What::Defer { due, due_by, .. } => {
            let wait = short(due.since(step.at).as_secs_f64());
            let by = match due_by {
                DueBy::Pause => ", after a pause".into(),
                DueBy::RetryAfter => ", as its function asked (RetryAfter)".into(),
                DueBy::RetryNow => ", by `comeback retry`".into(),
                DueBy::Policy => policy_of("by", policy.as_deref()),
            };
            text![format!("waits {wait} for retry {retry}, until "), *due, by]
        }
        What::Hold { .. } => {
            let held = format!("retry {retry} is due but held: the function is paused (last checked ");
            text![held, step.last, ")"]
        }
        What::Reinvoke { due, early, .. } => {
            let early = early.as_ref();
            let late = late(step, *due, early);
            let early = early.filter(|early| early.otherwise_due > step.at);
            let early = early.map(|early| before_its_time(early, step.at)).unwrap_or_default();
            format!("retry {retry} invoked{early}{late}{under}{id}").into()
        }
        What::DeadLetter { reason, .. } => bad(format!("dead-lettered, {reason}")).and(under),
        What::Keep { .. } => "kept".into(),
    }
}

fn failed(step: &StoryStep) -> String {
    let LoggedEvent { error_type, retry_after_ignored, .. } = &step.event;
    let error = error_type.as_deref().unwrap_or("an unknown error");
    let ignored = retry_after_ignored.as_ref().map(|it| format!(", whose wait was ignored: {it}"));
    format!("attempt {} failed with {error}{}", step.attempt(), ignored.unwrap_or_default())
}

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

/// Names the pattern whose policy applies, for example `, by the policy of orders-*`. Empty for the stack's policy.
fn policy_of(preposition: &str, policy: Option<&str>) -> String {
    policy.map(|policy| format!(", {preposition} the policy of {policy}")).unwrap_or_default()
}

/// Says how late an invocation was, for example `, 20s after it was due at 10:28:00`, or nothing if it was on time.
fn late(step: &StoryStep, due: Timestamp, early: Option<&Early>) -> String {
    let late = step.late(due, early);
    if late.as_millis() < 1_000 {
        return String::new();
    }
    let due = step.at.before(late).to_string();
    format!(", {} after it was due at {}", short(late.as_secs_f64()), due.get(11..19).unwrap_or(&due))
}

/// Describes the request that brought a retry forward, for example " by `comeback retry` of 10:28:00 (ops), 7h before
/// its time".
fn before_its_time(early: &Early, at: Timestamp) -> String {
    let sooner = short(early.otherwise_due.since(at).as_secs_f64());
    let by = early.asked_by.as_ref().map(|by| format!(" ({by})")).unwrap_or_default();
    let asked_at = early.asked_at.to_string();
    let asked_at = asked_at.get(11..19).unwrap_or(&asked_at);
    format!(" by `comeback retry` of {asked_at}{by}, {sooner} before its time")
}

#[cfg(test)]
mod tests {
    use comeback_engine::LogLine;
    use serde_json::{Value, json};

    use super::*;
    use crate::log::test_line;
    use crate::trace::tests::at;

    fn step(second: u64, mut fields: Value) -> StoryStep {
        fields["timestamp"] = json!(at(second));
        let LogLine { timestamp, event, what, .. } = test_line(fields);
        let happened = StepKind::Logged(what.into_owned());
        StoryStep { at: timestamp, last: timestamp, happened, event: event.unwrap() }
    }

    #[test]
    fn wait_names_what_set_its_end() {
        for (due_by, expected) in [
            ("policy", ", by the policy of orders-*"),
            ("pause", ", after a pause"),
            ("retry_after", ", as its function asked (RetryAfter)"),
            ("retry_now", ", by `comeback retry`"),
        ] {
            let wait =
                json!({"action": "defer", "due": at(3), "due_by": due_by, "delay": 2, "policy": "orders-*"});
            let said = sentence(&step(1, wait)).to_string();
            assert_eq!(said, format!("waits 2s for retry 1, until 2026-09-14T15:33:23.000Z{expected}"));
        }
    }

    #[test]
    fn a_retry_that_came_early_says_why() {
        let invoked = json!({
            "action": "reinvoke", "retry": 3, "due": at(0), "otherwise_due": at(25_380), "asked_at": at(0),
            "asked_by": "ops",
        });
        let said = "retry 3 invoked by `comeback retry` of 15:33:20 (ops), 7h before its time";
        assert_eq!(sentence(&step(180, invoked.clone())).to_string(), said);
        let late = "retry 3 invoked, 20s after it was due at 22:36:20";
        assert_eq!(sentence(&step(25_400, invoked)).to_string(), late);
    }

    #[test]
    fn a_dead_letter_names_the_policy_of_its_function() {
        for (policy, expected) in [(Some("orders-*"), ", under the policy of orders-*"), (None, "")] {
            let dead = json!({"action": "dead_letter", "reason": "max_age", "detail": "7200 s passed", "policy": policy});
            let said = sentence(&step(1, dead));
            assert_eq!(said.to_string(), format!("dead-lettered, max_age: 7200 s passed{expected}"));
            assert_eq!(said.tone(), Tone::Bad);
        }
    }
}
