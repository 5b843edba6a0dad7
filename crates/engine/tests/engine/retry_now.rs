//! Tests how an operator's retry request affects decisions.

use std::time::Duration;

use comeback_engine::{
    Action, DueBy, Early, Jitter, Pauses, Policies, Policy, Record, RequestKind, Timestamp, decide,
};
use proptest::prelude::*;

use crate::support::{ORDERS, T0, after, body, enveloped, policy, received_again, replaced};

const HOUR: u64 = 3_600;

fn at(seconds: u64) -> Timestamp {
    after(T0, 1_000 * seconds)
}

/// A policy in which every backoff is 12 hours less 30 seconds.
fn waits() -> Policy {
    policy(|settings| settings.base_backoff = settings.max_backoff)
}

fn record() -> Record {
    Record { sent: at(0), first_receive: at(1), ..received_again(body("7")) }
}

/// A retry request made `second` seconds after [`T0`], with additional JSON members.
fn request(second: u64, more: &str) -> String {
    format!(r#"{{"target":"{ORDERS}","at":{},"within":300{more}}}"#, T0.as_secs() + second)
}

fn with(requests: &[String], pauses: &str) -> Pauses {
    let text = format!(r#"{{"v":1,"pauses":[{pauses}],"retries":[{}]}}"#, requests.join(","));
    Pauses::read(&text).expect("a document")
}

fn act<'a>(record: &'a Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> Action<'a> {
    decide(record, &Policies::from(policy.clone()), pauses, now)
}

/// Seconds from [`T0`] until the retry is due.
fn due(record: &Record, policy: &Policy, pauses: &Pauses, now: Timestamp) -> f64 {
    act(record, policy, pauses, now).due().expect("it is retried").since(T0).as_secs_f64()
}

const UNCHANGED: f64 = 43_171.0;

fn is_reached(record: &Record, policy: &Policy, requests: &[String], now: u64) -> bool {
    let due = due(record, policy, &with(requests, ""), at(now));
    assert!(due == UNCHANGED || (HOUR as f64..HOUR as f64 + 300.0).contains(&due), "due after {due} s");
    due != UNCHANGED
}

#[test]
fn a_request_moves_earlier_failures_into_its_time() {
    let (policy, record, requests) = (waits(), record(), [request(HOUR, "")]);
    assert!(is_reached(&record, &policy, &requests, HOUR + 30));
    for sent in [HOUR, HOUR + 20] {
        let later = Record { sent: at(sent), ..record.clone() };
        assert!(!is_reached(&later, &policy, &requests, HOUR + 30), "it failed after the fix");
    }
    let other = Record { body: replaced(&record.body, "function:orders", "function:payments"), ..record };
    let both = crate::support::policy(|settings| {
        settings.base_backoff = settings.max_backoff;
        settings.target_functions.push(ORDERS.replace("orders", "payments"));
    });
    assert!(!is_reached(&other, &both, &requests, HOUR + 30));
}

#[test]
fn events_come_back_at_their_own_moments() {
    let (policy, pauses) = (waits(), with(&[request(HOUR, "")], ""));
    let of = |n: u64| Record { message_id: format!("m-{n}"), ..record() };
    let mut dues: Vec<f64> = (0..1_000).map(|n| due(&of(n), &policy, &pauses, at(HOUR))).collect();
    let again: Vec<f64> = (0..1_000).map(|n| due(&of(n), &policy, &pauses, at(HOUR + 60))).collect();
    assert_eq!(dues, again, "each check draws the same moment");
    dues.sort_by(f64::total_cmp);
    for (share, due) in [(0.25, dues[250]), (0.5, dues[500]), (0.75, dues[750])] {
        let even = HOUR as f64 + 300.0 * share;
        assert!((due - even).abs() < 20.0, "{due} s, not {even} s");
    }
}

#[test]
fn operators_and_handler_compute_the_same_moments() {
    let policy = waits();
    let requested = with(&[request(HOUR, "")], "");
    let (from, until) = (T0.as_secs() + 40_000, T0.as_secs() + 50_000);
    let pause = format!(r#"{{"target":"*","from":{from},"until":{until},"spread":600}}"#);
    let paused = with(&[], &pause);
    for n in 0..100 {
        let record = Record { message_id: format!("m-{n}"), ..record() };
        let due = |pauses, now| act(&record, &policy, pauses, at(now)).due();
        let request = requested.requests().next().expect("it is one");
        assert_eq!(due(&requested, HOUR), Some(request.due_of(&record.message_id, 1)));
        let pause = paused.iter().next().expect("it is one");
        assert_eq!(due(&paused, 50_001), pause.returns_at(&record.message_id, 1));
    }
    let open = with(&[], &pause.replace(&format!(r#""until":{until}"#), r#""until":null"#));
    assert_eq!(open.iter().next().and_then(|pause| pause.returns_at("m-1", 1)), None);
}

#[test]
fn a_retry_that_comes_early_names_its_request() {
    let (policy, record) = (waits(), record());
    let pauses = with(&[request(HOUR, r#","by":"ops""#)], "");
    let early = |action: Action<'_>| match action {
        Action::Defer { early, .. } | Action::Reinvoke { early, .. } => early,
        other => panic!("{other:?}"),
    };
    let otherwise_due = at(1).saturating_add(Duration::from_secs(43_170));
    let expected = Early { otherwise_due, asked_at: at(HOUR), asked_by: Some("ops".into()) };
    for now in [HOUR, HOUR + 300] {
        assert_eq!(early(act(&record, &policy, &pauses, at(now))), Some(expected.clone()), "{now}");
    }
    assert_eq!(early(act(&record, &policy, &Pauses::default(), at(HOUR))), None);
}

#[test]
fn requested_waits_and_last_retries_stay() {
    let requests = [request(HOUR, "")];
    let asked = replaced(&replaced(&record().body, "Timeout", "RetryAfter"), "too slow", "12h");
    let asked = Record { body: asked, ..record() };
    let unmoved = |record: &Record, policy: &Policy| {
        let of = |pauses: &Pauses| due(record, policy, pauses, at(HOUR + 30));
        assert!(of(&Pauses::default()) > 40_000.0);
        of(&with(&requests, "")) == of(&Pauses::default())
    };
    assert!(unmoved(&asked, &waits()));
    let third = Record { body: body(&enveloped(2, "7")), ..record() };
    let of = |max_retries| {
        policy(|settings| {
            settings.base_backoff = settings.max_backoff;
            settings.max_retries = max_retries;
        })
    };
    assert!(unmoved(&third, &of(3)) && !unmoved(&third, &of(4)));
}

#[test]
fn a_request_may_name_errors() {
    let reached = |errors: &str| {
        is_reached(&record(), &waits(), &[request(HOUR, &format!(r#","errors":[{errors}]"#))], HOUR + 30)
    };
    assert!(reached("") && reached(r#""Time*""#) && reached(r#""Other","Timeout""#));
    assert!(!reached(r#""Other""#));
    let unknown = Record { body: replaced(&record().body, r#""errorType":"Timeout","#, ""), ..record() };
    let any = [request(HOUR, r#","errors":["*"]"#)];
    assert!(!is_reached(&unknown, &waits(), &any, HOUR + 30), "its error is not known");
}

#[test]
fn a_request_by_key_ends_a_requested_wait() {
    let asked = replaced(&replaced(&record().body, "Timeout", "RetryAfter"), "too slow", "12h");
    let asked = Record { body: asked, ..record() };
    let due_by = |more: &str, record: &Record, policy: &Policy| match act(
        record,
        policy,
        &with(&[request(HOUR, more)], ""),
        at(HOUR),
    ) {
        Action::Defer { due_by, .. } => due_by,
        other => panic!("{other:?}"),
    };
    let named = r#","keys":["r-2","r-1"]"#;
    for (more, expected) in [
        ("", DueBy::RetryAfter),
        (named, DueBy::RetryNow),
        (r#","keys":["r-2"]"#, DueBy::RetryAfter),
        (r#","keys":["r-1"],"errors":["Retry*"]"#, DueBy::RetryNow),
        (r#","keys":["r-1"],"errors":["Time*"]"#, DueBy::RetryAfter),
    ] {
        assert_eq!(due_by(more, &asked, &waits()), expected, "{more}");
    }
    assert_eq!(due_by(r#","keys":["r-2"]"#, &record(), &waits()), DueBy::Policy);
    let last = policy(|settings| (settings.max_retries, settings.base_backoff) = (1, settings.max_backoff));
    assert_eq!(due_by(named, &asked, &last), DueBy::RetryAfter, "its next retry is the last");
}

#[test]
fn a_request_lasts_until_every_message_is_checked() {
    // The handler reads a request up to 37.5 s after the request is made, and may hide a message just before that read.
    // A throttled receive and a refused call may follow. A held message is checked every 1,344 s.
    for (cap, checked) in [(43_170, 43_170), (HOUR, HOUR), (60, 1_344)] {
        let policy = policy(|settings| settings.max_backoff = cap);
        let pauses = with(&[request(HOUR, "")], "");
        let retry = pauses.requests().next().expect("it is one");
        let environments = policy.settings().maximum_concurrency;
        let ending = retry.clone().with_end(policy.backoff().cap(), environments);
        let millis = 1_000 * (300 + checked + 1_230 + 3_600) + 37_500;
        assert_eq!(ending.until, Some(after(at(HOUR), millis).rounded_up_to_secs()), "{cap}");
    }
    let until = T0.as_secs() + 2 * HOUR;
    let reached = |more: &str, now| is_reached(&record(), &waits(), &[request(HOUR, more)], now);
    let until = format!(r#","until":{until}"#);
    assert!(reached(&until, 2 * HOUR) && !reached(&until, 2 * HOUR + 1));
}

#[test]
fn a_request_reaches_copies_by_their_first_sending() {
    let (policy, requests) = (waits(), [request(HOUR, "")]);
    let moved = |failed: u64| {
        let mut copy = Record { message_id: "m-9".into(), sent: at(HOUR + 60), ..record() };
        let [sent, first_receive] = [failed, failed + 1].map(|second| at(second).as_millis());
        let attribute = format!(
            r#"{{"message_id":"m-1","sent":{sent},"first_receive":{first_receive},"receives":1,"moves":1}}"#
        );
        copy.restore(&attribute).expect("it is well-formed");
        copy
    };
    let of = |record: &Record| due(record, &policy, &with(&requests, ""), at(HOUR + 90));
    assert_eq!(of(&moved(0)), of(&record()), "at the moment of its original");
    assert!(of(&moved(HOUR + 10)) > 43_000.0, "it failed after the fix");
}

#[test]
fn a_deferral_names_the_rule_of_its_due_time() {
    let policy = policy(|settings| {
        settings.base_backoff = settings.max_backoff;
        settings.max_age = 14 * 24 * HOUR;
    });
    let by = |record: &Record, pauses: &Pauses| match act(record, &policy, pauses, at(51_000)) {
        Action::Defer { due_by, .. } => due_by,
        other => panic!("{other:?}"),
    };
    let (none, requests) = (Pauses::default(), with(&[request(50_900, "")], ""));
    let over = |until: u64| {
        let (from, until) = (T0.as_secs(), T0.as_secs() + until);
        with(&[], &format!(r#"{{"target":"*","from":{from},"until":{until},"spread":90000}}"#))
    };
    let late = Record { first_receive: at(10_000), ..record() };
    let asked = replaced(&replaced(&record().body, "Timeout", "RetryAfter"), "too slow", "72000");
    let asked = Record { body: asked, ..record() };
    assert_eq!((by(&late, &none), by(&asked, &none)), (DueBy::Policy, DueBy::RetryAfter));
    assert_eq!((by(&record(), &over(50_000)), by(&late, &over(50_000))), (DueBy::Pause, DueBy::Policy));
    assert_eq!(by(&asked, &over(51_000)), DueBy::RetryAfter, "it ended before the moment that was asked for");
    let soon = with(&[request(50_999, "")], "");
    assert_eq!((by(&late, &soon), by(&asked, &soon)), (DueBy::RetryNow, DueBy::RetryAfter));
    assert!(matches!(act(&late, &policy, &requests, at(51_300)), Action::Reinvoke { .. }));
}

#[test]
fn pauses_come_first() {
    let (policy, record, requests) = (waits(), record(), [request(HOUR, "")]);
    let t0 = T0.as_secs();
    let pause = |from: u64, until: &str, spread: u64| {
        format!(r#"{{"target":"*","from":{},"until":{until},"spread":{spread}}}"#, t0 + from)
    };
    let open = with(&requests, &pause(HOUR, "null", 0));
    assert!(matches!(act(&record, &policy, &open, at(HOUR + 400)), Action::Hold { .. }));
    // If the request moves a retry into a pause that is over, the retry becomes due after the pause.
    let until = HOUR + 600;
    let closed = with(&requests, &pause(HOUR, &(t0 + until).to_string(), 0));
    assert!((due(&record, &policy, &closed, at(until + 60)) - until as f64).abs() < 1.0);
    // A retry that the pause itself has moved keeps its due time.
    let closed = pause(43_000, &(t0 + 45_000).to_string(), 20_000);
    let request = [request(46_000, "")];
    let of = |requests: &[String]| due(&record, &policy, &with(requests, &closed), at(46_000));
    assert_eq!(of(&request), of(&[]));
    assert!(of(&request) > 46_300.0, "the pause's spread is long: {}", of(&request));
}

#[test]
fn unreadable_requests_harm_nothing() {
    let t0 = T0.as_secs();
    let garbled = [
        "7".to_owned(),
        r#"{"target":"*"}"#.into(),
        request(HOUR, "").replace("300", "39601"),
        request(HOUR, "").replace(ORDERS, "orders"),
        request(HOUR, r#","errors":"Timeout""#),
    ];
    let good = request(HOUR, "");
    let all: Vec<String> = garbled.iter().cloned().chain([good]).collect();
    let pauses = with(&all, &format!(r#"{{"target":"*","from":{t0},"until":null,"spread":0}}"#));
    let unreadable = |hours| pauses.unreadable_requests(at(hours * HOUR)).count();
    assert_eq!((pauses.requests_to(RequestKind::Retry).count(), unreadable(1)), (1, garbled.len()));
    assert_eq!(unreadable(27), 2, "those without a readable moment");
    assert_eq!(pauses.iter().count(), 1);
    let odd = Pauses::read(r#"{"v":1,"pauses":[],"retries":"soon"}"#).expect("the pauses are readable");
    assert_eq!((odd.requests_to(RequestKind::Retry).count(), odd.unreadable_requests(at(0)).count()), (0, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A request never delays a retry, and never moves one to a time before the request.
    #[test]
    fn a_request_makes_no_retry_later(
        requests in proptest::collection::vec((0..60_000u64, 0..=39_600u64), 0..4),
        pauses in proptest::collection::vec((0..60_000u64, 1..20_000u64, 0..40_000u64), 0..3),
        jitter in proptest::sample::select(Jitter::ALL.to_vec()),
        n in 1..40u64,
        id in "[a-z0-9]{1,8}",
        first in 0..5_000u64,
        now in 0..90_000u64,
    ) {
        let policy = policy(|settings| {
            (settings.jitter, settings.max_age) = (jitter, 14 * 24 * HOUR);
        });
        let t0 = T0.as_secs();
        let (first_request, count) = (requests.iter().map(|(at, _)| *at).min(), requests.len());
        let requests: Vec<String> = requests
            .iter()
            .map(|(at, within)| format!(r#"{{"target":"*","at":{},"within":{within}}}"#, t0 + at))
            .collect();
        let pauses: Vec<String> = pauses
            .iter()
            .map(|(from, length, spread)| {
                let (from, until) = (t0 + from, t0 + from + length);
                format!(r#"{{"target":"*","from":{from},"until":{until},"spread":{spread}}}"#)
            })
            .collect();
        let text = body(&enveloped(n, "7"));
        let record = Record { message_id: id, first_receive: at(first), ..received_again(text) };
        let of = |requests: &[String]| {
            act(&record, &policy, &with(requests, &pauses.join(",")), at(now)).due()
        };
        let (without, with) = (of(&[]), of(&requests));
        prop_assert!(with <= without, "{:?} after {} requests, {:?} without", with, count, without);
        if with != without {
            prop_assert!(with >= first_request.map(at));
        }
    }
}
