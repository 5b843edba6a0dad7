//! Computes the tables in docs/plan.md that compare policies. `examples/policy_table.rs` prints them.

use std::time::Duration;

use comeback_engine::{Jitter, Policy, Settings};
use comeback_timelapse::{
    Candidate, Goal, IN_FLIGHT_LIMIT, Percentiles, Scenario, Schedule, TARGET_ARN, prices, run,
};
use rayon::prelude::*;

pub(crate) const SEEDS: u64 = 20;
const HOUR: u64 = 3_600;
pub(crate) const DAY: u64 = 24 * HOUR;
/// Number of events per second: enough for the handler to move messages and to need more pollers than the default.
const EVENTS_PER_SECOND: f64 = 10.0;

/// `BASE_BACKOFF`, `MAX_BACKOFF` and `MAX_RETRIES` of each policy, all with full jitter.
pub(crate) const POLICIES: [(&str, [u64; 3]); 3] = [
    ("**10 s to 1 h**, the default", [10, 3_600, 1_000]),
    ("10 s to 2 h", [10, 7_200, 1_000]),
    ("10 s to 12 h", [10, 43_170, 1_000]),
];

/// An outage during which at least one event arrives each minute. With fewer events, the figures for the busiest minute
/// would depend on chance.
#[derive(Clone, Copy)]
pub(crate) struct Outage {
    pub(crate) name: &'static str,
    pub(crate) seconds: u64,
    pub(crate) events: usize,
}

pub(crate) const OUTAGES: [Outage; 5] = [
    Outage { name: "15 min", seconds: HOUR / 4, events: 1_000 },
    Outage { name: "1 h", seconds: HOUR, events: 1_000 },
    Outage { name: "3 h", seconds: 3 * HOUR, events: 1_000 },
    Outage { name: "12 h", seconds: 12 * HOUR, events: 1_440 },
    Outage { name: "24 h", seconds: DAY, events: 1_440 },
];

pub(crate) fn settings([base_backoff, max_backoff, max_retries]: [u64; 3], max_age: u64) -> Settings {
    Settings {
        target_functions: vec![TARGET_ARN.into()],
        base_backoff,
        max_backoff,
        max_retries,
        max_age,
        jitter: Jitter::Full,
        ..Settings::default()
    }
}

impl Outage {
    /// The value of the setting, in seconds: enough to deliver each event after the longest outage.
    pub(crate) const MAX_AGE: u64 = 2 * DAY;
    pub(crate) const COLUMNS: &str =
        "| outage | policy | p50, min | p99, min | retries an event | busiest minute | pollers | USD |";

    pub(crate) fn goal(self) -> Goal {
        Goal {
            outage: Duration::from_secs(self.seconds),
            events_per_second: EVENTS_PER_SECOND,
            ..Goal::default()
        }
    }

    pub(crate) fn row(self, policy: &str, settings: &Settings) -> String {
        let rehearse = |seed| Candidate::rehearse(&Goal { seed, ..self.goal() }, settings, self.events);
        let runs: Vec<Candidate> = (1..=SEEDS)
            .into_par_iter()
            .map(|seed| rehearse(seed).expect("a run without a violation"))
            .collect();
        assert!(runs.iter().all(Candidate::loses_nothing), "{policy}");
        let recovery = |part: fn(Percentiles) -> u64| {
            Spread::of(runs.iter().map(|run| part(run.recovery_ms.expect("all is delivered")) as f64 / 60e3))
        };
        let spread = |figure: fn(&Candidate) -> f64| Spread::of(runs.iter().map(figure));
        let pollers = runs.iter().map(|run| run.maximum_concurrency).max().expect("there are seeds");
        format!(
            "| {} | {policy} | {} | {} | {:.1} | {} × | {pollers} | {:.2} |",
            self.name,
            recovery(|it| it.p50).text(),
            recovery(|it| it.p99).text(),
            spread(|run| run.retries_per_event).mean,
            spread(|run| run.peak_load).text(),
            spread(|run| run.usd_per_million_events).mean,
        )
    }
}

/// Rows for a function with five events an hour and a three-hour outage.
pub(crate) mod quiet {
    use super::*;

    const EVENTS: usize = 15;
    /// Number of runs, which together have about a thousand events.
    const RUNS: u64 = 67;
    pub(crate) const COLUMNS: &str =
        "| policy | p50, min | p99, min | retries an event | busiest minute, retries |";

    pub(crate) fn row(policy: &str, settings: &Settings) -> String {
        let policies = Policy::new(settings.clone()).expect("a valid policy").into();
        let outage = Duration::from_secs(3 * HOUR);
        let day = |seed| Scenario {
            seed,
            events: EVENTS,
            arrival_spread: outage,
            outage,
            duration: outage + Duration::from_secs(Outage::MAX_AGE),
            ..Scenario::default()
        };
        let runs: Vec<_> = (1..=RUNS)
            .into_par_iter()
            .map(|seed| run(&day(seed), &policies, &mut ()).expect("a run without a violation"))
            .collect();
        let delays: Vec<u64> = runs.iter().flat_map(|run| run.recovery_delays_ms.iter().copied()).collect();
        assert_eq!(delays.len() as u64, RUNS * EVENTS as u64, "all is delivered");
        let retries = runs.iter().map(|run| run.retries).sum::<u64>() as f64 / delays.len() as f64;
        let after = runs.iter().flat_map(|run| &run.minutes[(outage.as_secs() / 60) as usize..]);
        let busiest = after.map(|minute| minute.retries).max().expect("there are minutes");
        let Percentiles { p50, p99, .. } = Percentiles::of(delays).expect("there are delays");
        let minutes = |ms: u64| rounded(ms as f64 / 60e3);
        format!("| {policy} | {} | {} | {retries:.1} | {busiest} |", minutes(p50), minutes(p99))
    }
}

/// Rows for events that fail every time.
pub(crate) mod failing {
    use super::*;

    /// Number of events for each seed.
    const EVENTS: usize = 100;
    pub(crate) const COLUMNS: &str = "| `MAX_AGE` | policy | retries an event | pollers | USD | ends as |";

    pub(crate) fn row(days: u64, policy: &str, settings: &Settings) -> String {
        let checked = Policy::new(settings.clone()).expect("a valid policy");
        let schedules: Vec<Schedule> =
            (1..=SEEDS).map(|seed| Schedule::of(&checked, seed, EVENTS, &|| {})).collect();
        let retries = Spread {
            least: schedules.iter().map(|it| it.retries_made.min).min().expect("there are seeds") as f64,
            most: schedules.iter().map(|it| it.retries_made.max).max().expect("there are seeds") as f64,
            ..Spread::of(schedules.iter().map(|it| it.retries_made.mean))
        };
        let steady = schedules.iter().map(|it| it.in_flight(EVENTS_PER_SECOND, IN_FLIGHT_LIMIT));
        let pollers = steady.clone().map(|it| it.pollers).max().expect("there are seeds");
        let moves = Spread::of(steady.map(|it| it.moves.usd_per_hour / HOUR as f64 / EVENTS_PER_SECOND)).mean;
        let usd = (retries.mean * prices::usd_a_retry() + moves) * 1e6;
        let reasons: Vec<&str> = schedules[0].dead_lettered.keys().copied().collect();
        let reasons = reasons.join("`, `");
        format!("| {days} d | {policy} | {} | {pollers} | {usd:.0} | `{reasons}` |", retries.text())
    }
}

struct Spread {
    mean: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let all: Vec<f64> = figures.collect();
        Self {
            mean: all.iter().sum::<f64>() / all.len() as f64,
            least: all.iter().copied().fold(f64::INFINITY, f64::min),
            most: all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Formats the mean and the range, for example `31 (22–37)`.
    fn text(&self) -> String {
        format!("{} ({}–{})", rounded(self.mean), rounded(self.least), rounded(self.most))
    }
}

fn rounded(figure: f64) -> String {
    if figure < 10.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
}
