use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::{BadPattern, Policy, RetryNow, Settings};

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
        concurrency: Concurrency::Untouched,
    }
}

/// Pauses of a few targets within a few seconds, so that they meet.
fn any_pause() -> impl Strategy<Value = Pause> {
    let concurrency = prop_oneof![
        Just(Concurrency::Untouched),
        Just(Concurrency::WasUnreserved),
        any::<u32>().prop_map(Concurrency::Was)
    ];
    let words = || prop::option::of("[ -~é]{0,12}");
    let times = (0..40u64, prop::option::of(0..20u64), 0..=LONGEST_SPREAD.as_secs());
    (select(vec!["*", ORDERS, PAYMENTS]), times, words(), words(), concurrency).prop_map(
        |(target, (from, length, spread), by, why, concurrency)| Pause {
            spread: Duration::from_secs(spread),
            by,
            why,
            concurrency,
            ..pause(target, from, length.map(|length| from + length))
        },
    )
}

fn any_pauses() -> impl Strategy<Value = Pauses> {
    prop::collection::vec(any_pause(), 0..12).prop_map(Pauses::of)
}

/// Whether a function is paused, second by second.
fn moments(pauses: &Pauses, function_arn: &str) -> Vec<bool> {
    let is_paused = |second| pauses.of_function(function_arn).any(|pause| pause.is_active(at(second)));
    (0..80).map(is_paused).collect()
}

#[test]
fn a_pause_is_from_its_start_until_its_end() {
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
    assert_eq!("orders".parse::<PauseTarget>(), Err(BadPattern::NotAFunctionArn));
}

const WHOLE: &str = r#"{"v":1,"pauses":[{"target":"*","from":1700000000,"until":1700003600,"spread":0},{"target":"arn:aws:lambda:eu-west-1:123456789012:function:orders","from":1700000001,"until":null,"spread":1800,"by":"ops","why":"a \"bad\" deploy","concurrency":null},{"target":"arn:aws:lambda:eu-west-1:123456789012:function:payments:live","from":1700000002,"until":null,"spread":60,"concurrency":7}]}"#;

fn refused(text: &str) -> String {
    Pauses::read(text).unwrap_err().to_string()
}

/// A document with one pause, of which a member is changed.
fn with(from: &str, to: &str) -> String {
    let text = r#"{"v":1,"pauses":[{"target":"*","from":10,"until":20,"spread":5}]}"#;
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

#[test]
fn each_member_is_read_and_written_as_it_stood_on_2026_11_22() {
    let pauses = Pauses::read(WHOLE).unwrap();
    assert_eq!(pauses.write(), WHOLE);
    let [all, orders, payments] = [0, 1, 2].map(|index| pauses.iter().nth(index).unwrap().clone());
    assert_eq!((all.target, all.from, all.until), (PauseTarget::All, at(0), Some(at(3_600))));
    assert_eq!((all.spread, all.by, all.concurrency), (Duration::ZERO, None, Concurrency::Untouched));
    assert_eq!((orders.until, orders.by.as_deref()), (None, Some("ops")));
    assert_eq!(
        (orders.why.as_deref(), orders.concurrency),
        (Some("a \"bad\" deploy"), Concurrency::WasUnreserved)
    );
    assert_eq!((payments.target.to_string().as_str(), payments.concurrency), (PAYMENTS, Concurrency::Was(7)));
}

#[test]
fn what_later_versions_add_changes_no_pause() {
    let text = with(r#""spread":5"#, r#""spread":5,"until_deploy":[1],"note":{"a":"}"}"#);
    let added = text.replace(r#"{"v":1,"#, r#"{"then":null,"v":1,"#);
    let pauses = |text: &str| Pauses::read(text).unwrap().iter().cloned().collect::<Vec<_>>();
    assert_eq!(pauses(&added), pauses(&with("5", "5")));
    assert_eq!(Pauses::read(r#"{"v":1,"pauses":[]}"#), Ok(Pauses::default()));
}

#[test]
fn anything_else_is_garbled_and_says_where() {
    for (text, expected) in [
        ("", "not a JSON object"),
        ("none", "not a JSON object"),
        (r#"{"v":1}"#, "missing field `pauses` at line 1 column 7"),
        (r#"{"pauses":[]}"#, "missing field `v` at line 1 column 13"),
        (r#"{"v":2,"pauses":7}"#, "v is 2, and this version reads 1 only"),
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
        (r#"{"v":1,"pauses":[],"past":7}"#, "wrong type, expected a map at line 1 column 27"),
        (
            r#"{"v":1,"pauses":[],"past":{"":{"*":[[9,18446744073709551615,0]]}}}"#,
            "pause 1: from and until must be seconds since the epoch, before the year 10000",
        ),
        (&with(":5", ":1209601"), "pause 1: spread must be seconds, at most 1209600 (14 days)"),
        (
            &with(r#""*""#, r#""orders""#),
            "pause 1: target is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER), and is not *",
        ),
        (&with(":5", r#":5,"concurrency":-1"#), "pause 1: wrong type, expected u32 at line 1 column 62"),
        (&with(":5", r#":5,"concurrency":"7""#), "pause 1: wrong type, expected u32 at line 1 column 63"),
    ] {
        assert_eq!(refused(text), format!("the pauses are unreadable: {expected}"), "{text}");
    }
    assert!(!refused(&with(r#""*""#, r#""hunter2""#)).contains("hunter2"), "it is logged");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(pauses in any_pauses()) {
        prop_assert_eq!(Pauses::read(&pauses.write_short()), Ok(pauses.clone()));
        prop_assert_eq!(Pauses::read(&pauses.write()), Ok(pauses));
    }

    #[test]
    fn no_text_makes_it_panic(text in r#"[\x00-\x7fé]{0,60}"#, cut in 0..WHOLE.len()) {
        let _ = Pauses::read(&text);
        prop_assert!(Pauses::read(&WHOLE[..cut]).is_err());
    }
}

fn pauses(all: &[Pause]) -> Pauses {
    Pauses::of(all.to_vec())
}

fn orders() -> PauseTarget {
    ORDERS.parse().expect("a target")
}

fn hard(from: u64) -> Pause {
    let (by, why) = (Some("ops".to_owned()), Some("a bad deploy".to_owned()));
    Pause { by, why, concurrency: Concurrency::Was(7), ..pause(ORDERS, from, None) }
}

#[test]
fn a_target_is_paused_once_and_again_when_that_is_over() {
    let open = Pauses::default().open(hard(10), at(10)).unwrap();
    let error = open.open(pause(ORDERS, 20, None), at(20)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{ORDERS} has been paused since 2023-11-14T22:13:30.000Z by ops (a bad deploy): change that pause with pause \
             --change, or end it with resume"
        )
    );
    let both = open.open(pause("*", 20, Some(30)), at(20)).unwrap();
    assert_eq!(both.iter().count(), 2, "another target may be");
    assert!(both.open(pause("*", 29, None), at(29)).is_err());
    assert!(both.open(pause("*", 30, None), at(30)).is_ok(), "its planned end has come");
}

#[test]
fn a_pause_that_makes_no_sense_is_refused() {
    let open = |pause: Pause| Pauses::default().open(pause, at(10)).unwrap_err().to_string();
    assert_eq!(
        open(pause(ORDERS, 10, Some(10))),
        "the pause would end at 2023-11-14T22:13:30.000Z, which is not after its start at \
         2023-11-14T22:13:30.000Z: give a later end"
    );
    assert_eq!(
        open(Pause { until: Some(at(20)), ..hard(10) }),
        "a hard pause has no planned end: open it without one, and end it with resume"
    );
    let fortnight = 10 + 14 * 86_400;
    assert!(Pauses::default().open(pause(ORDERS, 10, Some(fortnight)), at(10)).is_ok());
    assert_eq!(
        open(pause(ORDERS, 10, Some(fortnight + 1))),
        "the pause would end at 2023-11-28T22:13:31.000Z, more than 14 days after 2023-11-14T22:13:30.000Z, and SQS \
         keeps no event for longer: give an earlier end"
    );
    let spread = Duration::from_secs(1_209_601);
    assert_eq!(
        open(Pause { spread, ..pause(ORDERS, 10, None) }),
        "the spread is 1209601 s; it must be at most 1209600 s (14 days)"
    );
}

#[test]
fn an_open_pause_is_changed_and_keeps_the_rest() {
    let (until, spread) = (Some(at(90)), Some(Duration::from_secs(7)));
    let open = pauses(&[pause(ORDERS, 10, Some(50)), pause("*", 5, None)]);
    let change = |change, now| open.change(&orders(), &change, now);
    let (changed, now) = change(PauseChange { until, spread, why: Some("late".into()) }, at(30)).unwrap();
    let expected = Pause { spread: spread.unwrap(), why: Some("late".into()), ..pause(ORDERS, 10, Some(90)) };
    assert_eq!((changed, now), (pauses(&[pause("*", 5, None), expected.clone()]), expected));
    let (same, _) = change(PauseChange::default(), at(30)).unwrap();
    assert_eq!(same, open);
    let refused = |it| change(it, at(30)).unwrap_err();
    let of = |until| PauseChange { until: Some(at(until)), ..PauseChange::default() };
    assert_eq!(refused(of(30)), EditError::EndsTooSoon { from: at(30), until: at(30) });
    assert!(matches!(refused(of(31 + 14 * 86_400)), EditError::TooLong { .. }));
    let within_the_second = Timestamp::from_millis(at(30).as_millis() + 1);
    assert!(change(of(31 + 14 * 86_400), within_the_second).is_ok(), "14 days from now, rounded up");
    assert!(matches!(change(of(90), at(50)), Err(EditError::NotPaused(_))), "its planned end has come");
    let hard = pauses(&[hard(10)]).change(&orders(), &of(90), at(30));
    assert_eq!(hard, Err(EditError::HardWithEnd));
}

#[test]
fn a_closed_pause_keeps_what_counts_and_gives_back_what_it_was() {
    let spread = Duration::from_secs(60);
    let open = pauses(&[hard(10), pause("*", 5, None)]);
    let end = Timestamp::from_millis(at(20).as_millis() + 1);
    let (closed, was) = open.close(&orders(), spread, end).unwrap();
    assert_eq!(was, [hard(10)]);
    let expected = Pause { spread, ..pause(ORDERS, 10, Some(21)) };
    assert_eq!(closed, pauses(&[pause("*", 5, None), expected]), "rounded up, and the other goes on");
    let again = closed.close(&orders(), spread, at(22)).unwrap_err();
    assert_eq!(again.to_string(), format!("{ORDERS} is not paused: pauses are listed by pause --list"));
    assert_eq!(open.close(&orders(), LONGEST_SPREAD * 2, end), Err(EditError::SpreadTooLong(2_419_200)));
    let planned = pauses(&[pause(ORDERS, 10, Some(1_000))]);
    let (earlier, _) = planned.close(&orders(), spread, at(30)).unwrap();
    assert_eq!(earlier.iter().next().unwrap().until, Some(at(30)), "before its planned end");
}

#[test]
fn tidying_drops_what_ended_over_14_days_ago() {
    let old = pauses(&[pause(ORDERS, 0, Some(10)), pause("*", 0, None)]);
    assert_eq!(old.tidied(at(10 + 14 * 86_400)), old);
    assert_eq!(old.tidied(at(11 + 14 * 86_400)), pauses(&[pause("*", 0, None)]));
}

#[test]
fn tidying_joins_what_adjoins_and_keeps_the_later_ends_spread() {
    let spread = |secs, pause: Pause| Pause { spread: Duration::from_secs(secs), ..pause };
    let of = |until| spread(1, pause(ORDERS, 0, Some(until)));
    let next = spread(2, pause(ORDERS, 10, Some(20)));
    let joined = |first: Pause| pauses(&[first, next.clone()]).tidied(at(50));
    assert_eq!(joined(of(10)), pauses(&[spread(2, pause(ORDERS, 0, Some(20)))]));
    assert_eq!(joined(of(30)), pauses(&[of(30)]));
    assert_eq!(joined(of(9)), pauses(&[of(9), next.clone()]), "a second lies between");
    let open = pauses(&[of(10), pause(ORDERS, 10, None)]);
    assert_eq!(open.tidied(at(50)), open, "an open one is left alone");
    let others = pauses(&[of(10), pause("*", 10, Some(20))]);
    assert_eq!(others.tidied(at(50)), others, "so are other targets");
}

#[test]
fn what_the_parameter_cannot_hold_is_refused() {
    let why = |length: usize| pauses(&[Pause { why: Some("x".repeat(length)), ..pause("*", 0, None) }]);
    let rest = why(0).write().len();
    assert_eq!(why(4_096 - rest).check_size(), Ok(()));
    assert_eq!(
        why(4_097 - rest).check_size().unwrap_err().to_string(),
        "the pauses would take 4097 bytes; the parameter holds 4096: shorten the reasons"
    );
    let remedies = |all: &[Pause]| match pauses(all).check_size() {
        Err(EditError::TooLarge { remedies, .. }) => remedies,
        other => panic!("{other:?}"),
    };
    let wait = |until| format!("wait until {until}: pauses are forgotten 14 days after their end");
    let long: Vec<_> = why(4_090 - rest).iter().cloned().collect();
    let with = |other: Pause| [long.clone(), vec![other]].concat();
    assert_eq!(remedies(&with(pause(ORDERS, 0, None))), ["shorten the reasons", "resume functions"]);
    let forgotten = at(10 + 14 * 86_400).to_string();
    assert_eq!(remedies(&with(pause(ORDERS, 0, Some(10)))), ["shorten the reasons".into(), wait(forgotten)]);
    // Only waiting helps where ended pauses fill it, and not until the first alone is forgotten.
    let of_many = (0..110).map(|n| pause(&format!("{ORDERS}-{n}"), n, Some(n + 3_600)));
    let refused = remedies(&of_many.chain([pause(PAYMENTS, 9_000, None)]).collect::<Vec<_>>());
    let [only] = refused.as_slice() else { panic!("{refused:?}") };
    assert!(only.starts_with("wait until ") && *only > wait(at(3_601 + 14 * 86_400).to_string()), "{only}");
}

#[test]
fn ended_pauses_leave_room_for_a_new_one() {
    let three_a_day: Vec<_> = (0..42).map(|n| pause(ORDERS, n * 28_800, Some(n * 28_800 + 3_600))).collect();
    let of_many: Vec<_> = (0..75).map(|n| pause(&format!("{ORDERS}-{n}"), n, Some(n + 3_600))).collect();
    for ended in [three_a_day, of_many] {
        let now = at(14 * 86_400);
        let new = Pause { why: Some("a bad deploy".into()), ..pause(PAYMENTS, 14 * 86_400, None) };
        let all = pauses(&ended).open(new, now).unwrap().tidied(now);
        assert_eq!((all.iter().count(), all.check_size()), (ended.len() + 1, Ok(())));
        assert_eq!(Pauses::read(&all.write()), Ok(all), "nothing of them is lost");
    }
}

proptest! {
    /// While nothing is over 14 days old.
    #[test]
    fn tidying_changes_no_moment_and_forgets_who_and_why(pauses in any_pauses(), now in 0..70u64) {
        let tidied = pauses.tidied(at(now));
        for function in [ORDERS, PAYMENTS] {
            prop_assert_eq!(moments(&tidied, function), moments(&pauses, function));
        }
        prop_assert!(tidied.iter().count() <= pauses.iter().count());
        prop_assert!(tidied.write().len() <= pauses.write().len());
        for closed in tidied.iter().filter(|pause| pause.is_over(at(now))) {
            let kept = (closed.by.is_some(), closed.why.is_some(), closed.concurrency);
            prop_assert_eq!(kept, (false, false, Concurrency::Untouched));
        }
        let ends = |pauses: &Pauses| pauses.iter().map(|pause| pause.until).max();
        prop_assert_eq!(ends(&tidied), ends(&pauses));
        prop_assert_eq!(tidied.tidied(at(now)), tidied, "tidied once is tidied");
    }

    #[test]
    fn what_opens_closes(pauses in any_pauses(), now in 0..70u64) {
        let (now, target) = (at(now), orders());
        let closed = pauses.close(&target, Duration::ZERO, now).map_or(pauses, |(closed, _)| closed);
        let open = closed.open(Pause { from: now, ..pause(ORDERS, 0, None) }, now);
        let Ok(open) = open else { panic!("{open:?}") };
        prop_assert!(open.of_function(ORDERS).any(|pause| pause.is_active(now)));
        let (closed, was) = open.close(&target, Duration::ZERO, now).unwrap();
        prop_assert_eq!(was.len(), 1);
        prop_assert!(closed.iter().all(|pause| pause.target != target || !pause.is_active(now)));
    }
}

#[test]
fn an_edit_keeps_the_members_that_it_does_not_know() {
    let read = r#""retries":[{"target":"*","at":1700000000,"within":300,"later":[1]},{"odd":1,"at":1700000000}],"mail":{"to": 1E400}}"#;
    let document = Pauses::read(&format!(r#"{{"v":1,"pauses":[],{read}"#)).unwrap();
    let opened = document.open(pause(ORDERS, 0, None), at(0)).unwrap().tidied(at(0));
    let text = opened.write();
    assert!(text.ends_with(read), "{text}");
    assert_eq!(Pauses::read(&text).as_ref(), Ok(&opened));
}

#[test]
fn an_order_leaves_the_document_at_its_end_and_an_unreadable_one_after_12_hours() {
    let document =
        |entries: &str| Pauses::read(&format!(r#"{{"v":1,"pauses":[],"retries":[{entries}]}}"#)).unwrap();
    let left = |entries: &str, second| document(entries).tidied(at(second)).retries.len();
    let older = r#"{"target":"*","at":1700000000,"within":300}"#;
    let until = r#"{"target":"*","at":1700000000,"within":300,"until":1700008768}"#;
    let later_version = r#"{"target":{"tag":"team"},"at":1700000000,"until":1700000001}"#;
    for (entry, end) in [(older, 43_200), (until, 8_768), (later_version, 43_200)] {
        assert_eq!([end, end + 1].map(|second| left(entry, second)), [1, 0], "{entry}");
    }
    for entry in ["7", r#"{"odd":1}"#, r#"{"target":"*","at":"soon"}"#, r#"{"at":1700000000000}"#] {
        assert_eq!(left(entry, 0), 0, "nobody can know what it is for: {entry}");
    }
}

#[test]
fn orders_that_stand_twice_harm_no_pause() {
    let pause = r#"{"target":"*","from":1700000000,"until":null,"spread":0}"#;
    let order = r#"{"target":"*","at":1700000000,"within":300}"#;
    for retries in [format!(r#""retries":[{order}],"retries":[{order}]"#), r#""retries":null"#.into()] {
        let document = Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}],{retries}}}"#)).unwrap();
        assert_eq!(
            (document.iter().count(), document.unreadable_retries(at(0)).count()),
            (1, 0),
            "{retries}"
        );
    }
}

#[test]
fn taking_back_an_order_leaves_everything_else() {
    let entry = |target: &str| format!(r#"{{"target":"{target}","at":1700000000,"within":300,"later":[1]}}"#);
    let document = |retries: &[String]| {
        let retries = retries.join(",");
        format!(
            r#"{{"v":1,"pauses":[{{"target":"*","from":1700000000,"until":null,"spread":0}}],"retries":[{retries}],"mail":1}}"#
        )
    };
    let (odd, all, orders) = (r#"{"odd":1}"#.to_owned(), entry("*"), entry(ORDERS));
    let read = Pauses::read(&document(&[odd.clone(), all.clone(), orders])).unwrap();
    let of_orders: Vec<RetryNow> = read.retries().skip(1).cloned().collect();
    let left = Pauses::read(&document(&[odd, all])).unwrap();
    assert_eq!((of_orders.len(), read.without_retries(&of_orders)), (1, left.clone()));
    assert_eq!(left.without_retries(&of_orders), left);
}

#[test]
fn an_order_to_retry_has_its_own_share_of_the_parameter() {
    let order = |within: u64, why: &str| RetryNow {
        target: PauseTarget::All,
        at: Timestamp::from_millis(at(0).as_millis() + 1),
        within: Duration::from_secs(within),
        errors: vec!["Time*".into()],
        by: None,
        why: Some(why.into()),
        until: None,
    };
    let none = Pauses::default();
    let one = none.retry(order(300, "fixed")).unwrap();
    let text = r#"{"v":1,"pauses":[],"retries":[{"target":"*","at":1700000001,"within":300,"errors":["Time*"],"why":"fixed"}]}"#;
    assert_eq!(one.write(), text, "its moment is rounded up, so that it reaches what has just failed");
    assert_eq!(Pauses::read(text), Ok(one.clone()));
    assert_eq!(none.retry(order(39_601, "")), Err(EditError::WithinTooLong(39_601)));
    let refused = |document: &Pauses, end| {
        let error = document.retry(order(300, &"x".repeat(1_000))).unwrap_err();
        assert!(matches!(error, EditError::ManyRetries { first_end, .. } if first_end == end), "{error}");
    };
    refused(&one, Some(at(1 + 25 * 3_600)));
    // Nobody has to wait for an order that is not given yet.
    refused(&none, None);
    let policy = Policy::new(Settings::default()).unwrap();
    let ended = none.retry(order(300, "fixed").with_end(&policy)).unwrap();
    let end = ended.retries().next().unwrap().until;
    assert_eq!(end, Some(at(300 + 3_600 + 38 + 1_230 + 3_600)));
    refused(&ended, end);
    let again = |now| ended.retry(RetryNow { at: now, ..order(300, "again") }).unwrap().retries.len();
    assert_eq!([at(8_768), at(8_769)].map(again), [2, 1], "what is over takes no room");
}
