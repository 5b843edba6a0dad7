use serde_json::{Value, json};

use super::*;

/// A line of the event k-1, whose first attempt was r-0, at that second.
fn line(second: u64, retry: u64, more: Value) -> HandlerLine {
    let mut line = json!({
        "timestamp": Timestamp::from_secs(second).to_string(), "key": "k-1", "target": "arn:f", "retry": retry,
        "request_id": format!("r-{}", retry - 1),
    });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    HandlerLine::read(&line.to_string()).unwrap()
}

fn defers(second: u64, retry: u64, due: u64) -> HandlerLine {
    let due = Timestamp::from_secs(due).to_string();
    line(second, retry, json!({"action": "defer", "due": due, "error_type": "TargetDown"}))
}

fn invokes(second: u64, retry: u64, due: u64) -> HandlerLine {
    let (due, id) = (Timestamp::from_secs(due).to_string(), format!("r-{retry}"));
    line(
        second,
        retry,
        json!({"action": "reinvoke", "due": due, "invoke_request_id": id, "error_type": "TargetDown"}),
    )
}

fn gives_up(second: u64, retry: u64) -> HandlerLine {
    line(second, retry, json!({"action": "dead_letter", "reason": "max_retries", "detail": "2 retries made"}))
}

fn story(lines: Vec<HandlerLine>) -> Story {
    Story::of(lines).unwrap()
}

/// The names of the steps.
fn steps(story: &Story) -> Vec<String> {
    let name = |step: &Step| serde_json::to_value(&step.what).unwrap()["what"].as_str().unwrap().to_owned();
    story.steps.iter().map(name).collect()
}

#[test]
fn an_event_fails_waits_and_is_invoked() {
    let story = story(vec![invokes(13, 1, 12), defers(10, 1, 12), defers(20, 2, 30)]);
    assert_eq!(steps(&story), ["failed", "waits", "invoked", "failed", "waits"]);
    assert_eq!(story.end, End::Waiting { due: Timestamp::from_secs(30) });
    assert_eq!(story.request_ids().collect::<Vec<_>>(), ["r-0", "r-1"]);
    let What::Failed { attempt, error_type, .. } = &story.steps[3].what else { panic!("{story:?}") };
    assert_eq!((*attempt, error_type.as_deref()), (1, Some("TargetDown")));
    let What::Invoked { late_ms, .. } = story.steps[2].what else { panic!("{story:?}") };
    assert_eq!(late_ms, Some(1_000));
    assert_eq!(story.copies, 0);
}

/// All that is known after it: no line came.
#[test]
fn after_an_invocation_nothing_is_claimed() {
    let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12)]);
    assert_eq!(story.end, End::Invoked { request_id: Some("r-1".into()), at: Timestamp::from_secs(13) });
}

#[test]
fn a_message_that_comes_back_early_waits_once() {
    let story = story(vec![defers(10, 1, 51), defers(20, 1, 50), defers(30, 1, 50), invokes(50, 1, 50)]);
    assert_eq!(steps(&story), ["failed", "waits", "invoked"]);
    assert_eq!(story.steps[1].what, What::Waits { retry: 1, due: Timestamp::from_secs(50) });
}

/// It was moved while it waited, which has no line of its own.
#[test]
fn an_invocation_alone_tells_the_failure_before_it() {
    let story = story(vec![invokes(50, 3, 50)]);
    assert_eq!(steps(&story), ["failed", "invoked"]);
    assert!(matches!(story.steps[0].what, What::Failed { attempt: 2, .. }));
}

#[test]
fn a_pause_is_one_step_however_often_the_event_is_looked_at() {
    let hold = |second| line(second, 1, json!({"action": "hold"}));
    let held = story(vec![defers(10, 1, 12), hold(12), hold(1_356), hold(2_700)]);
    assert_eq!(steps(&held), ["failed", "waits", "held"]);
    assert_eq!(held.steps[2].what, What::Held { retry: 1, last: Timestamp::from_secs(2_700) });
    assert_eq!(held.end, End::Held);
}

#[test]
fn a_step_that_did_not_work_has_its_remedy_beside_it() {
    let refused = json!({"action": "reinvoke", "problem": "AccessDenied", "remedy": "allow it", "delay": 4});
    let kept = story(vec![defers(10, 1, 12), line(12, 1, refused)]);
    assert_eq!(steps(&kept), ["failed", "waits", "kept"]);
    assert_eq!(kept.end, End::Kept);
    // A dead-letter that could not be sent is no end.
    let unsent = json!({"action": "dead_letter", "reason": "max_retries", "problem": "AccessDenied"});
    assert_eq!(story(vec![line(12, 1, unsent)]).end, End::Kept);
}

#[test]
fn a_dead_letter_is_the_end_until_it_is_redriven() {
    let end = story(vec![defers(10, 2, 12), gives_up(12, 3)]);
    assert_eq!(end.end, End::GivenUp);
    let anew = story(vec![defers(10, 2, 12), gives_up(12, 3), defers(90, 1, 91), invokes(91, 1, 91)]);
    assert_eq!(steps(&anew), ["failed", "waits", "failed", "given_up", "redriven", "waits", "invoked"]);
}

#[test]
fn two_failures_of_one_attempt_are_copies() {
    let other = line(
        25,
        2,
        json!({"action": "defer", "due": Timestamp::from_secs(40).to_string(), "request_id": "r-9"}),
    );
    let story = story(vec![defers(10, 1, 12), defers(20, 2, 30), other]);
    assert_eq!(story.copies, 1);
}
