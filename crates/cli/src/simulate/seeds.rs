//! `comeback simulate --seeds N`: the same scenario under many seeds, on all cores.

use std::io::Write;

use comeback_engine::Policy;
use comeback_timelapse::{RunError, Scenario, Summary, run};
use rayon::prelude::*;

use crate::failure::Failure;
use crate::simulate::arguments::SimulateArguments;
use crate::simulate::figures::headline_of_seeds;
use crate::simulate::tally::Tally;
use crate::simulate::{repeat, table};
use crate::text::progress::Progress;

/// Seeds under way together. The lowest of them that breaks an invariant is reported, so that the
/// same arguments always report the same.
const TOGETHER: u64 = 64;

pub(super) fn run_seeds(
    arguments: &SimulateArguments,
    scenario: &Scenario,
    policy: &Policy,
    seeds: u64,
) -> Result<(), Failure> {
    let progress = Progress::new(seeds, "{pos} of {len} seeds");
    let repeat = format!("{} --seeds {seeds}", repeat::command(arguments, scenario.seed));
    let mut tally = Tally::new(scenario.seed, seeds, repeat);
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
            progress.advance(1);
        }
    }
    drop(progress);
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
