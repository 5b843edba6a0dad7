//! `comeback simulate`: simulates a day of failures and retries.

mod seeds;
mod tables;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use clap::Arg;
use comeback_rehearsal::failure;
use comeback_rehearsal::flags::recorded_arn;
use comeback_rehearsal::simulate::figures::headline;
use comeback_rehearsal::simulate::{Lives, Runs, SimulateArguments, page, warnings};
use comeback_timelapse::{Minute, Scenario, Summary, Watcher};
use serde::Serialize;

use crate::clock::timed;
use crate::failure::{CommandFailure, inaccessible};
use crate::flags::warn_of_unmatched;
use crate::output::{create, fill, print_json};
use crate::tables::Meter;

use seeds::run_seeds;
use tables::{cost_table, fault_table, outcome_table, retries_over_time};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback simulate                                    1,000 events, target down for 3 of 24 hours
  comeback simulate --jitter none --csv retries.csv    what happens without jitter, minute by minute
  comeback simulate --report day.html --vs jitter=none two policies compared, on a page to share
  comeback simulate --target orders:0.7 --target export:0.3,outage=6h \\
                    --policies 'export MAX_AGE=14d'    two functions, one with a policy of its own
  comeback simulate --retry-after 15m                  a function that asks for its retry in 15 minutes
  comeback simulate --retry-now 3h2m --within 1m       an operator retries what waits, after the fix
  comeback simulate --events 100000 --failure-rate 0.1 --max-retries 5 --json
  comeback simulate --chaos                            what happens when everything else fails too
  comeback simulate --chaos --seeds 500 --events 100   500 runs with all faults, on all cores
  comeback simulate --chaos=storm --seeds 50           what happens when calls fail for up to an hour
  comeback simulate --fault handler_outage=1@2h..5h    what happens when the retry handler is down";

/// The flags that `simulate --help` shows first.
const FIRST: [&str; 8] = ["events", "outage", "target", "max-age", "max-backoff", "jitter", "report", "json"];
/// The flags that `simulate --help` shows under *Faults*.
const FAULTS: [&str; 7] = ["chaos", "fault", "seeds", "poison", "flapping", "hang", "capacity"];

/// Puts a flag under its heading in the help.
pub(crate) fn in_its_part(arg: Arg) -> Arg {
    let place = |flags: &[&str]| flags.iter().position(|flag| arg.get_long() == Some(flag));
    match (place(&FIRST), place(&FAULTS)) {
        (Some(place), _) => arg.help_heading(None::<&str>).display_order(place),
        (None, Some(place)) => arg.help_heading("Faults").display_order(place),
        (None, None) => arg.help_heading("More"),
    }
}

pub(crate) fn run(arguments: &SimulateArguments) -> Result<(), CommandFailure> {
    let (scenario, policies, other) = arguments.checked()?;
    let arns: Vec<String> = scenario.targets.iter().map(|target| recorded_arn(&target.name)).collect();
    warn_of_unmatched(&policies, &arns, "of the run; name its functions with --target");
    if let Some(seeds) = arguments.faults.seeds {
        return run_seeds(arguments, &scenario, &policies, seeds);
    }
    let repeat = arguments.repeat(scenario.seed);
    // The report's file is created before the runs, so that the command fails immediately if the path cannot be
    // written.
    let page_path = arguments.simulation.report.as_deref();
    let page_file = page_path.map(|path| Ok::<_, CommandFailure>((create(path)?, path))).transpose()?;
    let mut watched = (virtual_time(&scenario, ""), Lives::default());
    let (summary, wall_time) = timed(|| comeback_timelapse::run(&scenario, &policies, &mut watched));
    let (bar, lives) = watched;
    drop(bar);
    let broken = |error| failure::of_run(error, &repeat);
    let summary = summary.map_err(broken)?;
    if let Some(path) = &arguments.simulation.csv {
        write_csv(path, &summary.minutes).map_err(|problem| inaccessible(path, problem))?;
    }
    for warning in warnings(&scenario, policies.stack(), &summary) {
        anstream::eprintln!("warning: {warning}");
    }
    if arguments.json {
        print_json(&Printed { summary: &summary, repeat: &repeat })?;
    } else {
        print(&scenario, &summary, &repeat, wall_time)?;
    }
    let Some((file, path)) = page_file else { return Ok(()) };
    let first = (arguments.policy.clone(), policies, summary);
    let runs = Runs::make(&scenario, first, other, |what| virtual_time(&scenario, what)).map_err(broken)?;
    fill(file, path, &page(&repeat, &scenario, &runs, lives))
}

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    repeat: &'a str,
}

fn print(
    scenario: &Scenario,
    summary: &Summary,
    repeat: &str,
    wall_time: Duration,
) -> Result<(), CommandFailure> {
    // This stream strips colours unless standard output is a terminal that shows colours. It also obeys NO_COLOR.
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}\nrepeat with: {repeat}\n", headline(scenario))?;
    writeln!(out, "{}\n", outcome_table(summary, wall_time))?;
    summary.faults.iter().try_for_each(|faults| writeln!(out, "{}\n", fault_table(faults)))?;
    writeln!(out, "{}\n", cost_table(summary))?;
    writeln!(out, "{}", retries_over_time(summary))?;
    Ok(())
}

/// Creates a progress bar for a simulation's virtual time. `what` names the run, if there are several.
fn virtual_time(scenario: &Scenario, what: &str) -> Meter {
    let what = if what.is_empty() { String::new() } else { format!(", {what}") };
    Meter::new(scenario.duration.as_secs(), &format!("{{percent}}% of the virtual time{what}"))
}

impl Watcher for Meter {
    fn clock(&mut self, at: Duration) {
        self.set(at.as_secs());
    }
}

/// Writes a CSV file with a row of counts for each minute, from minute 0, including minutes without events.
fn write_csv(path: &Path, minutes: &[Minute]) -> csv::Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    let head = ["minute", "retries", "delivered", "dead_lettered", "in_flight", "visible", "delayed"];
    writer.write_record(head)?;
    for (minute, counts) in minutes.iter().enumerate() {
        let Minute { retries, delivered, dead_lettered, in_flight, visible, delayed } = *counts;
        writer.serialize((minute, retries, delivered, dead_lettered, in_flight, visible, delayed))?;
    }
    Ok(writer.flush()?)
}
