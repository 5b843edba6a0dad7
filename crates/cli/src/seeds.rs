//! `comeback replay --seeds N`: the same scenario under many seeds, on all cores.

use std::collections::BTreeMap;
use std::io::Write;

use comeback_engine::Policy;
use comeback_timelapse::{FaultCounts, RunError, Scenario, Summary, run};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;

use crate::arguments::ReplayArguments;
use crate::failure::Failure;
use crate::{repeat, summary_table};

/// Seeds under way together. The lowest of them that breaks an invariant is the one that is told,
/// so that the same arguments always tell the same.
const TOGETHER: u64 = 64;

/// The figures of all runs. Its JSON has the members in this order.
#[derive(Debug, Serialize)]
pub(crate) struct Tally {
    pub(crate) first_seed: u64,
    pub(crate) seeds: u64,
    pub(crate) events: u64,
    pub(crate) delivered: u64,
    pub(crate) dead_lettered: BTreeMap<&'static str, u64>,
    pub(crate) waiting: u64,
    pub(crate) retries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) faults: Option<FaultCounts>,
    repeat: String,
}

pub(crate) fn run_seeds(
    arguments: &ReplayArguments,
    scenario: &Scenario,
    policy: &Policy,
    seeds: u64,
) -> Result<(), Failure> {
    let style =
        ProgressStyle::with_template("{wide_bar} {pos} of {len} seeds").expect("BUG: the template is fixed");
    let progress = ProgressBar::new(seeds).with_style(style);
    let mut tally = Tally::new(arguments, scenario.seed, seeds);
    let end = scenario.seed.saturating_add(seeds);
    let mut next = scenario.seed;
    while next < end {
        let together = next..end.min(next.saturating_add(TOGETHER));
        next = together.end;
        let outcomes: Vec<(u64, Result<Summary, RunError>)> = together
            .into_par_iter()
            .map(|seed| (seed, run(&arguments.faults.scenario(scenario, seed), policy, &mut ())))
            .collect();
        for (seed, outcome) in outcomes {
            tally.add(&outcome.map_err(|error| Failure::of_run(error, repeat::command(arguments, seed)))?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let mut out = anstream::stdout().lock();
    if arguments.json {
        let json = serde_json::to_string_pretty(&tally).expect("BUG: a tally is plain JSON");
        writeln!(out, "{json}")?;
        return Ok(());
    }
    writeln!(out, "{}\n", summary_table::headline_of_seeds(scenario, seeds))?;
    writeln!(out, "{}", summary_table::tally(&tally))?;
    tally.faults.iter().try_for_each(|faults| writeln!(out, "\n{}", summary_table::faults(faults)))?;
    writeln!(out, "\nrepeat with: {}", tally.repeat)?;
    Ok(())
}

impl Tally {
    fn new(arguments: &ReplayArguments, first_seed: u64, seeds: u64) -> Self {
        Self {
            first_seed,
            seeds,
            events: 0,
            delivered: 0,
            dead_lettered: BTreeMap::new(),
            waiting: 0,
            retries: 0,
            faults: None,
            repeat: format!("{} --seeds {seeds}", repeat::command(arguments, first_seed)),
        }
    }

    fn add(&mut self, summary: &Summary) {
        self.events += summary.events as u64;
        self.delivered += summary.delivered as u64;
        self.waiting += summary.waiting as u64;
        self.retries += summary.retries;
        for (reason, &count) in &summary.dead_lettered {
            *self.dead_lettered.entry(reason).or_default() += count as u64;
        }
        if let Some(counts) = &summary.faults {
            let all = self.faults.get_or_insert_default();
            all.duplicate_retries += counts.duplicate_retries;
            all.duplicate_dead_letters += counts.duplicate_dead_letters;
            for (fault, count) in &counts.struck {
                *all.struck.entry(fault).or_default() += count;
            }
        }
    }
}
