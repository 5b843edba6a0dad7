use std::time::Duration;

use comeback_engine::{BatchEvent, CallFailure, Reason, ReasonCode, Retry};
use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

fn policy() -> Policy {
    Policy::from_variables(|name| (name == "TARGET_FUNCTIONS").then(|| ORDERS.into())).unwrap()
}

fn stack() -> Metrics {
    Metrics::Stack { handler: "retries".into() }
}

fn target() -> Metrics {
    Metrics::Target { handler: "retries".into() }
}

fn ago(seconds: u64) -> Timestamp {
    Timestamp::from_secs(NOW.as_secs() - seconds)
}

/// A message of a function that first failed an hour ago, received again.
fn of(function_arn: &str, step: Step) -> Outcome<'static> {
    let retry = Retry {
        function_arn: function_arn.into(),
        number: 3,
        key: "k".into(),
        request_id: None,
        error_type: None,
        directive: None,
        first_failure: ago(3_600),
    };
    Outcome {
        message_id: "m",
        retry: Some(retry),
        step: Some(step),
        invoke_request_id: None,
        problem: None,
        hidden_for: None,
        moved: None,
        is_copy: false,
        trace: None,
        is_first_receive: false,
    }
}

fn retried(late: u64) -> Outcome<'static> {
    of(&format!("{ORDERS}:$LATEST"), Step::Reinvoke { due: ago(late) })
}

fn deferred() -> Outcome<'static> {
    of(ORDERS, Step::Defer { due: NOW, visibility_timeout: Duration::from_secs(1) })
}

fn dead(function_arn: &str, code: ReasonCode) -> Outcome<'static> {
    let reason = Reason { code, detail: "so it is".into() };
    of(function_arn, Step::DeadLetter { due: None, reason })
}

fn failed(outcome: Outcome<'static>) -> Outcome<'static> {
    Outcome { problem: Some(CallFailure { cause: "throttled".into(), remedy: None }), ..outcome }
}

fn lines(metrics: &Metrics, outcomes: Vec<Outcome<'_>>) -> Vec<Value> {
    let event = BatchEvent::default();
    let report = BatchReport { outcomes, ..BatchReport::new(&event) };
    let lines = metrics.lines(&policy(), &report, NOW);
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_is_one_line_of_the_stack() {
    let held = of(ORDERS, Step::Hold { due: NOW, visibility_timeout: Duration::from_secs(1_344) });
    let moved = Outcome { moved: Some(Duration::from_secs(900)), is_copy: true, ..deferred() };
    let first = Outcome { is_first_receive: true, ..deferred() };
    let outcomes = vec![
        first.clone(),
        first,
        deferred(),
        retried(2),
        retried(0),
        held,
        moved,
        failed(retried(9)),
        dead(ORDERS, ReasonCode::MaxAge),
    ];
    let expected = json!({
        "_aws": {
            "Timestamp": 1_700_000_000_000_u64,
            "CloudWatchMetrics": [{
                "Namespace": "Comeback",
                "Dimensions": [["Handler"]],
                "Metrics": [
                    {"Name": "DeadLetters", "Unit": "Count"},
                    {"Name": "Failures", "Unit": "Count"},
                    {"Name": "Held", "Unit": "Count"},
                    {"Name": "Moves", "Unit": "Count"},
                    {"Name": "Retries", "Unit": "Count"},
                    {"Name": "Stuck", "Unit": "Count"},
                    {"Name": "EventAge", "Unit": "Seconds"},
                    {"Name": "Lateness", "Unit": "Seconds"},
                ],
            }],
        },
        "level": "INFO", "timestamp": "2023-11-14T22:13:20.000Z", "Handler": "retries",
        "Failures": 2, "Retries": 2, "DeadLetters": 1, "Held": 1, "Stuck": 1, "Moves": 1,
        "Lateness": [2.0, 0.0], "EventAge": [3_600.0, 3_600.0, 3_600.0],
    });
    assert_eq!(lines(&stack(), outcomes), [expected]);
}

#[test]
fn each_target_has_a_line_and_each_reason_of_its_dead_letters() {
    let outcomes =
        vec![retried(1), dead(ORDERS, ReasonCode::MaxAge), deferred(), dead(ORDERS, ReasonCode::MaxRetries)];
    let lines = lines(&target(), outcomes);
    let members = |line: &Value| [&line["Target"], &line["Reason"], &line["DeadLetters"]].map(Clone::clone);
    assert_eq!(lines.len(), 3);
    assert_eq!(members(&lines[0]), [json!(ORDERS), Value::Null, Value::Null]);
    assert_eq!(members(&lines[1]), [json!(ORDERS), json!("max_age"), json!(1)]);
    assert_eq!(members(&lines[2]), [json!(ORDERS), json!("max_retries"), json!(1)]);
    let of_all = &lines[1]["_aws"]["CloudWatchMetrics"];
    assert_eq!(of_all[0]["Dimensions"], json!([["Handler"], ["Handler", "Target"]]));
    assert_eq!(of_all[1]["Dimensions"], json!([["Handler", "Reason"]]));
    assert_eq!(
        of_all[1]["Metrics"],
        json!([{"Name": "DeadLetters", "Unit": "Count"}]),
        "nothing else costs twice"
    );
    assert_eq!(lines[0]["_aws"]["CloudWatchMetrics"].as_array().unwrap().len(), 1);
}

#[test]
fn queue_content_makes_no_dimension_up() {
    let unknown = Outcome { retry: None, ..dead(ORDERS, ReasonCode::MalformedRecord) };
    let other = dead("arn:aws:lambda:eu-west-1:123456789012:function:payments", ReasonCode::TargetNotAllowed);
    for line in lines(&target(), vec![unknown, other]) {
        assert_eq!(line["Target"], Value::Null, "{line}");
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["Handler"]]));
    }
}

/// A qualifier of a million characters, and one of many, are of the same entry.
#[test]
fn a_target_is_its_entry_of_the_allow_list() {
    let outcomes = ["zzz1".to_owned(), "9".repeat(1 << 20)]
        .map(|qualifier| of(&format!("{ORDERS}:{qualifier}"), Step::Reinvoke { due: NOW }));
    let lines = lines(&target(), outcomes.into());
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["Target"], &lines[0]["Retries"]), (&json!(ORDERS), &json!(2)));
}

#[test]
fn a_claimed_first_failure_makes_no_age_over_14_days() {
    let mut outcome = retried(0);
    outcome.retry.as_mut().unwrap().first_failure = Timestamp::from_secs(0);
    assert_eq!(lines(&stack(), vec![outcome])[0]["EventAge"], json!([1_209_600.0]));
}

#[test]
fn nothing_that_counts_is_no_line() {
    assert!(lines(&stack(), vec![deferred(), deferred()]).is_empty());
    assert!(lines(&stack(), Vec::new()).is_empty());
    assert!(lines(&Metrics::Off, vec![retried(1)]).is_empty());
}

#[test]
fn a_dead_letter_that_could_not_be_sent_is_stuck_and_not_given_up() {
    let [line] = &lines(&target(), vec![failed(dead(ORDERS, ReasonCode::MaxAge))])[..] else {
        panic!("one line")
    };
    assert_eq!(
        (&line["Stuck"], &line["DeadLetters"], &line["Reason"]),
        (&json!(1), &Value::Null, &Value::Null)
    );
}

proptest! {
    /// CloudWatch would ignore the rest.
    #[test]
    fn no_value_is_lost_and_no_array_too_long(latenesses in prop::collection::vec(0u64..1_000, 0..350)) {
        let lines = lines(&stack(), latenesses.iter().map(|late| retried(*late)).collect());
        prop_assert_eq!(lines.len(), latenesses.len().div_ceil(100));
        let mut values = Vec::new();
        for line in &lines {
            let some = line["Lateness"].as_array().unwrap();
            prop_assert!((1..=100).contains(&some.len()) && line["EventAge"].as_array().unwrap().len() <= 100);
            values.extend(some.iter().map(|value| value.as_f64().unwrap() as u64));
        }
        let retries: u64 = lines.iter().filter_map(|line| line["Retries"].as_u64()).sum();
        prop_assert_eq!(retries as usize, latenesses.len());
        prop_assert_eq!(values, latenesses);
    }
}
