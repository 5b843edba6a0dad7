use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::EditError;

mod document;
mod edits;
mod reads;

pub(super) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
pub(super) const PAYMENTS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payments:live";
const BASE: u64 = 1_700_000_000;

pub(super) const fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(BASE + second)
}

pub(super) fn pause(target: &str, from: u64, until: Option<u64>) -> Pause {
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
