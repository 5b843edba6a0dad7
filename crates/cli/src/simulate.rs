//! `comeback replay` without files.

use std::io::Write;
use std::time::Duration;

use comeback_timelapse::{Scenario, Summary, TARGET_ARN, Watcher, run};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::ReplayArguments;
use crate::clock::timed;
use crate::failure::Failure;
use crate::{histogram, minutes_csv, summary_table};

pub(crate) fn simulate(arguments: &ReplayArguments) -> Result<(), Failure> {
    let scenario = arguments.simulation.scenario();
    let refused = scenario.check().err().unwrap_or_default();
    let policy = match arguments.policy.policy(TARGET_ARN) {
        Ok(policy) if refused.is_empty() => policy,
        policy => return Err(Failure::refused(policy.err().unwrap_or_default(), refused)),
    };
    let mut progress = Progress::new(&scenario);
    let (summary, wall_time) = timed(|| run(&scenario, &policy, &mut progress));
    let summary = summary.expect("BUG: the scenario was checked");
    progress.0.finish_and_clear();
    if let Some(path) = &arguments.simulation.csv {
        minutes_csv::write(path, &summary.minutes)?;
    }
    print(arguments.json, &scenario, &summary, wall_time)
}

fn print(json: bool, scenario: &Scenario, summary: &Summary, wall_time: Duration) -> Result<(), Failure> {
    // Strips colours unless standard output is a terminal that shows them; knows NO_COLOR.
    let mut out = anstream::stdout().lock();
    if json {
        let json = serde_json::to_string_pretty(summary).expect("BUG: a summary is plain JSON");
        writeln!(out, "{json}")?;
        return Ok(());
    }
    writeln!(out, "{}\n", summary_table::headline(scenario))?;
    writeln!(out, "{}\n", summary_table::outcome(summary, wall_time))?;
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
