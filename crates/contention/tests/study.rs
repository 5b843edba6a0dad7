//! Tests the whole contention study: it reproduces the published figures, and gives the same figures for the same seed.

use std::sync::atomic::{AtomicU64, Ordering};

use comeback_contention::{Point, Strategy, Study, StudyReport, writes};

/// Published mean time in ms and mean number of calls for 190 clients, in the order of [`Strategy::ALL`].
const PUBLISHED: [(f64, f64); 5] =
    [(3_538.0, 8_004.0), (101_374.0, 5_168.0), (9_424.0, 1_760.0), (7_477.0, 1_772.0), (7_875.0, 2_434.0)];
const PUBLISHED_ERROR: f64 = 0.0035;

fn points(clients: &[u32], runs: u32) -> Vec<Point> {
    let of = |&clients| Strategy::ALL.map(|strategy| Point { clients, strategy, runs });
    clients.iter().flat_map(of).collect()
}

fn report(points: Vec<Point>, seed: u64, reference: bool) -> StudyReport {
    Study::new(points, seed, reference).expect("a valid study").run(&|_| {})
}

/// Every figure must be within 2% of the published mean.
#[test]
fn figures_agree_with_published_ones() {
    let report = report(points(&[190], 2_500), 11, false);
    for (cell, (time_ms, calls)) in report.cells.iter().zip(PUBLISHED) {
        for (figure, ours, error, published) in [
            ("time", cell.time_ms, cell.time_ms_error, time_ms),
            ("calls", cell.calls, cell.calls_error, calls),
        ] {
            let what = format!("{figure} of {}: {ours}, published {published}", cell.strategy);
            let doubt = error.expect("more than one run").hypot(PUBLISHED_ERROR * published);
            assert!(3.0 * doubt < 0.02 * published, "too few runs to tell: {what} ± {doubt}");
            assert!((ours - published).abs() < 0.02 * published, "{what}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for reference in [false, true] {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| report(points(&[3, 20], 30), 5, reference))
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(7));
        assert_ne!(one, report(points(&[3, 20], 30), 6, reference), "the seed is not used");
    }
}

#[test]
fn other_points_change_nothing() {
    for reference in [false, true] {
        let alone = report(vec![Point { clients: 20, strategy: Strategy::Full, runs: 9 }], 5, reference);
        assert_eq!(report(points(&[10, 20], 9), 5, reference).cells[8], alone.cells[0]);
    }
}

#[test]
fn errors_shrink_with_more_runs() {
    let full = |runs| report(vec![Point { clients: 10, strategy: Strategy::Full, runs }], 5, false).cells[0];
    assert_eq!((full(1).time_ms_error, full(1).calls_error), (None, None));
    let ratio = full(100).time_ms_error.unwrap() / full(10_000).time_ms_error.unwrap();
    assert!((7.0..14.0).contains(&ratio), "{ratio}");
}

#[test]
fn progress_adds_up_to_the_work() {
    for reference in [false, true] {
        let study = Study::new(points(&[1, 150, 1_234], 2), 1, reference).unwrap();
        let done = AtomicU64::new(0);
        study.run(&|work| {
            done.fetch_add(work, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), study.work());
    }
}

#[test]
fn writes_equal_the_first_run() {
    let cell = report(vec![Point { clients: 40, strategy: Strategy::Equal, runs: 1 }], 5, false).cells[0];
    let writes = writes(40, Strategy::Equal, 5).unwrap();
    assert_eq!(writes.len() as f64, cell.calls);
    assert_eq!(writes.iter().filter(|write| write.accepted).count(), 40);
}

/// Returns the average number of other calls within 5 ms of a call. Ignores the first two seconds.
fn crowding(strategy: Strategy) -> f64 {
    let late: Vec<f64> = writes(100, strategy, 3)
        .expect("a valid study")
        .iter()
        .map(|write| write.at_ms)
        .filter(|&at| at > 2_000.0)
        .collect();
    let near = |at: &f64| late.iter().filter(|other| (*other - at).abs() < 5.0).count() - 1;
    late.iter().map(near).sum::<usize>() as f64 / late.len() as f64
}

#[test]
fn no_jitter_makes_calls_crowd() {
    let (exponential, full) = (crowding(Strategy::Exponential), crowding(Strategy::Full));
    assert!(exponential > 10.0 * full, "{exponential} beside {full}");
}

fn refusal(points: &[(u32, Strategy, u32)]) -> String {
    let points = points.iter().map(|&(clients, strategy, runs)| Point { clients, strategy, runs }).collect();
    Study::new(points, 1, false).expect_err("a refusal").to_string()
}

#[test]
fn points_that_cannot_run_are_refused() {
    use Strategy::{Full, None};
    assert_eq!(refusal(&[]), "nothing to run: give at least one number of clients and one strategy");
    assert_eq!(refusal(&[(0, Full, 1)]), "0 clients: must be 1 to 100000");
    assert_eq!(refusal(&[(100_001, Full, 1)]), "100001 clients: must be 1 to 100000");
    assert_eq!(refusal(&[(10, Full, 0)]), "0 runs: must be at least 1");
    assert_eq!(
        refusal(&[(10, None, 1), (10_001, None, 1)]),
        "10001 clients with strategy none: must be at most 10000, because without backoff the calls grow \
         with the square of the clients"
    );
    assert_eq!(
        refusal(&[(10, Full, 1), (10, None, 1), (10, Full, 2)]),
        "10 clients with strategy full are named twice"
    );
    let point = |clients, strategy| Point { clients, strategy, runs: 1 };
    Study::new(vec![point(100_000, Full), point(10_000, None)], 1, false).expect("the limits themselves");
}
