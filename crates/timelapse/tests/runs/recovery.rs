//! What `RECOVERY` changes. Success draws are paired by event and attempt, so two runs of a seed differ only by it.

use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{HideUpTo, Outcome, RecoveryMode, Settings, Step, Timestamp};
use comeback_timelapse::{
    ApiCall, CallCounts, EventNumber, Fault, Faults, START, Scenario, Strikes, Summary, Watcher,
};
use rayon::prelude::*;

use super::{HOUR, MINUTE, given_up, hours, summary, watched};

/// A run that is made with `RECOVERY` and without it.
struct Row {
    name: String,
    scenario: Scenario,
    settings: Settings,
}

/// What is compared of a run.
#[derive(Clone, Copy)]
struct Figures {
    /// Minutes from the end of the outage.
    p50: f64,
    p99: f64,
    /// For each event that arrived in the outage.
    retries: f64,
    /// Retries in the busiest minute after the outage, in multiples of its traffic.
    peak: f64,
    dead: usize,
    moves: u64,
    reads: u64,
}

/// As the template and the construct have it.
fn shipped() -> Settings {
    Settings { longest_hide: 3_600, ..Settings::default() }
}

impl Row {
    /// So many events in the outage, and the same traffic for eight hours after it. The longest wait ends within the run.
    fn outage(name: impl Into<String>, outage: Duration, events: usize) -> Self {
        let (arrival_spread, duration) = (outage + hours(8), outage + hours(20));
        let events = (events as f64 * arrival_spread.as_secs_f64() / outage.as_secs_f64()) as usize;
        let scenario = Scenario { events, outage, arrival_spread, duration, ..Scenario::default() };
        Self { name: name.into(), scenario, settings: shipped() }
    }

    fn with(mut self, name: &str, change: impl FnOnce(&mut Scenario, &mut Settings)) -> Self {
        let separator = if self.name.is_empty() || name.is_empty() { "" } else { ", " };
        self.name = format!("{}{separator}{name}", self.name);
        change(&mut self.scenario, &mut self.settings);
        self
    }

    fn lying(self, name: &str, fault: Fault, window: std::ops::Range<Duration>) -> Self {
        self.with(name, |scenario, _| {
            scenario.faults = Faults::default().with(fault, Strikes { rate: 1.0, window });
        })
    }

    fn run(&self, seed: u64, recovery: RecoveryMode) -> Summary {
        summary(&Scenario { seed, recovery, ..self.scenario.clone() }, self.settings.clone())
    }

    fn figures(&self, seed: u64, recovery: RecoveryMode) -> Figures {
        let summary = self.run(seed, recovery);
        let minutes = |millis: u64| millis as f64 / 60_000.0;
        let delays = summary.recovery_delay_ms;
        let after = self.scenario.outage.as_secs() as usize / 60;
        let peak = summary.minutes[after..].iter().map(|minute| minute.retries).max().unwrap_or_default();
        let traffic = self.scenario.events as f64 / minutes(self.scenario.arrival_spread.as_millis() as u64);
        Figures {
            p50: delays.map_or(0.0, |delays| minutes(delays.p50)),
            p99: delays.map_or(0.0, |delays| minutes(delays.p99)),
            retries: summary.retries as f64 / summary.events_hit.max(1) as f64,
            peak: f64::from(peak) / traffic,
            dead: given_up(&summary),
            moves: summary.moves,
            reads: summary.api_calls.of(ApiCall::ReadMinutes),
        }
    }

    /// Figures of these seeds, without `RECOVERY` and with it.
    fn both(&self, seeds: u64) -> Vec<(Figures, Figures)> {
        let runs = (1..=seeds).into_par_iter();
        runs.map(|seed| (self.figures(seed, RecoveryMode::Off), self.figures(seed, RecoveryMode::On)))
            .collect()
    }

    /// A line of the table: median and worst, without and with.
    fn line(&self, seeds: u64) -> String {
        let both = self.both(seeds);
        let cell = |of: fn(&Figures) -> f64| {
            let spread = |mut values: Vec<f64>| {
                values.sort_by(f64::total_cmp);
                format!("{:.1} ({:.1})", values[values.len() / 2], values[values.len() - 1])
            };
            let off = both.iter().map(|(off, _)| of(off)).collect();
            let on = both.iter().map(|(_, on)| of(on)).collect();
            format!("{} → {}", spread(off), spread(on))
        };
        let cells = [
            cell(|it| it.p50),
            cell(|it| it.p99),
            cell(|it| it.retries),
            cell(|it| it.peak),
            cell(|it| it.dead as f64),
        ];
        let moves: i64 = both.iter().map(|(off, on)| on.moves as i64 - off.moves as i64).max().unwrap_or(0);
        let reads = both.iter().map(|(_, on)| on.reads).max().unwrap_or(0);
        format!("| {} | {} | {moves} | {reads} |", self.name, cells.join(" | "))
    }
}

fn capacity(times: f64) -> Row {
    let name = format!("3 h, takes {times} × its traffic");
    Row::outage(name, hours(3), 1_000).with("", |scenario, _| scenario.capacity = Some(times))
}

/// The last turn is down.
fn flapping(minutes: u32) -> Row {
    let name = format!("{minutes} min down and up in turns, for about 3 h");
    let outage = hours(3) + minutes * MINUTE;
    Row::outage(name, outage, 1_000).with("", |scenario, _| scenario.flapping = Some(minutes * MINUTE))
}

/// Days without an outage, in which events fail.
fn failing(name: &str, days: usize, events_a_day: usize, change: impl FnOnce(&mut Scenario)) -> Row {
    let (name, events) = (format!("{name} for {days} d"), days * events_a_day);
    let days = hours(24 * days as u64);
    let scenario = Scenario {
        // So many that three hours hold 500 attempts.
        events,
        outage: Duration::ZERO,
        arrival_spread: days,
        duration: days,
        ..Scenario::default()
    };
    let mut row = Row { name, scenario, settings: shipped() };
    change(&mut row.scenario);
    row
}

/// A day without an outage, in which so many events fail every minute that few attempts succeed.
fn taken_for_down() -> Row {
    failing("30 % poison, retried every minute", 1, 300, |scenario| scenario.poison = 0.3)
        .with("", |_, settings| (settings.max_backoff, settings.max_retries) = (60, 10_000))
}

fn never_down(days: usize) -> [Row; 5] {
    [
        failing("1 % fail", days, 5_000, |scenario| scenario.failure_rate = 0.01),
        failing("10 % fail", days, 5_000, |scenario| scenario.failure_rate = 0.1),
        failing("50 % fail", days, 3_400, |scenario| scenario.failure_rate = 0.5),
        failing("30 % poison", days, 1_400, |scenario| scenario.poison = 0.3),
        failing("50 % poison", days, 1_400, |scenario| scenario.poison = 0.5),
    ]
}

fn bad_metrics() -> [Row; 7] {
    let always = Duration::ZERO..Duration::MAX;
    let row = || Row::outage("3 h", hours(3), 600);
    [
        row().lying("metrics lie", Fault::MetricsLying, always.clone()),
        row().lying("metrics lie from 1 h on", Fault::MetricsLying, HOUR..Duration::MAX),
        row().lying(
            "metrics frozen at 3 h 10 min",
            Fault::MetricsFrozen,
            hours(3) + 10 * MINUTE..Duration::MAX,
        ),
        row().lying("metrics frozen at 1 h", Fault::MetricsFrozen, HOUR..Duration::MAX),
        row().lying("metrics denied", Fault::MetricsDenied, always.clone()),
        row().lying(
            "metrics denied from 1 h to 3 h 10 min",
            Fault::MetricsDenied,
            HOUR..hours(3) + 10 * MINUTE,
        ),
        row().lying("metrics 10 min late", Fault::MetricsLate, always),
    ]
}

fn recovering() -> Vec<Row> {
    let lag = |seconds| {
        move |scenario: &mut Scenario, _: &mut Settings| {
            scenario.metrics_lag = Duration::from_secs(seconds);
        }
    };
    let pollers = |most| move |_: &mut Scenario, settings: &mut Settings| settings.maximum_concurrency = most;
    vec![
        Row::outage("3 h, 1,000 events", hours(3), 1_000).with("2 environments", pollers(2)),
        Row::outage("3 h, 1,000 events", hours(3), 1_000).with("3 environments", pollers(3)),
        Row::outage("3 h, 1,000 events", hours(3), 1_000).with("lag 120 s", lag(120)),
        Row::outage("3 h, 1,000 events", hours(3), 1_000).with("no traffic after it", |scenario, _| {
            (scenario.events, scenario.arrival_spread) = (1_000, hours(3));
        }),
        Row::outage("3 h, 1,000 events", hours(3), 1_000).with("lag 300 s", lag(300)),
        Row::outage("3 h, 1,000 events", hours(3), 1_000)
            .with("hangs for 30 s", |scenario, _| scenario.hang = Some(Duration::from_secs(30))),
        Row::outage("3 h, 1,000 events", hours(3), 1_000)
            .with("hangs for 15 min", |scenario, _| scenario.hang = Some(15 * MINUTE)),
        Row::outage("12 h, 2,000 events", hours(12), 2_000),
        Row::outage("24 h, 2,000 events", hours(24), 2_000),
        Row::outage("15 min, 1,000 events", 15 * MINUTE, 1_000),
    ]
}

/// All that reads of minutes do not change: they are calls, and cost something. A message that is hidden for a further
/// piece of its wait takes no room anew, so the queue's count is read at other moments.
fn apart_from_reads(summary: Summary) -> (Summary, Vec<u64>) {
    let others =
        ApiCall::ALL.into_iter().filter(|call| !matches!(call, ApiCall::ReadMinutes | ApiCall::Look));
    let others = others.map(|call| summary.api_calls.of(call)).collect();
    (Summary { api_calls: CallCounts::default(), cost_usd: 0.0, ..summary }, others)
}

/// Nobody looks at a wait of a minute, so a function that is taken for down here has the same retries, too.
fn assert_never_down(seed: u64, days: usize) {
    never_down(days).into_par_iter().chain([taken_for_down()]).for_each(|row| {
        let run = |mode| apart_from_reads(row.run(seed, mode));
        let (on, off) = (run(RecoveryMode::On), run(RecoveryMode::Off));
        assert!(on == off, "{}, seed {seed}", row.name);
    });
}

#[test]
fn what_fails_without_an_outage_is_never_down() {
    assert_never_down(1, 1);
}

#[test]
fn watching_changes_no_retry() {
    let row = Row::outage("", HOUR, 600);
    let run = |mode| apart_from_reads(row.run(1, mode));
    assert!(run(RecoveryMode::Watch) == run(RecoveryMode::Off));
}

/// The limits of the table, with a few seeds.
#[test]
fn an_outage_is_over_sooner() {
    let row = Row::outage("3 h", hours(3), 1_000);
    let both = row.both(3);
    let median = |of: fn(&Figures) -> f64, on: bool| {
        let mut values: Vec<f64> = both.iter().map(|pair| of(if on { &pair.1 } else { &pair.0 })).collect();
        values.sort_by(f64::total_cmp);
        values[1]
    };
    assert!(median(|it| it.p99, true) <= 45.0 && median(|it| it.p99, false) > 240.0, "{}", row.line(3));
    assert!(median(|it| it.peak, true) <= 2.0 * median(|it| it.peak, false), "{}", row.line(3));
    assert!(both.iter().all(|(off, on)| on.retries <= off.retries + 0.5), "{}", row.line(3));
}

fn assert_wrong_metrics_lose_nothing(seed: u64) {
    bad_metrics().into_par_iter().for_each(|row| {
        let (off, on) = (row.run(seed, RecoveryMode::Off), row.run(seed, RecoveryMode::On));
        let (name, made) = (&row.name, on.retries);
        assert!(made as f64 <= off.retries as f64 * 1.3, "{name}, seed {seed}: {made} retries");
        assert_eq!((given_up(&on), on.waiting), (0, 0), "{name}, seed {seed}");
    });
}

#[test]
fn metrics_that_are_wrong_lose_nothing() {
    assert_wrong_metrics_lose_nothing(1);
}

/// Counts the retries that a recovery has moved forward while the function is down.
struct EarlyWhileDown(Duration, usize);

impl Watcher for EarlyWhileDown {
    fn decided(&mut self, at: Duration, _: EventNumber, outcome: &Outcome<'_>) {
        self.1 += usize::from(at < self.0 && outcome.early.is_some());
    }
}

fn assert_down_is_never_well(seed: u64) {
    for hang in [None, Some(Duration::from_secs(30)), Some(15 * MINUTE)] {
        let Row { scenario, .. } = Row::outage("", hours(3), 400);
        // A message is hidden for its whole wait, unless its function counts as down.
        let settings = Settings::default();
        let scenario = Scenario { seed, hang, recovery: RecoveryMode::On, duration: hours(4), ..scenario };
        let mut early = EarlyWhileDown(scenario.outage, 0);
        let summary = watched(&scenario, settings, &mut early);
        assert!(summary.looks > 0, "{hang:?}, seed {seed}: it is never taken for down");
        assert_eq!(early.1, 0, "{hang:?}, seed {seed}");
    }
}

#[test]
fn a_function_that_hangs_is_never_taken_for_well_while_it_is_down() {
    assert_down_is_never_well(1);
}

/// The events that are given up, and those that `RECOVERY` may have harmed: a retry came early or late, or a look gave them up.
///
/// Looks shift each receive by a moment. The target then fails at another moment, and its failure is a new message with another
/// random wait. So by chance, an event may be given up only with `RECOVERY`, although every retry came when it was due.
#[derive(Default)]
struct GivenUp {
    events: BTreeSet<usize>,
    touched: BTreeSet<usize>,
}

impl Watcher for GivenUp {
    fn decided(&mut self, at: Duration, event: EventNumber, outcome: &Outcome<'_>) {
        let is_late = |due: Timestamp| at > due.since(START) + Duration::from_secs(1);
        let is_touched = match outcome.step {
            Some(Step::DeadLetter { .. }) => {
                self.events.insert(event.0);
                !outcome.is_first_receive
            }
            Some(Step::Reinvoke { due }) => outcome.early.is_some() || is_late(due),
            _ => false,
        };
        if is_touched {
            self.touched.insert(event.0);
        }
    }
}

fn assert_no_more_are_given_up(seed: u64) {
    let ages = [3, 6, 24].map(|max_age| (max_age * 3_600, 185));
    ages.into_par_iter().chain([12, 30].map(|most| (86_400, most))).for_each(|(max_age, max_retries)| {
        let row = Row::outage("3 h", hours(3), 400).with("", |_, settings| {
            (settings.max_age, settings.max_retries) = (max_age, max_retries);
        });
        let [off, on] = [RecoveryMode::Off, RecoveryMode::On].map(|recovery| {
            let mut given_up = GivenUp::default();
            watched(
                &Scenario { seed, recovery, ..row.scenario.clone() },
                row.settings.clone(),
                &mut given_up,
            );
            given_up
        });
        let counts = [&off, &on].map(|it| it.events.len());
        eprintln!(
            "MAX_AGE {max_age}, MAX_RETRIES {max_retries}: given up without and with RECOVERY: {counts:?}"
        );
        let harmed: Vec<&usize> =
            on.events.difference(&off.events).filter(|it| on.touched.contains(it)).collect();
        assert!(harmed.is_empty(), "MAX_AGE {max_age}, MAX_RETRIES {max_retries}, seed {seed}: {harmed:?}");
    });
}

#[test]
fn no_more_events_are_given_up() {
    assert_no_more_are_given_up(1);
}

#[test]
#[ignore = "the rows of safety over many seeds: a minute of a core for each seed"]
fn safety() {
    let first = std::env::var("FIRST").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..=seeds() {
        assert_days_lose_nothing(seed);
        assert_never_down(seed, 3);
        assert_down_is_never_well(seed);
        assert_wrong_metrics_lose_nothing(seed);
        assert_no_more_are_given_up(seed);
        eprintln!("seed {seed}: all rows of safety hold");
    }
}

/// Every run checks that no message reaches SQS's 1,000 receives.
fn assert_days_lose_nothing(seed: u64) {
    let on = thirteen_days(50).run(seed, RecoveryMode::On);
    assert_eq!((on.delivered, given_up(&on), on.waiting), (50, 0, 0), "seed {seed}");
}

#[test]
fn an_outage_of_13_days_loses_nothing() {
    assert_days_lose_nothing(1);
}

fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20)
}

/// Forty thousand waits, scaled down with the room for them.
#[test]
fn looks_take_no_room_anew() {
    (1..=3).into_par_iter().for_each(|seed| {
        let row = Row::outage("6 h", hours(6), 600).with("", |scenario, settings| {
            (scenario.arrival_spread, scenario.events) = (hours(6), 600);
            settings.hide_up_to = HideUpTo::UpTo([100, 300, 500][seed as usize % 3]);
        });
        let (off, on) = (row.run(seed, RecoveryMode::Off).moves, row.run(seed, RecoveryMode::On).moves);
        assert!(off > 0 && on <= off, "seed {seed}: {on} moves, and {off} without");
    });
}

fn large() -> [Row; 3] {
    [
        Row::outage("3 h, 10,000 events", hours(3), 10_000),
        Row::outage("3 h, 30,000 events", hours(3), 30_000),
        thirteen_days(2_000),
    ]
}

fn thirteen_days(events: usize) -> Row {
    let name = format!("13 d, {events} events on its first day");
    Row::outage(name, hours(13 * 24), events).with("", |scenario, settings| {
        (scenario.arrival_spread, scenario.events) = (hours(24), events);
        settings.max_age = 14 * 86_400;
    })
}

fn print(rows: impl IntoIterator<Item = Row>) {
    let named = std::env::var("ROWS").unwrap_or_default();
    for row in rows.into_iter().filter(|row| row.name.contains(&named)) {
        eprintln!("{}", row.line(seeds()));
    }
}

#[test]
#[ignore = "prints the table of docs/recovery.md: slow, so use a release build"]
fn table() {
    let others = [2.0, 3.0, 6.0].map(capacity).into_iter().chain([10, 30].map(flapping));
    print(recovering().into_iter().chain(others).chain(bad_metrics()));
}

#[test]
#[ignore = "prints rows of many events or days: slow, so use a release build"]
fn large_runs() {
    print(large());
}
