use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use serde_json::json;

use super::letters::{self, NOW, ORDERS};
use crate::dead::queue::Received;
use crate::dead::{Filter, PayloadTest, ReasonName, RetriesTest};

fn received(put: &letters::Put) -> Received {
    let record = Record {
        message_id: "m".into(),
        receipt_handle: "h".into(),
        body: put.body.clone(),
        receive_count: 1,
        sent: Timestamp::from_secs(1_000_000_000),
        first_receive: Timestamp::from_secs(1_000_000_000),
        moved: None,
        trace_header: None,
    };
    Received { record, attributes: Vec::new() }
}

/// Whether a filter takes a letter of seven retries that timed out, an hour after it was given up.
fn takes(filter: Filter) -> bool {
    let now = Timestamp::from_secs(1_000_003_600);
    filter.takes(&received(&letters::event("Timeout")).letter(), now)
}

fn only(set: impl FnOnce(&mut Filter)) -> Filter {
    let mut filter = Filter::default();
    set(&mut filter);
    filter
}

type Set<'s> = &'s dyn Fn(&mut Filter);

#[test]
fn all_that_is_set_must_hold() {
    let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
    let reason = |name: &str| Some(name.parse::<ReasonName>().unwrap());
    let target = |name: &str| Some(name.parse().unwrap());
    let tests: [(Set<'_>, bool); 15] = [
        (&|_| (), true),
        (&|it| it.reason = reason("max_age"), true),
        (&|it| it.reason = reason("max_retries"), false),
        (&|it| it.target = target("orders"), true),
        (&|it| it.target = target(ORDERS), true),
        (&|it| it.target = target("orders:live"), false),
        (&|it| it.error = Some("Time*".into()), true),
        (&|it| it.error = Some("time*".into()), false),
        (&|it| it.older = Some(Duration::from_secs(3_599)), true),
        (&|it| it.older = hours(1), false),
        (&|it| it.newer = hours(1), false),
        (&|it| it.newer = hours(2), true),
        (&|it| it.key = Some("another".into()), false),
        (&|it| it.retries = Some("7".parse().unwrap()), true),
        (&|it| (it.reason, it.target) = (reason("max_age"), target("payments")), false),
    ];
    for (set, expected) in tests {
        let filter = only(|filter| set(filter));
        assert_eq!(takes(filter.clone()), expected, "{filter:?}");
    }
}

#[test]
fn a_key_is_one_events() {
    let letter = letters::event("Timeout");
    let filter = only(|filter| filter.key = Some(letter.key.clone()));
    assert!(filter.takes(&received(&letter).letter(), NOW));
}

#[test]
fn what_a_letter_does_not_tell_matches_no_test() {
    let unknown = letters::unknown();
    let record = letters::record("Timeout");
    let takes = |filter: Filter, letter| filter.takes(&received(letter).letter(), NOW);
    assert!(takes(Filter::default(), &unknown), "without any test, everything is taken");
    assert!(!takes(only(|it| it.older = Some(Duration::ZERO)), &unknown), "even its age is no letter's");
    assert!(takes(only(|it| it.reason = Some("max_receive_count".parse().unwrap())), &record));
    assert!(takes(only(|it| it.retries = Some("0".parse().unwrap())), &record));
    assert!(!takes(only(|it| it.error = Some("*".into())), &letters::malformed()));
}

#[test]
fn a_payload_is_looked_into_by_pointer() {
    let payload = json!({"id": 42, "name": "42", "list": [true, null], "a/b": "x", "k=v": 1});
    let body = letters::event("E").body;
    let start = body.find(r#","payload":"#).unwrap();
    let body = format!(r#"{},"payload":{payload}}}"#, &body[..start]);
    let letter = received(&letters::Put { body, ..letters::event("E") });
    for (test, expected) in [
        ("/id=42", true),
        ("/id=43", false),
        ("/name=42", true),
        (r#"/name="42""#, true),
        ("/list/0=true", true),
        ("/list/1=null", true),
        ("/list/2=null", false),
        ("/list=[true,null]", true),
        ("/a~1b=x", true),
        ("/nowhere=", false),
    ] {
        let filter = only(|filter| filter.payload = vec![test.parse().unwrap()]);
        assert_eq!(filter.takes(&letter.letter(), NOW), expected, "{test}");
    }
    let both = ["/id=42", "/name=x"].map(|test| test.parse().unwrap()).to_vec();
    assert!(!only(|filter| filter.payload = both).takes(&letter.letter(), NOW));
}

#[test]
fn retries_are_compared() {
    let sevens = [(">6", true), (">7", false), (">=7", true), ("<7", false), ("<= 7", true), ("=7", true)];
    for (test, expected) in sevens {
        let test: RetriesTest = test.parse().unwrap();
        assert_eq!(takes(only(|filter| filter.retries = Some(test))), expected, "{test:?}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let refused = "max_age2".parse::<ReasonName>().unwrap_err().to_string();
    let expected = "\"max_age2\" is no reason; the reasons are max_retries, max_age, non_retryable_error, \
        target_not_found, target_refused, target_not_allowed, payload_too_large, malformed_record, \
        malformed_envelope, max_receive_count";
    assert_eq!(refused, expected);
    for text in ["", ">", "=>5", "five", "-1", "5.0"] {
        let refused = text.parse::<RetriesTest>().unwrap_err().to_string();
        let expected = format!("{text:?} is no number of retries; give '>5', '>=5', '<5', '<=5' or '5'");
        assert_eq!(refused, expected);
    }
    for text in ["", "/id", "id=42"] {
        let refused = text.parse::<PayloadTest>().unwrap_err().to_string();
        let expected = format!("{text:?} is no JSON pointer and value; give them as in '/customer/id=42'");
        assert_eq!(refused, expected);
    }
}
