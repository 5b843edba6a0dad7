//! `comeback replay` without files.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use comeback_engine::Policy;
use comeback_timelapse::{Scenario, Summary, TARGET_ARN, Watcher, run};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::arguments::ReplayArguments;
use crate::clock::timed;
use crate::failure::Failure;
use crate::policy_flags::PolicyFlags;
use crate::report::{self, Lives, Runs};
use crate::seeds::run_seeds;
use crate::{histogram, minutes_csv, repeat, summary_table};

pub(crate) fn simulate(arguments: &ReplayArguments) -> Result<(), Failure> {
    let Checked { scenario, policy, other } = checked(arguments)?;
    if let Some(seeds) = arguments.faults.seeds {
        return run_seeds(arguments, &scenario, &policy, seeds);
    }
    let repeat = repeat::command(arguments, scenario.seed);
    // A page that cannot be written is better known before the runs than after them.
    let page = arguments.simulation.report.as_deref().map(Page::create).transpose()?;
    let mut watched = (Progress::new(&scenario, ""), Lives::default());
    let (summary, wall_time) = timed(|| run(&scenario, &policy, &mut watched));
    let (progress, lives) = watched;
    drop(progress);
    let broken = |error| Failure::of_run(error, repeat.clone());
    let summary = summary.map_err(broken)?;
    if let Some(path) = &arguments.simulation.csv {
        minutes_csv::write(path, &summary.minutes)?;
    }
    if arguments.json {
        print_json(&summary, &repeat)?;
    } else {
        print(&scenario, &summary, &repeat, wall_time)?;
    }
    let Some(page) = page else { return Ok(()) };
    let first = (arguments.policy.clone(), policy, summary);
    let runs = Runs::make(&scenario, first, other, |what| Progress::new(&scenario, what)).map_err(broken)?;
    page.write(&report::page(&repeat, &scenario, runs, lives))
}

struct Checked {
    scenario: Scenario,
    policy: Policy,
    /// The one to compare with.
    other: Option<(PolicyFlags, Policy)>,
}

/// Refuses all that is wrong at once. Of the second policy, only what is not wrong with the first.
fn checked(arguments: &ReplayArguments) -> Result<Checked, Failure> {
    let scenario = arguments.simulation.scenario();
    let scenario = arguments.faults.scenario(&scenario, scenario.seed);
    let other_flags = arguments.simulation.vs.as_ref().map(|changes| changes.applied_to(&arguments.policy));
    let policy = arguments.policy.policy(TARGET_ARN);
    let other = other_flags.as_ref().map(|flags| flags.policy(TARGET_ARN)).transpose();
    let in_scenario = scenario.check().err().unwrap_or_default();
    match (policy, other) {
        (Ok(policy), Ok(other)) if in_scenario.is_empty() => {
            Ok(Checked { scenario, policy, other: other_flags.zip(other) })
        }
        (policy, other) => {
            let mut in_policy = policy.err().unwrap_or_default();
            let in_other = other.err().unwrap_or_default();
            let new: Vec<_> = in_other.into_iter().filter(|error| !in_policy.contains(error)).collect();
            in_policy.extend(new);
            Err(Failure::refused(in_policy, in_scenario))
        }
    }
}

/// The page's file.
struct Page<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Page<'a> {
    /// Its folder is made if it is missing.
    fn create(path: &'a Path) -> Result<Self, Failure> {
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder).map_err(|problem| Failure::write(folder, problem))?;
        let file = File::create(path).map_err(|problem| Failure::write(path, problem))?;
        Ok(Self { path, file })
    }

    fn write(mut self, html: &str) -> Result<(), Failure> {
        self.file.write_all(html.as_bytes()).map_err(|problem| Failure::write(self.path, problem))?;
        anstream::eprintln!("wrote {}", self.path.display());
        Ok(())
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

/// A bar on standard error, until it is dropped; hidden where that is no terminal.
struct Progress(ProgressBar);

impl Progress {
    fn new(scenario: &Scenario, what: &str) -> Self {
        let style = ProgressStyle::with_template("{wide_bar} {percent}% of the virtual time{msg}")
            .expect("BUG: the template is fixed");
        let what = if what.is_empty() { String::new() } else { format!(", {what}") };
        Self(ProgressBar::new(scenario.duration.as_secs()).with_style(style).with_message(what))
    }
}

impl Watcher for Progress {
    fn clock(&mut self, at: Duration) {
        self.0.set_position(at.as_secs());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
