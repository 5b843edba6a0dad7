//! `comeback simulate`: a day in fast motion.

mod arguments;
mod figures;
mod page;
mod seeds;
mod warnings;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use comeback_timelapse::{Minute, Scenario, Summary, Watcher};
use serde::Serialize;

use crate::clock::timed;
use crate::failure::CommandFailure;
use crate::flags::{recorded_arn, warn_of_unmatched};
use crate::output::{create, fill, print_json};
use crate::text::terminal::Progress;

use figures::{cost_table, fault_table, headline, outcome_table, retries_over_time};
use page::{Lives, Runs, page};
use seeds::run_seeds;
use warnings::warnings;

pub(crate) use arguments::{EXAMPLES, SimulateArguments, in_its_part};
#[cfg(feature = "operate")]
pub(crate) use page::{Beside, beside};

pub(crate) fn run(arguments: &SimulateArguments) -> Result<(), CommandFailure> {
    let (scenario, policies, other) = arguments.checked()?;
    let arns: Vec<String> = scenario.targets.iter().map(|target| recorded_arn(&target.name)).collect();
    warn_of_unmatched(&policies, &arns, "of the run; name its functions with --target");
    if let Some(seeds) = arguments.faults.seeds {
        return run_seeds(arguments, &scenario, &policies, seeds);
    }
    let repeat = arguments.repeat(scenario.seed);
    // A page that cannot be written is refused before the runs, not after them.
    let page_path = arguments.simulation.report.as_deref();
    let page_file = page_path.map(|path| Ok::<_, CommandFailure>((create(path)?, path))).transpose()?;
    let mut watched = (virtual_time(&scenario, ""), Lives::default());
    let (summary, wall_time) = timed(|| comeback_timelapse::run(&scenario, &policies, &mut watched));
    let (bar, lives) = watched;
    drop(bar);
    let broken = |error| CommandFailure::of_run(error, repeat.clone());
    let summary = summary.map_err(broken)?;
    if let Some(path) = &arguments.simulation.csv {
        write_csv(path, &summary.minutes).map_err(|problem| CommandFailure::write(path, problem))?;
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
    // Strips colours unless standard output is a terminal that shows them; obeys NO_COLOR.
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}\nrepeat with: {repeat}\n", headline(scenario))?;
    writeln!(out, "{}\n", outcome_table(summary, wall_time))?;
    summary.faults.iter().try_for_each(|faults| writeln!(out, "{}\n", fault_table(faults)))?;
    writeln!(out, "{}\n", cost_table(summary))?;
    writeln!(out, "{}", retries_over_time(summary))?;
    Ok(())
}

/// Shows how much of the virtual time is over. `what` names the run where there are several.
fn virtual_time(scenario: &Scenario, what: &str) -> Progress {
    let what = if what.is_empty() { String::new() } else { format!(", {what}") };
    Progress::new(scenario.duration.as_secs(), &format!("{{percent}}% of the virtual time{what}"))
}

impl Watcher for Progress {
    fn clock(&mut self, at: Duration) {
        self.set(at.as_secs());
    }
}

/// Writes a line for each minute of the run, the quiet ones too: `minute` counts from 0.
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
