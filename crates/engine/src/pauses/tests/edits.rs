//! What the commands do.

use super::*;

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
        format!("{ORDERS} is paused since 2023-11-14T22:13:30.000Z by ops (a bad deploy): resume it first")
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
    let ends = |until| Pause { until: Some(Timestamp::from_secs(until)), ..pause(ORDERS, 10, None) };
    assert_eq!(
        open(ends(253_402_300_800)),
        "the pause would end in the year 10000 or later: give an earlier end, or none"
    );
    let latest = Pauses::default().open(ends(253_402_300_799), at(10)).unwrap();
    assert_eq!(Pauses::read(&latest.write()), Ok(latest), "the latest end can be read");
    let spread = Duration::from_secs(1_209_601);
    assert_eq!(
        open(Pause { spread, ..pause(ORDERS, 10, None) }),
        "the spread is 1209601 s; it must be at most 1209600 s (14 days)"
    );
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
        "the pauses would take 4097 bytes; the parameter holds 4096: shorten the reasons, or resume a function"
    );
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
