//! `comeback simulate --seeds N`: the same scenario under many seeds, on all cores.

use std::io::Write;

use comeback_engine::Policy;
use comeback_timelapse::{RunError, Scenario, Summary, run};
use rayon::prelude::*;

use crate::failure::Failure;
use crate::simulate::arguments::SimulateArguments;
use crate::simulate::figures::{headline_of_seeds, not_arrived};
use crate::simulate::tally::Tally;
use crate::simulate::{repeat, table};
use crate::text::terminal::Progress;

/// Seeds under way together. The lowest of them that breaks an invariant is reported, so that the
/// same arguments always report the same.
const TOGETHER: usize = 64;

pub(super) fn run_seeds(
    arguments: &SimulateArguments,
    scenario: &Scenario,
    policy: &Policy,
    seeds: u64,
) -> Result<(), Failure> {
    let progress = Progress::new(seeds, "{pos} of {len} seeds");
    let repeat = format!("{} --seeds {seeds}", repeat::command(arguments, scenario.seed));
    let mut tally = Tally::new(scenario.seed, seeds, repeat);
    for first in (0..seeds).step_by(TOGETHER) {
        // After the highest seed comes 0.
        let together = (first..seeds.min(first.saturating_add(TOGETHER as u64)))
            .map(|number| scenario.seed.wrapping_add(number))
            .collect::<Vec<u64>>();
        let outcomes: Vec<(u64, Result<Summary, RunError>)> = together
            .into_par_iter()
            .map(|seed| (seed, run(&arguments.faults.scenario(scenario, seed), policy, &mut ())))
            .collect();
        for (seed, outcome) in outcomes {
            tally.add(&outcome.map_err(|error| Failure::of_run(error, repeat::command(arguments, seed)))?);
            progress.advance(1);
        }
    }
    drop(progress);
    if let Some(missing) = not_arrived(scenario, tally.not_arrived) {
        anstream::eprintln!("warning: {missing}");
    }
    let mut out = anstream::stdout().lock();
    if arguments.json {
        let json = serde_json::to_string_pretty(&tally).expect("BUG: a tally is plain JSON");
        writeln!(out, "{json}")?;
        return Ok(());
    }
    writeln!(out, "{}\n", headline_of_seeds(scenario, seeds))?;
    writeln!(out, "{}", table::tally(&tally))?;
    tally.faults.iter().try_for_each(|faults| writeln!(out, "\n{}", table::faults(faults)))?;
    writeln!(out, "\nrepeat with: {}", tally.repeat)?;
    Ok(())
}
