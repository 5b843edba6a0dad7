use proptest::prelude::*;

use super::*;

const HOUR: u64 = 60;

fn at(minute: u64) -> Timestamp {
    beginning_of(minute)
}

/// Minutes from `first` on, each with these invocations and errors.
fn minutes(first: u64, each: impl IntoIterator<Item = (u32, u32)>) -> Vec<MetricMinute> {
    let each = each.into_iter().zip(first..);
    each.map(|((invocations, errors), number)| MetricMinute { number, invocations, errors }).collect()
}

/// Three hours down with 100 attempts a minute, then well with `after` attempts a minute for six hours.
fn outage(after: u32) -> Recovery {
    let down = (0..3 * HOUR).map(|_| (100, 100));
    Recovery::of(minutes(0, down.chain((0..6 * HOUR).map(|_| (after, 0))))).unwrap()
}

fn speed(recovery: &Recovery, minute: u64) -> u64 {
    recovery.health(at(minute)).speed()
}

#[test]
fn speed_grows_while_the_function_copes_and_ends_after_the_longest_backoff() {
    let recovery = outage(20);
    assert_eq!(recovery.health(at(180)), Health::Down { since: at(0) });
    let speeds: Vec<u64> = (182..195).map(|minute| speed(&recovery, minute)).collect();
    assert_eq!(speeds, [100, 135, 182, 245, 330, 445, 600, 810, 1_093, 1_475, 1_991, 2_000, 2_000]);
    assert_eq!(recovery.health(at(190)), Health::Recovering { since: at(180), speed: 1_093 });
    let ends = (183..600).find(|&minute| recovery.health(at(minute)) == Health::Well);
    assert_eq!(ends, Some(225), "12 hours are served");
}

#[test]
fn speed_falls_when_the_function_fails_or_its_load_is_high() {
    for bad in [(20, 7), (71, 0)] {
        let down = (0..3 * HOUR).map(|_| (100, 100));
        let recovery =
            Recovery::of(minutes(0, down.chain([(20, 0), (20, 0), (20, 0), bad, bad, bad]))).unwrap();
        let speeds: Vec<u64> = (183..189).map(|minute| speed(&recovery, minute)).collect();
        assert_eq!(speeds, [135, 182, 245, 122, 100, 100], "{bad:?}");
    }
    assert_eq!(speed(&outage(60), 300), 100, "a load of 0.5 to 0.7 changes nothing");
}

#[test]
fn few_attempts_and_few_failures_are_no_outage() {
    let hours = 0..6 * HOUR;
    for (what, minute) in
        [("few attempts", (2, 2)), ("half", (100, 50)), ("poison", (100, 95)), ("well", (100, 0))]
    {
        let recovery = Recovery::of(minutes(0, hours.clone().map(|_| minute))).unwrap();
        assert!(hours.clone().all(|minute| recovery.health(at(minute)) == Health::Well), "{what}");
    }
    let apart = vec![(1_000, 1_000), (0, 0), (0, 0), (0, 0), (1, 1)];
    for (what, each) in [("four minutes", vec![(1_000, 1_000); 4]), ("two minutes, apart", apart)] {
        let recovery = Recovery::of(minutes(0, each)).unwrap();
        assert!((0..20).all(|minute| recovery.health(at(minute)) == Health::Well), "{what}");
    }
}

#[test]
fn minutes_count_once_they_have_settled_and_silence_ends_the_gain() {
    let down = || (0..3 * HOUR).map(|_| (100, 100));
    let recovery = Recovery::of(minutes(0, down().chain([(20, 0); 5]))).unwrap();
    assert!(matches!(recovery.health(at(182)), Health::Down { .. }), "its first good minute is not complete");
    assert_eq!([188, 197, 198].map(|minute| speed(&recovery, minute)), [445, 445, 100]);
    let silent = Recovery::of(minutes(0, down())).unwrap();
    assert!(matches!(silent.health(at(192)), Health::Down { .. }), "no data is no recovery");
    let unknown = Health::Unknown { since: at(180) };
    assert_eq!([193, 2_000].map(|minute| silent.health(at(minute))), [unknown; 2], "nobody looks more often");
    assert_eq!(
        Recovery::of(minutes(0, [(20, 0); 5])).unwrap().health(at(100)),
        Health::Well,
        "it was never down"
    );
}

#[test]
fn a_function_that_goes_on_failing_stays_down_however_few_its_attempts_are() {
    let series = |few: u64, last: (u32, u32)| {
        let down = (0..3 * HOUR).map(|_| (20, 20));
        Recovery::of(minutes(0, down.chain((0..few).map(|_| (2, 2))).chain([last; 20]))).unwrap()
    };
    let goes_on = series(12 * HOUR, (2, 2));
    assert!((13..900).all(|minute| goes_on.health(at(minute + 20)) == Health::Down { since: at(0) }));
    let over = series(5 * HOUR, (2, 0));
    let ended = over.health(at(8 * HOUR + 13));
    assert!(matches!(ended, Health::Recovering { since, .. } if since == at(8 * HOUR)), "{ended:?}");
    assert_eq!(series(12 * HOUR, (2, 0)).health(at(15 * HOUR + 13)), Health::Well, "too late for a gain");
}

#[test]
fn a_backoff_is_served_faster_but_never_later_than_in_real_time() {
    let recovery = outage(20);
    let hour = Duration::from_secs(3_600);
    let served = |start, delay, now| recovery.served(at(start), delay, at(now));
    assert_eq!(served(0, hour, 60), at(60), "all of it while it was down");
    // From 170 to 183 at 1, then 1.35, 1.82, 2.45, 3.3, 4.45, 6, 8.1, 10.93 and 14.75.
    let due = served(170, hour, 300);
    assert!(at(191) < due && due < at(192), "{due}");
    assert_eq!(served(170, hour, 192), due, "it stays where it is");
    assert!(served(170, hour, 185) > due, "what is left counts in real time");
    assert_eq!(served(170, hour, 180), at(230));
}

#[test]
fn a_contradiction_is_refused() {
    let more = MetricMinute { number: 0, invocations: 1, errors: 2 };
    let error = Recovery::of([more]).unwrap_err().to_string();
    assert_eq!(error, "2 errors in 1 invocations at 1970-01-01T00:00:00.000Z, or a minute twice");
    let once = MetricMinute { number: 7, invocations: 1, errors: 1 };
    assert!(Recovery::of([once, once]).is_err());
}

#[test]
fn looks_of_a_long_wait_are_rare() {
    let looks = |seconds| looks_within(Duration::from_secs(seconds), Duration::MAX);
    assert_eq!([60, 61, 43_170].map(looks), [0, 1, 70]);
}

/// A few stretches of a function's life, each of up to three hours.
fn lives() -> impl Strategy<Value = Vec<MetricMinute>> {
    let kind = prop_oneof![
        (1..200u32).prop_map(|load| Some((load, load))),
        (1..200u32).prop_map(|load| Some((load, 0))),
        (1..200u32, 0.0..1.0).prop_map(|(load, share)| Some((load, (f64::from(load) * share) as u32))),
        Just(None),
    ];
    prop::collection::vec((kind, 1..180usize), 1..40).prop_map(|stretches| {
        let all = stretches.into_iter().flat_map(|(kind, length)| std::iter::repeat_n(kind, length));
        let known = all.zip(1_000..).filter_map(|(kind, number)| kind.map(|(a, b)| (number, a, b)));
        known.map(|(number, invocations, errors)| MetricMinute { number, invocations, errors }).collect()
    })
}

proptest! {
    #[test]
    fn any_series_has_a_speed_within_its_bounds(
        series in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u32>()), 0..50),
        start in any::<u64>(), delay in 0..50_000u64, now in any::<u64>(),
    ) {
        let series = series.into_iter().map(|(number, a, b)| {
            MetricMinute { number, invocations: a.max(b), errors: a.min(b) }
        });
        if let Ok(recovery) = Recovery::of(series) {
            let (start, now) = (Timestamp::from_millis(start), Timestamp::from_millis(now));
            prop_assert!((REAL_TIME..=FASTEST).contains(&recovery.health(now).speed()));
            let delay = Duration::from_secs(delay);
            let due = recovery.served(start, delay, now);
            prop_assert!(start <= due && due <= start.saturating_add(delay));
            prop_assert!(delay <= due.since(start) * 20);
        }
    }

    #[test]
    fn a_longer_series_changes_no_due_time(
        series in lives(), now in 0..7_200u64, waited in 0..720u64, delay in 0..43_170u64,
    ) {
        let now = 1_000 + now;
        let (start, delay) = (at(now.saturating_sub(waited)), Duration::from_secs(delay));
        let known: Vec<MetricMinute> = series.into_iter().filter(|minute| minute.number < now).collect();
        let due = |from: u64| {
            let seen = known.iter().copied().filter(|minute| minute.number >= from);
            Recovery::of(seen).unwrap().served(start, delay, at(now))
        };
        prop_assert_eq!(due(0), due(now - now.min(SERIES_MINUTES)));
    }

    #[test]
    fn without_a_failure_the_speed_is_1(loads in prop::collection::vec(0..1_000u32, 0..600)) {
        let recovery = Recovery::of(minutes(0, loads.iter().map(|&load| (load, load / 10)))).unwrap();
        prop_assert!((0..700).all(|minute| recovery.health(at(minute)) == Health::Well));
    }

    #[test]
    fn a_served_moment_stays_where_it_is(series in lives(), now in 0..7_200u64, later in 0..500u64) {
        let recovery = Recovery::of(series).unwrap();
        let (now, delay) = (1_000 + now, Duration::from_secs(20_000));
        let start = at(now.saturating_sub(200));
        let due = recovery.served(start, delay, at(now));
        let later = recovery.served(start, delay, at(now + later));
        prop_assert!(later <= due, "it never moves later");
        prop_assert!(due > at(now) || later == due);
    }
}
