//! `comeback plan`: from a goal to a policy.

mod plot;
mod words;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use comeback_engine::{Policies, Policy, PolicyEntry, SettingError, Settings};
use comeback_timelapse::{Goal, Plan, PlanError, TARGET_ARN};
use serde::Serialize;

use crate::clock::timed;
use crate::deployed::{self, DeployedSetting};
use crate::failure::CommandFailure;
use crate::flags::{self, PolicyFlags};
use crate::output::{create, fill, print_json};
use crate::text::durations;
use crate::text::numbers::{rate_flag, read_number, read_rate};
use crate::text::terminal::{Progress, command_line, own_command};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback plan                                        3h down, 10 events a second, back within 30m
  comeback plan --outage 1h --rate 200/s --recover-within 5m --plot out/
  comeback plan --recover-within 2h --never-succeed 1% if one event in a hundred fails every time
  comeback plan --outage 1h --capacity 3                for a target that takes three times its traffic
  comeback plan --policies 'payments MAX_AGE=6h MAX_RETRIES=50' --target payments
  comeback plan --outage 3d --max-age 7d --recover-within 6h --json";

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// How long the target is down, so that every event fails [default: 3h]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    outage: Option<Duration>,
    /// Usual rate of events, such as 10/s, 600/m, 20000/h or 1000000/d [default: 10/s]
    #[arg(long, value_name = "EVENTS", value_parser = read_rate, allow_hyphen_values = true)]
    rate: Option<f64>,
    /// Goal: time from the end of the outage until 99 % of its events are delivered [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    recover_within: Option<Duration>,
    /// Share of events that always fail, such as 1% or 0.01 [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    never_succeed: Option<f64>,
    /// Fail invocations beyond this multiple of the usual rate, 0.1 to 1000; retries have all of it after the outage
    /// [default: no limit]
    #[arg(long, value_name = "TIMES", value_parser = read_number)]
    capacity: Option<f64>,
    #[arg(long, help_heading = "More", value_name = "TIME", allow_hyphen_values = true, help = setting_help("MAX_AGE"))]
    max_age: Option<String>,
    #[arg(long, help_heading = "More", value_name = "N", allow_hyphen_values = true, help = setting_help("MAX_RETRIES"))]
    max_retries: Option<String>,
    #[arg(long, help_heading = "More", value_name = "ENTRIES", help = setting_help("POLICIES"))]
    policies: Option<String>,
    /// Plan for this function's entry in --policies [default: the stack's policy]
    #[arg(long, help_heading = "More", value_name = "NAME")]
    target: Option<String>,
    /// Seed for everything random [default: 1]
    #[arg(long, help_heading = "More", value_name = "N")]
    seed: Option<u64>,
    /// Print JSON; the same arguments give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// Write plan.svg, with a point for each policy, into this folder
    #[arg(long, value_name = "DIR", value_parser = flags::folder)]
    plot: Option<PathBuf>,
}

fn setting_help(variable: &str) -> String {
    flags::help(comeback_engine::Setting::named(variable))
}

impl PlanArguments {
    /// Unchecked.
    fn goal(&self) -> Goal {
        let default = Goal::default();
        Goal {
            seed: self.seed.unwrap_or(default.seed),
            outage: self.outage.unwrap_or(default.outage),
            events_per_second: self.rate.unwrap_or(default.events_per_second),
            recover_within: self.recover_within.unwrap_or(default.recover_within),
            never_succeed: self.never_succeed.unwrap_or(default.never_succeed),
            capacity: self.capacity,
        }
    }

    /// The policies, read by the handler's own reader.
    ///
    /// # Errors
    ///
    /// Every value that was refused, in the handler's words.
    fn policies(&self) -> Result<Policies, Vec<SettingError>> {
        let given =
            [("max-age", &self.max_age), ("max-retries", &self.max_retries), ("policies", &self.policies)];
        let given = given.iter().filter_map(|(flag, value)| Some((*flag, value.as_deref()?)));
        PolicyFlags::default().with(given).policies(TARGET_ARN)
    }
}

/// A policy apart from what a plan varies.
fn other_settings(policy: &Policy) -> Settings {
    Settings {
        max_age: policy.max_age().as_secs(),
        max_retries: policy.settings().max_retries,
        target_functions: vec![TARGET_ARN.into()],
        ..Settings::default()
    }
}

pub(crate) fn run(arguments: &PlanArguments) -> Result<(), CommandFailure> {
    let goal = arguments.goal();
    let (policies, ()) = CommandFailure::unless_both(arguments.policies(), goal.check())?;
    let entry = arguments.target.as_ref().map(|name| flags::entry_of(&policies, name)).transpose()?;
    let other = other_settings(entry.map_or(policies.stack(), PolicyEntry::policy));
    let progress = Progress::new(Plan::policies(&goal) as u64, "{pos} of {len} policies, {eta} left");
    let (plan, wall_time) = timed(|| planned(&goal, &other, &|| progress.advance(1)));
    drop(progress);
    let plan = plan?;
    let limited_by = limited_by(&plan, &other);
    let pasted = Pasted::of(&plan, &other, entry);
    if arguments.json {
        print_json(&Printed { plan: &plan, pasted, limited_by: &limited_by })?;
    } else {
        let target = arguments.target.as_deref().zip(entry);
        writeln!(anstream::stdout().lock(), "{}", text(&plan, target, &pasted, wall_time))?;
    }
    if let Some(folder) = &arguments.plot {
        let file = folder.join("plan.svg");
        fill(create(&file)?, &file, &plot::draw(&plan))?;
    }
    if limited_by.is_empty() { Ok(()) } else { Err(CommandFailure::GoalNotMet(limited_by)) }
}

/// A plan, for a page.
#[cfg(feature = "operate")]
pub(crate) struct Recommended {
    pub(crate) lines: Vec<String>,
    pub(crate) policies: crate::figure::Table,
    /// What to put into a deployment: parameters and properties.
    pub(crate) pasted: Option<(String, String)>,
}

/// What the command answers. `progress` is told how many policies of how many were rehearsed.
#[cfg(feature = "operate")]
pub(crate) fn recommended(
    arguments: &PlanArguments,
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Recommended, CommandFailure> {
    let goal = arguments.goal();
    let (policies, ()) = CommandFailure::unless_both(arguments.policies(), goal.check())?;
    let other = other_settings(policies.stack());
    let (all, done) = (Plan::policies(&goal), std::sync::atomic::AtomicUsize::new(0));
    let count = || progress(done.fetch_add(1, std::sync::atomic::Ordering::Relaxed), all);
    let plan = planned(&goal, &other, &count)?;
    let headline = words::headline(&plan);
    let limits = limited_by(&plan, &other);
    let notes = words::legend(&plan);
    let lines = headline.lines().chain(limits.iter().map(String::as_str)).chain(notes.lines());
    Ok(Recommended {
        lines: lines.map(ToOwned::to_owned).chain(words::slower_alone(&plan)).collect(),
        policies: words::figures(&plan),
        pasted: Pasted::of(&plan, &other, None).settings.map(|settings| deployed::lines(&settings)),
    })
}

/// Why no policy meets the goal; empty if one does.
fn limited_by(plan: &Plan, settings: &Settings) -> Vec<String> {
    plan.limits.iter().map(|limit| words::sentence(limit, &plan.goal, settings)).collect()
}

fn planned(goal: &Goal, settings: &Settings, progress: &(impl Fn() + Sync)) -> Result<Plan, CommandFailure> {
    Plan::of(goal, settings, progress).map_err(|error| match error {
        PlanError::Refused { settings, goal } => CommandFailure::refused(settings, goal),
        PlanError::Violated(violation) => {
            CommandFailure::Violated { violation, repeat: repeat(goal, settings) }
        }
    })
}

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    #[serde(flatten)]
    pasted: Pasted,
    limited_by: &'a [String],
}

/// What to put into a deployment.
#[derive(Serialize)]
struct Pasted {
    /// Settings of the stack; `None` if no policy meets the goal.
    settings: Option<Vec<DeployedSetting>>,
    /// The entry of `POLICIES`, if the plan is for a function that has one.
    entry: Option<String>,
}

impl Pasted {
    fn of(plan: &Plan, other: &Settings, entry: Option<&PolicyEntry>) -> Self {
        let cheapest = plan.cheapest.as_ref();
        Self {
            settings: cheapest.map(|policy| match entry {
                Some(_) => words::queue_settings(policy).into_iter().collect(),
                None => words::settings(policy, other),
            }),
            entry: cheapest.zip(entry).map(|(policy, entry)| words::entry(policy, entry)),
        }
    }

    fn text(&self) -> String {
        let entry = self.entry.as_ref().map(|entry| format!("\n\nAs an entry of POLICIES:\n  {entry}"));
        let entry = entry.unwrap_or_default();
        let settings = self.settings.as_ref().filter(|settings| !settings.is_empty());
        let settings = settings.map(|settings| {
            let (overrides, properties) = deployed::lines(settings);
            format!(
                "\n\nWith SAM:\n  sam deploy --parameter-overrides {overrides}\n\n\
                 As properties of the CDK construct:\n  {}",
                properties.replace('\n', "\n  ")
            )
        });
        entry + &settings.unwrap_or_default()
    }
}

fn text(plan: &Plan, target: Option<(&str, &PolicyEntry)>, pasted: &Pasted, wall_time: Duration) -> String {
    let target = target.map(|(name, entry)| format!("For {name}, under its entry of POLICIES: {entry}\n"));
    format!(
        "{}{}\n\n{}\n{}{}{}\n\nwall time: {}",
        target.unwrap_or_default(),
        words::headline(plan),
        words::policies(plan),
        words::legend(plan),
        words::slower_alone(plan).map_or(String::new(), |slower| format!("\n{slower}")),
        pasted.text(),
        durations::text(wall_time),
    )
}

/// The command that makes a plan again.
fn repeat(goal: &Goal, settings: &Settings) -> String {
    let Goal { seed, outage, events_per_second, recover_within, never_succeed, capacity } = goal;
    let flags = [
        ("--seed", seed.to_string()),
        ("--outage", durations::flag(*outage)),
        ("--rate", events_per_second.to_string()),
        ("--recover-within", durations::flag(*recover_within)),
        ("--never-succeed", never_succeed.to_string()),
        ("--max-age", format!("{}s", settings.max_age)),
        ("--max-retries", settings.max_retries.to_string()),
    ];
    let capacity = capacity.map(|times| ("--capacity", times.to_string()));
    let flags = flags.iter().chain(&capacity).flat_map(|(flag, value)| [*flag, value]);
    command_line(own_command().iter().copied().chain(["plan"]).chain(flags))
}

/// The command that plans for an outage and a rate of events a second, and draws the policies. Its reader puts a
/// goal of their own into it. `own_policy` is the value of `--policies`, and the function to plan for.
pub(crate) fn command_for(
    outage: Duration,
    events_per_second: f64,
    own_policy: Option<(&str, &str)>,
) -> String {
    let (outage, rate) = (durations::flag(outage), rate_flag(events_per_second));
    let goal = ["--outage", &outage, "--rate", &rate, "--recover-within", "30m"];
    let own_policy = own_policy.map(|(policies, target)| ["--policies", policies, "--target", target]);
    let own_policy = own_policy.into_iter().flatten();
    command_line(["comeback", "plan"].into_iter().chain(goal).chain(own_policy).chain(["--plot", "."]))
}

/// Reads `1%`, `0.5 %` or `0.01`; the range is the plan's to check.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let share = number.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    share.map(|number| number / unit).ok_or_else(|| "must be a share such as 1% or 0.01".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_or_numbers() {
        assert_eq!(
            [share("1%"), share("0.5 %"), share("0.01"), share("0")],
            [0.01, 0.005, 0.01, 0.0].map(Ok)
        );
        for refused in ["", "%", "few", "1%%", "inf", "NaN"] {
            assert_eq!(share(refused), Err("must be a share such as 1% or 0.01".into()), "{refused}");
        }
    }
}
