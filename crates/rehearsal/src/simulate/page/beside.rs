//! Simulates two policies side by side, for the console's policy lab.

use std::time::Duration;

use comeback_operate::Failure;
use comeback_timelapse::{Watcher, run};

use crate::chart::{BLUE, ORANGE};
use crate::failure;
use crate::figure::{Chart, FigureTable, SIZE, WIDE};
use crate::flags::PolicyFlags;
use crate::simulate::arguments::SimulateArguments;
use crate::simulate::figures::headline;
use crate::simulate::page::runs::Side;
use crate::simulate::page::{Tile, depth, recovery, retries, tables};
use crate::simulate::warnings::warnings;

/// Results of two policies side by side, or of one run if both policies are the same.
pub struct Beside {
    /// One-line description of the scenario.
    pub headline: String,
    /// Warnings about the first policy's run.
    pub warnings: Vec<String>,
    /// The most important figures for each policy.
    pub tiles: Vec<Tile>,
    /// True if both policies are the same. There is then only one run.
    pub is_same: bool,
    /// The main chart, as wide as the page: the recovery or, if there is no outage, the retries.
    pub main: Chart,
    /// Charts that compare the runs, in addition to the `main` chart.
    pub charts: Vec<Chart>,
    /// Tables that show the outcomes and the policies' settings.
    pub outcome: Vec<FigureTable>,
    /// Table of calls and compute, with their list prices.
    pub cost: FigureTable,
    /// Sentences about the retries, and about the events that would wait if the target stayed down.
    pub load: Vec<String>,
}

/// Simulates two policies and compares their runs. `rate` is in failed events per second and affects only the sentences
/// about waiting events. If it is `None`, the rate comes from the scenario. `watch` is called with each run's number (0
/// or 1) and virtual duration, and returns the run's watcher.
pub fn beside<W: Watcher>(
    arguments: &SimulateArguments,
    (name, other): (&str, &PolicyFlags),
    rate: Option<f64>,
    mut watch: impl FnMut(usize, Duration) -> W,
) -> Result<Beside, Failure> {
    let (scenario, policies, _) = arguments.checked()?;
    let targets = scenario.target_functions();
    let other_policies = other.policies(&targets).map_err(|refused| failure::refused(refused, Vec::new()))?;
    let is_same = policies.stack().settings() == other_policies.stack().settings()
        && policies.entries().is_empty()
        && other_policies.entries().is_empty();
    let own_name = if is_same { "" } else { "this policy" };
    let own = (own_name, BLUE, &arguments.policy, policies);
    let other = (!is_same).then_some((name, ORANGE, other, other_policies));
    let mut sides = Vec::new();
    for (name, colour, flags, policies) in [own].into_iter().chain(other) {
        let summary = run(&scenario, &policies, &mut watch(sides.len(), scenario.duration))
            .map_err(|error| failure::of_run(error, &arguments.repeat(scenario.seed)))?;
        sides.push(Side::of((name.to_owned(), colour), flags.clone(), policies, summary));
    }
    let recoveries = recovery::of(&sides, &[]);
    let has_outage = !scenario.longest_outage().is_zero();
    let retries = |size| retries::chart(&scenario, &sides, (size, false));
    let main = if has_outage { recovery::chart(&recoveries, WIDE) } else { retries(WIDE) };
    let charts = has_outage.then(|| retries(SIZE)).into_iter().chain([depth::chart(&scenario, &sides)]);
    let rate = rate.or_else(|| tables::own_rate(&scenario));
    let waiting = rate.map(|rate| tables::waiting_at(rate, &scenario, &sides)).unwrap_or_default();
    Ok(Beside {
        headline: headline(&scenario),
        warnings: warnings(&scenario, sides[0].policies.stack(), &sides[0].summary),
        tiles: tables::tiles(&sides),
        is_same,
        main,
        charts: charts.collect(),
        outcome: vec![tables::outcome(&sides), tables::policy(&sides)],
        cost: tables::cost(&sides),
        load: retries::stories(&sides).into_iter().chain(waiting).collect(),
    })
}
