use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::requests::{LONGEST_WITHIN, MOST_KEYS, Request, RequestKind};

pub(crate) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
pub(crate) const PAYMENTS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payments:live";
const BASE: u64 = 1_700_000_000;

pub(crate) const fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(BASE + second)
}

pub(crate) fn pause(target: &str, from: u64, until: Option<u64>) -> Pause {
    Pause {
        target: target.parse().expect("a target"),
        from: at(from),
        until: until.map(at),
        spread: Duration::from_secs(1_800),
        by: None,
        why: None,
    }
}

/// Generates pauses within the same minute, so that they often overlap.
fn any_pause() -> impl Strategy<Value = Pause> {
    let words = || prop::option::of("[ -~é]{0,12}");
    let times = (0..40u64, prop::option::of(0..20u64), 0..=LONGEST_SPREAD.as_secs());
    (select(vec!["*", ORDERS, PAYMENTS]), times, words(), words()).prop_map(
        |(target, (from, length, spread), by, why)| Pause {
            spread: Duration::from_secs(spread),
            by,
            why,
            ..pause(target, from, length.map(|length| from + length))
        },
    )
}

fn any_pauses() -> impl Strategy<Value = Pauses> {
    prop::collection::vec(any_pause(), 0..12).prop_map(|all| pauses(&all))
}

fn moments(pauses: &Pauses, function_arn: &str) -> Vec<bool> {
    let is_paused = |second| pauses.of_function(function_arn).any(|pause| pause.is_active(at(second)));
    (0..80).map(is_paused).collect()
}

#[test]
fn a_pause_includes_its_start_but_not_its_end() {
    let one = pause("*", 10, Some(20));
    assert_eq!([9, 10, 19, 20].map(|second| one.is_active(at(second))), [false, true, true, false]);
    assert_eq!([9, 10, 19, 20].map(|second| one.is_over(at(second))), [false, false, false, true]);
    let open = pause("*", 10, None);
    assert!(open.is_active(Timestamp::from_secs(u64::MAX)) && !open.is_active(at(9)));
}

#[test]
fn a_target_covers_every_qualifier_unless_it_names_one() {
    let target = |text: &str| text.parse::<PauseTarget>().expect("a target");
    let latest = format!("{ORDERS}:$LATEST");
    assert!(target(ORDERS).covers(&latest) && target(ORDERS).covers(ORDERS) && target("*").covers(&latest));
    assert!(!target(PAYMENTS).covers("arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST"));
    assert!(target(PAYMENTS).covers(PAYMENTS) && !target(ORDERS).covers(PAYMENTS));
    assert!(target(&ORDERS.replace("orders", "or*")).covers(&latest));
    for text in ["*", ORDERS, PAYMENTS] {
        assert_eq!(target(text).to_string(), text);
    }
    let refused = "orders".parse::<PauseTarget>().unwrap_err().to_string();
    assert!(refused.starts_with("is not a function ARN ("), "{refused}");
}

const WHOLE: &str = r#"{"v":1,"pauses":[{"target":"*","from":1700000000,"until":1700003600,"spread":0},{"target":"arn:aws:lambda:eu-west-1:123456789012:function:orders","from":1700000001,"until":null,"spread":1800,"by":"ops","why":"a \"bad\" deploy"},{"target":"arn:aws:lambda:eu-west-1:123456789012:function:payments:live","from":1700000002,"until":null,"spread":60}]}"#;

fn refused(text: &str) -> String {
    Pauses::read(text).unwrap_err().to_string()
}

fn with(from: &str, to: &str) -> String {
    let text = r#"{"v":1,"pauses":[{"target":"*","from":10,"until":20,"spread":5}]}"#;
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

#[test]
fn format_of_2026_11_22_is_read_and_written() {
    let pauses = Pauses::read(WHOLE).unwrap();
    assert_eq!(pauses.write(), WHOLE);
    let [all, orders, payments] = [0, 1, 2].map(|index| pauses.iter().nth(index).unwrap().clone());
    assert_eq!((all.target, all.from, all.until), (PauseTarget::All, at(0), Some(at(3_600))));
    assert_eq!((all.spread, all.by), (Duration::ZERO, None));
    assert_eq!((orders.until, orders.by.as_deref()), (None, Some("ops")));
    assert_eq!(orders.why.as_deref(), Some("a \"bad\" deploy"));
    assert_eq!((payments.target.to_string().as_str(), payments.spread.as_secs()), (PAYMENTS, 60));
}

#[test]
fn unknown_members_change_no_pause() {
    let text = with(r#""spread":5"#, r#""spread":5,"until_deploy":[1],"note":{"a":"}"}"#);
    let added = text.replace(r#"{"v":1,"#, r#"{"then":null,"v":1,"#);
    let pauses = |text: &str| Pauses::read(text).unwrap().iter().cloned().collect::<Vec<_>>();
    assert_eq!(pauses(&added), pauses(&with("5", "5")));
    assert_eq!(Pauses::read(r#"{"v":1,"pauses":[]}"#), Ok(Pauses::default()));
}

#[test]
fn malformed_text_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "not a JSON object"),
        ("none", "not a JSON object"),
        (r#"{"v":1}"#, "missing field `pauses` at line 1 column 7"),
        (r#"{"pauses":[]}"#, "missing field `v` at line 1 column 13"),
        (r#"{"v":2,"pauses":7}"#, "v is 2, but this version reads only 1"),
        (r#"{"v":1,"pauses":[7]}"#, "pause 1: not a JSON object"),
        (r#"{"v":1,"v":1,"pauses":[]}"#, "duplicate field `v` at line 1 column 10"),
        (&with(r#""target":"*","#, ""), "pause 1: missing field `target` at line 1 column 33"),
        (&with(r#","until":20"#, ""), "pause 1: missing field `until` at line 1 column 35"),
        (&with(r#","spread":5"#, ""), "pause 1: missing field `spread` at line 1 column 35"),
        (&with("10", "-1"), "pause 1: wrong type, expected u64 at line 1 column 23"),
        (&with("10", r#""ten""#), "pause 1: wrong type, expected u64 at line 1 column 26"),
        (&with("20", "9"), "pause 1: it ends before it begins"),
        (
            &with("20", "1700000000000"),
            "pause 1: from and until must be seconds since the epoch, before the year 10000",
        ),
        (
            &with("10", "1700000000000"),
            "pause 1: from and until must be seconds since the epoch, before the year 10000",
        ),
        (&with(":5", ":1209601"), "pause 1: spread must be seconds, at most 1209600 (14 days)"),
        (
            &with(r#""*""#, r#""orders""#),
            "pause 1: target is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or \
             without :QUALIFIER); it must be a function or *",
        ),
    ] {
        assert_eq!(refused(text), format!("the pauses are unreadable: {expected}"), "{text}");
    }
    assert!(!refused(&with(r#""*""#, r#""hunter2""#)).contains("hunter2"), "it is logged");
}

fn any_request() -> impl Strategy<Value = Request> {
    let words = || prop::option::of("[ -~é]{0,12}");
    let names = |most| prop::collection::vec("[ -~é]{1,40}", 0..=most);
    let until = prop::option::of(0..200_000u64);
    (select(vec!["*", ORDERS, PAYMENTS]), 0..40u64, names(3), names(MOST_KEYS), words(), words(), until)
        .prop_map(|(target, from, errors, keys, by, why, until)| Request {
            kind: RequestKind::Cancel,
            target: target.parse().expect("a target"),
            at: at(from),
            errors,
            keys,
            by,
            why,
            until: until.map(at),
            withdrawn: at(from).as_secs().is_multiple_of(3),
            millis: from % 3 * 499,
            within: Duration::ZERO,
        })
}

proptest! {
    #[test]
    fn written_documents_are_read_back(
        pauses in any_pauses(),
        retry in any_request(),
        within in 0..=LONGEST_WITHIN.as_secs(),
        cancel in any_request(),
    ) {
        let read = Pauses::read(&pauses.write());
        prop_assert_eq!(read.as_ref(), Ok(&pauses));
        let retry = Request { kind: RequestKind::Retry, within: Duration::from_secs(within), ..retry };
        let all = pauses.with_request(&cancel).with_request(&retry);
        let read = Pauses::read(&all.write());
        prop_assert_eq!(read.as_ref(), Ok(&all));
        prop_assert_eq!(all.requests().collect::<Vec<_>>(), [&retry, &cancel]);
        prop_assert_eq!(all.requests_to(RequestKind::Retry).collect::<Vec<_>>(), [&retry]);
        prop_assert_eq!(all.requests_to(RequestKind::Cancel).collect::<Vec<_>>(), [&cancel]);
    }

    #[test]
    fn no_text_makes_it_panic(text in r#"[\x00-\x7fé]{0,60}"#, cut in 0..WHOLE.len()) {
        let _ = Pauses::read(&text);
        prop_assert!(Pauses::read(&WHOLE[..cut]).is_err());
    }
}

fn pauses(all: &[Pause]) -> Pauses {
    Pauses::default().with(all.to_vec())
}

#[test]
fn tidying_drops_pauses_ended_14_days_ago() {
    let old = pauses(&[pause(ORDERS, 0, Some(10)), pause("*", 0, None)]);
    assert_eq!(old.tidied(at(10 + 14 * 86_400)), old);
    assert_eq!(old.tidied(at(11 + 14 * 86_400)), pauses(&[pause("*", 0, None)]));
}

#[test]
fn tidying_joins_adjoining_ended_pauses() {
    let spread = |secs, pause: Pause| Pause { spread: Duration::from_secs(secs), ..pause };
    let of = |until| spread(1, pause(ORDERS, 0, Some(until)));
    let next = spread(2, pause(ORDERS, 10, Some(20)));
    let joined = |first: Pause| pauses(&[first, next.clone()]).tidied(at(50));
    assert_eq!(joined(of(10)), pauses(&[spread(2, pause(ORDERS, 0, Some(20)))]));
    assert_eq!(joined(of(30)), pauses(&[of(30)]));
    assert_eq!(joined(of(9)), pauses(&[of(9), next.clone()]), "a second lies between");
    let open = pauses(&[of(10), pause(ORDERS, 10, None)]);
    assert_eq!(open.tidied(at(50)), open, "an open one stays as it is");
    let others = pauses(&[of(10), pause("*", 10, Some(20))]);
    assert_eq!(others.tidied(at(50)), others, "so are other targets");
}

fn with_reason(length: usize) -> Pause {
    Pause { why: Some("x".repeat(length)), ..pause("*", 0, None) }
}

#[test]
fn ended_pauses_leave_a_document_that_is_too_long() {
    let rest = pauses(&[with_reason(0)]).write().len();
    let full = [with_reason(4_096 - rest)];
    assert_eq!(pauses(&full).fitted(at(0)), Ok((pauses(&full), vec![])));
    let over = pauses(&[with_reason(4_097 - rest)]).fitted(at(0)).unwrap_err();
    assert_eq!(over.to_string(), "the pauses and requests would take 4097 bytes; the parameter holds 4096");
    let ended = [pause(ORDERS, 0, Some(10)), full[0].clone()];
    assert_eq!(pauses(&ended).fitted(at(10)), Ok((pauses(&full), vec![ended[0].clone()])));
    let unknown = format!(r#"{{"v":1,"pauses":[],"mail":"{}"}}"#, "x".repeat(6_000));
    assert_eq!(Pauses::read(&unknown).unwrap().fitted(at(0)).map_err(|it| it.bytes), Err(6_029));
}

#[test]
fn pauses_that_ended_first_leave_first() {
    let ended: Vec<Pause> = (0..200).map(|n| pause(PAYMENTS, n * 6_000, Some(n * 6_000 + 3_600))).collect();
    let now = at(200 * 6_000);
    let open =
        Pause { by: Some("ops".into()), why: Some("a bad deploy".into()), ..pause(ORDERS, 1_200_000, None) };
    let all = ended.iter().chain([&open]).cloned();
    let (document, forgotten) = Pauses::default().with(all).fitted(now).unwrap();
    let left: Vec<Pause> = document.iter().cloned().collect();
    assert_eq!(left.last(), Some(&open));
    assert_eq!([&forgotten[..], &left[..left.len() - 1]].concat(), ended, "in order");
    assert!((20..40).contains(&left.len()) && document.write().len() <= LONGEST_PAUSES, "{}", left.len());
    let request = |n: u64| Request {
        kind: RequestKind::Retry,
        target: format!("{ORDERS}-{n}").parse().unwrap(),
        at: now,
        within: Duration::from_secs(600),
        errors: Vec::new(),
        keys: Vec::new(),
        by: Some("ops".into()),
        why: Some("deploy 4712 fixes it".into()),
        until: Some(now.saturating_add(Duration::from_secs(10_000))),
        withdrawn: false,
        millis: 0,
    };
    let mut asked = document;
    for n in 0..7 {
        asked = asked.with_request(&request(n)).fitted(now).unwrap().0;
    }
    assert_eq!((asked.requests().count(), asked.iter().last()), (7, Some(&open)));
    assert!(asked.iter().count() > 1, "there is room for history beside them");
}

proptest! {
    #[test]
    fn tidying_changes_no_paused_second(pauses in any_pauses(), now in 0..70u64) {
        let tidied = pauses.tidied(at(now));
        for function in [ORDERS, PAYMENTS] {
            prop_assert_eq!(moments(&tidied, function), moments(&pauses, function));
        }
        prop_assert!(tidied.iter().count() <= pauses.iter().count());
        prop_assert!(tidied.write().len() <= pauses.write().len());
        for closed in tidied.iter().filter(|pause| pause.is_over(at(now))) {
            prop_assert_eq!((closed.by.is_some(), closed.why.is_some()), (false, false));
        }
        let ends = |pauses: &Pauses| pauses.iter().map(|pause| pause.until).max();
        prop_assert_eq!(ends(&tidied), ends(&pauses));
        prop_assert_eq!(tidied.tidied(at(now)), tidied, "tidying twice changes nothing");
    }
}

#[test]
fn an_edit_keeps_unknown_members() {
    let read = r#""retries":[{"target":"*","at":1700000000,"within":300,"later":[1]},{"odd":1,"at":1700000000}],"cancels":[{"target":"*","at":1700000000,"later":{"a":1}}],"mail":{"to": 1E400}}"#;
    let document = Pauses::read(&format!(r#"{{"v":1,"pauses":[],{read}"#)).unwrap();
    let (opened, _) = document.with([pause(ORDERS, 0, None)]).fitted(at(0)).unwrap();
    let text = opened.write();
    assert!(text.ends_with(read), "{text}");
    assert_eq!(Pauses::read(&text).as_ref(), Ok(&opened));
    let withdrawn = opened.withdrawn(|_| true).write();
    assert!(withdrawn.contains(r#""later":{"a":1},"withdrawn":true}],"#), "{withdrawn}");
    assert_eq!(Pauses::read(&withdrawn).unwrap().requests_to(RequestKind::Cancel).count(), 1);
}

/// A request is dropped at its end. A request without an end, or in a later version's format, is dropped after 25
/// hours.
#[test]
fn requests_leave_the_document_at_their_end() {
    let document =
        |entries: &str| Pauses::read(&format!(r#"{{"v":1,"pauses":[],"retries":[{entries}]}}"#)).unwrap();
    let left = |entries: &str, second| document(entries).fitted(at(second)).unwrap().0.requests.len();
    let older = r#"{"target":"*","at":1700000000,"within":300}"#;
    let until = r#"{"target":"*","at":1700000000,"within":300,"until":1700008768}"#;
    let later_version = r#"{"target":{"tag":"team"},"at":1700000000,"until":1700000001}"#;
    for (entry, end) in [(older, 90_000), (until, 8_768), (later_version, 90_000)] {
        assert_eq!([end, end + 1].map(|second| left(entry, second)), [1, 0], "{entry}");
    }
    let cancel = r#"{"v":1,"pauses":[],"cancels":[{"target":"*","at":1700000000,"until":1700000010},7]}"#;
    let cancels = |second| Pauses::read(cancel).unwrap().fitted(at(second)).unwrap().0.requests.len();
    assert_eq!([0, 10, 11].map(cancels), [1, 1, 0]);
    for entry in ["7", r#"{"odd":1}"#, r#"{"target":"*","at":"soon"}"#, r#"{"at":1700000000000}"#] {
        assert_eq!(left(entry, 0), 0, "it has no readable moment: {entry}");
    }
}

#[test]
fn duplicate_requests_harm_no_pause() {
    let pause = r#"{"target":"*","from":1700000000,"until":null,"spread":0}"#;
    let request = r#"{"target":"*","at":1700000000,"within":300}"#;
    for retries in [format!(r#""retries":[{request}],"retries":[{request}]"#), r#""retries":null"#.into()] {
        let document = Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}],{retries}}}"#)).unwrap();
        assert_eq!(
            (document.iter().count(), document.unreadable_requests(at(0)).count()),
            (1, 0),
            "{retries}"
        );
    }
}

#[test]
fn withdrawing_a_request_leaves_everything_else() {
    let entry = |target: &str, more: &str| {
        format!(r#"{{"target":"{target}","at":1700000000,"within":300,"later":[1]{more}}}"#)
    };
    let document = |retries: &[String]| {
        let retries = retries.join(",");
        format!(
            r#"{{"v":1,"pauses":[{{"target":"*","from":1700000000,"until":null,"spread":0}}],"retries":[{retries}],"mail":1}}"#
        )
    };
    let (odd, all, withdrawn) = (r#"{"odd":1}"#.to_owned(), entry("*", ""), r#","withdrawn":true"#);
    let read = Pauses::read(&document(&[odd.clone(), all.clone(), entry(ORDERS, "")])).unwrap();
    let of_orders = |request: &Request| request.target != PauseTarget::All;
    let left = read.withdrawn(of_orders);
    assert_eq!(left, Pauses::read(&document(&[odd, all.clone(), entry(ORDERS, withdrawn)])).unwrap());
    assert_eq!(left.withdrawn(of_orders), left);
    let in_force: Vec<_> = left.requests().map(|retry| retry.is_in_force(at(0))).collect();
    assert_eq!((in_force, left.fitted(at(60)).unwrap().0.requests().count()), (vec![true, false], 2));
    let cancels = Pauses::read(&document(&[all]).replace("retries", "cancels")).unwrap();
    assert_eq!(cancels.withdrawn(|request| request.kind == RequestKind::Retry), cancels);
    assert!(
        cancels.withdrawn(|request| request.kind == RequestKind::Cancel).requests().all(|it| it.withdrawn)
    );
}

#[test]
fn withdrawn_requests_make_room_for_a_pause() {
    let keys: Vec<String> = (0..MOST_KEYS).map(|n| format!("{n:036}")).collect();
    let request = Request {
        kind: RequestKind::Cancel,
        target: PauseTarget::All,
        at: at(0),
        within: Duration::ZERO,
        errors: Vec::new(),
        keys,
        by: None,
        why: None,
        until: None,
        withdrawn: false,
        millis: 0,
    };
    let cancel = |n: u64| Request { at: at(n), ..request.clone() };
    let full = (0..4).fold(Pauses::default(), |pauses, n| pauses.with_request(&cancel(n)));
    let pause = Pause {
        target: PauseTarget::All,
        from: at(9),
        until: None,
        spread: Duration::ZERO,
        by: Some("ops".into()),
        why: Some("x".repeat(900)),
    };
    assert!(full.fitted(at(9)).is_ok() && full.with([pause.clone()]).fitted(at(9)).is_err());
    let withdrawn = full.withdrawn(|cancel| cancel.at == at(2));
    let (fitted, forgotten) = withdrawn.with([pause.clone()]).fitted(at(9)).unwrap();
    assert_eq!((fitted.requests().count(), fitted.iter().next(), forgotten), (3, Some(&pause), Vec::new()));
    assert_eq!(withdrawn.fitted(at(9)).unwrap().0.requests().count(), 4, "they stay while there is room");
}

#[test]
fn request_format_of_2026_11_28_is_read_and_written() {
    let cancel = Request {
        kind: RequestKind::Cancel,
        target: PauseTarget::All,
        at: Timestamp::from_millis(at(0).as_millis() + 1),
        within: Duration::ZERO,
        errors: vec!["Time*".into()],
        keys: vec!["k-1".into()],
        by: None,
        why: Some("fixed".into()),
        until: None,
        withdrawn: false,
        millis: 0,
    };
    let retry = Request { kind: RequestKind::Retry, within: Duration::from_secs(300), ..cancel.clone() };
    let both = Pauses::default().with_request(&cancel).with_request(&retry);
    let text = r#"{"v":1,"pauses":[],"retries":[{"target":"*","at":1700000001,"within":300,"errors":["Time*"],"keys":["k-1"],"why":"fixed"}],"cancels":[{"target":"*","at":1700000001,"errors":["Time*"],"keys":["k-1"],"why":"fixed"}]}"#;
    assert_eq!(both.write(), text, "their moment is rounded up, so that they reach what has just failed");
    assert_eq!(Pauses::read(text), Ok(both));
}
