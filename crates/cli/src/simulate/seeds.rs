//! `comeback simulate --seeds N`: runs a scenario with many seeds, on all cores.

use std::collections::BTreeMap;
use std::io::Write;

use comeback_engine::Policies;
use comeback_operate::numbers::grouped;
use comeback_rehearsal::failure;
use comeback_rehearsal::simulate::SimulateArguments;
use comeback_rehearsal::simulate::figures::{headline_of_seeds, not_arrived};
use comeback_timelapse::{FaultCounts, RunError, Scenario, Summary, run};
use comfy_table::Table;
use rayon::prelude::*;
use serde::Serialize;

use crate::failure::CommandFailure;
use crate::output::print_json;
use crate::simulate::tables::fault_table;
use crate::tables::{Meter, align_right, table};

/// Number of seeds in a group. The seeds in a group run in parallel, but are tallied in order, so that the same
/// arguments always give the same report.
const TOGETHER: usize = 64;

pub(super) fn run_seeds(
    arguments: &SimulateArguments,
    scenario: &Scenario,
    policies: &Policies,
    seeds: u64,
) -> Result<(), CommandFailure> {
    let progress = Meter::new(seeds, "{pos} of {len} seeds");
    let repeat = format!("{} --seeds {seeds}", arguments.repeat(scenario.seed));
    let mut tally = Tally { first_seed: scenario.seed, seeds, repeat, ..Tally::default() };
    for first in (0..seeds).step_by(TOGETHER) {
        // The highest possible seed is followed by 0.
        let together = (first..seeds.min(first.saturating_add(TOGETHER as u64)))
            .map(|number| scenario.seed.wrapping_add(number))
            .collect::<Vec<u64>>();
        let outcomes: Vec<(u64, Result<Summary, RunError>)> = together
            .into_par_iter()
            .map(|seed| (seed, run(&arguments.scenario(seed), policies, &mut ())))
            .collect();
        for (seed, outcome) in outcomes {
            tally.add(&outcome.map_err(|error| failure::of_run(error, &arguments.repeat(seed)))?);
            progress.advance(1);
        }
    }
    drop(progress);
    if let Some(missing) = not_arrived(scenario, tally.not_arrived) {
        anstream::eprintln!("warning: {missing}");
    }
    if arguments.json {
        return print_json(&tally);
    }
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}\n", headline_of_seeds(scenario, seeds))?;
    writeln!(out, "{}", tally.table())?;
    tally.faults.iter().try_for_each(|faults| writeln!(out, "\n{}", fault_table(faults)))?;
    writeln!(out, "\nrepeat with: {}", tally.repeat)?;
    Ok(())
}

/// Totals over all seeds.
#[derive(Debug, Default, Serialize)]
struct Tally {
    first_seed: u64,
    seeds: u64,
    events: u64,
    delivered: u64,
    dead_lettered: BTreeMap<&'static str, u64>,
    waiting: u64,
    not_arrived: u64,
    retries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultCounts>,
    repeat: String,
}

impl Tally {
    fn add(&mut self, summary: &Summary) {
        self.events += summary.events as u64;
        self.delivered += summary.delivered as u64;
        self.waiting += summary.waiting as u64;
        self.not_arrived += summary.not_arrived as u64;
        self.retries += summary.retries;
        for (reason, &count) in &summary.dead_lettered {
            *self.dead_lettered.entry(reason).or_default() += count as u64;
        }
        if let Some(counts) = &summary.faults {
            let all = self.faults.get_or_insert_default();
            all.duplicate_retries += counts.duplicate_retries;
            all.duplicate_dead_letters += counts.duplicate_dead_letters;
            all.duplicate_moves += counts.duplicate_moves;
            for (fault, count) in &counts.struck {
                *all.struck.entry(fault).or_default() += count;
            }
        }
    }

    fn table(&self) -> Table {
        let mut table = table();
        let mut row = |label: &str, count: u64| {
            table.add_row([label, &grouped(count)]);
        };
        row("seeds without a broken invariant", self.seeds);
        row("events", self.events);
        row("delivered", self.delivered);
        for (reason, &count) in &self.dead_lettered {
            row(&format!("dead-lettered: {reason}"), count);
        }
        row("waiting", self.waiting);
        if self.not_arrived > 0 {
            row("not arrived", self.not_arrived);
        }
        row("retries made", self.retries);
        align_right(&mut table, [1]);
        table
    }
}
