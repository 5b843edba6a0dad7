//! `comeback replay` without files.

use std::io::Write;
use std::time::Duration;

use comeback_timelapse::{Scenario, Summary, TARGET_ARN, Watcher, run};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::arguments::ReplayArguments;
use crate::clock::timed;
use crate::failure::Failure;
use crate::seeds::run_seeds;
use crate::{histogram, minutes_csv, repeat, summary_table};

pub(crate) fn simulate(arguments: &ReplayArguments) -> Result<(), Failure> {
    let scenario = arguments.simulation.scenario();
    let scenario = arguments.faults.scenario(&scenario, scenario.seed);
    let refused = scenario.check().err().unwrap_or_default();
    let policy = match arguments.policy.policy(TARGET_ARN) {
        Ok(policy) if refused.is_empty() => policy,
        policy => return Err(Failure::refused(policy.err().unwrap_or_default(), refused)),
    };
    if let Some(seeds) = arguments.faults.seeds {
        return run_seeds(arguments, &scenario, &policy, seeds);
    }
    let mut progress = Progress::new(&scenario);
    let (summary, wall_time) = timed(|| run(&scenario, &policy, &mut progress));
    progress.0.finish_and_clear();
    let repeat = repeat::command(scenario.seed);
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => return Err(Failure::of_run(error, repeat)),
    };
    if let Some(path) = &arguments.simulation.csv {
        minutes_csv::write(path, &summary.minutes)?;
    }
    if arguments.json {
        print_json(&summary, &repeat)
    } else {
        print(&scenario, &summary, &repeat, wall_time)
    }
}

fn print_json(summary: &Summary, repeat: &str) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Run<'a> {
        #[serde(flatten)]
        summary: &'a Summary,
        repeat: &'a str,
    }
    let json = serde_json::to_string_pretty(&Run { summary, repeat }).expect("BUG: a summary is plain JSON");
    writeln!(anstream::stdout().lock(), "{json}")?;
    Ok(())
}

fn print(scenario: &Scenario, summary: &Summary, repeat: &str, wall_time: Duration) -> Result<(), Failure> {
    // Strips colours unless standard output is a terminal that shows them; knows NO_COLOR.
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}\nrepeat with: {repeat}\n", summary_table::headline(scenario))?;
    writeln!(out, "{}\n", summary_table::outcome(summary, wall_time))?;
    summary.faults.iter().try_for_each(|faults| writeln!(out, "{}\n", summary_table::faults(faults)))?;
    writeln!(out, "{}\n", summary_table::cost(summary))?;
    writeln!(out, "{}", histogram::retries_over_time(summary))?;
    Ok(())
}

/// A bar on standard error; hidden where that is no terminal.
struct Progress(ProgressBar);

impl Progress {
    fn new(scenario: &Scenario) -> Self {
        let style = ProgressStyle::with_template("{wide_bar} {percent}% of the virtual time")
            .expect("BUG: the template is fixed");
        Self(ProgressBar::new(scenario.duration.as_secs()).with_style(style))
    }
}

impl Watcher for Progress {
    fn clock(&mut self, at: Duration) {
        self.0.set_position(at.as_secs());
    }
}
