//! `comeback plan`: finds a policy that meets a goal, for example a recovery time.

mod plot;
mod words;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use comeback_engine::{Policies, Policy, PolicyEntry, SettingError, Settings};
use comeback_operate::command::command_line;
use comeback_operate::numbers::{rate_flag, read_number, read_rate};
use comeback_operate::{Failure, durations};
use comeback_timelapse::{Goal, PolicyPlan, TARGET_ARN};
use serde::Serialize;

use crate::deployed::{self, DeployedSetting};
use crate::failure;
use crate::figure::FigureTable;
use crate::flags::{self, PolicyFlags, own_command};

pub use plot::draw;
pub use words::{HEAD, headline, legend, rows, slower_alone};

/// The arguments of `comeback plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// How long the target is down, so that every event fails [default: 3h]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    outage: Option<Duration>,
    /// Usual rate of events, such as 10/s, 600/m, 20000/h or 1000000/d [default: 10/s]
    #[arg(long, value_name = "EVENTS", value_parser = read_rate, allow_hyphen_values = true)]
    rate: Option<f64>,
    /// Goal: time from the end of the outage until 99% of the events that arrived during it are delivered
    /// [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    recover_within: Option<Duration>,
    /// Share of events that always fail, such as 1% or 0.01 [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    never_succeed: Option<f64>,
    /// Fail invocations beyond this multiple of the usual rate, 0.1 to 1000; after the outage, the whole capacity is
    /// available for retries [default: no limit]
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
    pub target: Option<String>,
    /// Seed for everything random [default: 1]
    #[arg(long, help_heading = "More", value_name = "N")]
    seed: Option<u64>,
    /// Print JSON; the same arguments give the same bytes
    #[arg(long)]
    pub json: bool,
    /// Write plan.svg, with a point for each policy, into this folder
    #[arg(long, value_name = "DIR", value_parser = flags::folder)]
    pub plot: Option<PathBuf>,
}

fn setting_help(variable: &str) -> String {
    flags::help(comeback_engine::Setting::named(variable))
}

impl PlanArguments {
    /// Builds the goal from the arguments, without checking the goal.
    pub fn goal(&self) -> Goal {
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

    /// Parses the policies with the handler's own code.
    fn policies(&self) -> Result<Policies, Vec<SettingError>> {
        let given =
            [("max-age", &self.max_age), ("max-retries", &self.max_retries), ("policies", &self.policies)];
        let given = given.iter().filter_map(|(flag, value)| Some((*flag, value.as_deref()?)));
        PolicyFlags::default().with(given).policies(TARGET_ARN)
    }
}

/// Returns a policy with the settings that are the same for every policy in a plan.
fn common_policy(policy: &Policy) -> Policy {
    let Settings { max_age, max_retries, .. } = *policy.settings();
    let target_functions = vec![TARGET_ARN.into()];
    let settings = Settings { max_age, max_retries, target_functions, ..Settings::default() };
    Policy::new(settings).expect("BUG: the given policy allows these settings")
}

/// A plan: settings ready for a deployment, or the reasons why no policy meets the goal.
#[derive(Serialize)]
pub struct Recommended {
    /// The compared policies, and the recommended policy.
    #[serde(flatten)]
    pub plan: PolicyPlan,
    #[serde(flatten)]
    pasted: Pasted,
    /// Sentences that say why no policy meets the goal; empty if a policy meets the goal.
    pub limited_by: Vec<String>,
    /// The entry in `POLICIES` that the plan is for; `None` if the plan is for the whole stack.
    #[serde(skip)]
    pub entry: Option<PolicyEntry>,
}

/// Makes a plan. `progress` receives the number of policies rehearsed so far, and the total.
///
/// # Errors
///
/// Fails if an argument is refused or a run breaks an invariant.
pub fn recommended(
    arguments: &PlanArguments,
    progress: &(impl Fn(usize, usize) + Sync),
) -> Result<Recommended, Failure> {
    let goal = arguments.goal();
    let (policies, ()) = failure::unless_both(arguments.policies(), goal.check())?;
    let entry = arguments.target.as_ref().map(|name| flags::entry_of(&policies, name)).transpose()?;
    let policy = common_policy(entry.map_or(policies.stack(), PolicyEntry::policy));
    let other = policy.settings();
    let (all, done) = (PolicyPlan::policies(&goal), AtomicUsize::new(0));
    let plan = PolicyPlan::of(&goal, &policy, &|| progress(done.fetch_add(1, Ordering::Relaxed) + 1, all));
    let plan = plan.map_err(|error| failure::of_run(error, &repeat(&goal, other)))?;
    Ok(Recommended {
        pasted: Pasted::of(&plan, other, entry),
        limited_by: plan.limits.iter().map(|limit| words::sentence(limit, &plan.goal, other)).collect(),
        entry: entry.cloned(),
        plan,
    })
}

impl Recommended {
    /// Describes the plan in lines of text, for an HTML page.
    pub fn lines(&self) -> Vec<String> {
        let (headline, notes) = (headline(&self.plan), legend(&self.plan));
        let limits = self.limited_by.iter().map(String::as_str);
        let lines = headline.lines().chain(limits).chain(notes.lines());
        lines.map(ToOwned::to_owned).chain(slower_alone(&self.plan)).collect()
    }

    /// Returns a table of the default policy and the plan's Pareto-optimal policies.
    pub fn policies(&self) -> FigureTable {
        words::figures(&self.plan)
    }

    /// Returns the settings as stack parameters and as properties of the CDK construct; `None` if no policy meets the
    /// goal.
    pub fn deployed(&self) -> Option<(String, String)> {
        self.pasted.settings.as_ref().map(|settings| deployed::lines(settings))
    }

    /// Returns the settings as text to paste into a deployment, or an empty string if no policy meets the goal.
    pub fn paste(&self) -> String {
        let entry =
            self.pasted.entry.as_ref().map(|entry| format!("\n\nAs an entry of POLICIES:\n  {entry}"));
        let settings = self.pasted.settings.as_ref().filter(|settings| !settings.is_empty());
        let settings = settings.map(|settings| {
            let (overrides, properties) = deployed::lines(settings);
            format!(
                "\n\nWith SAM:\n  sam deploy --parameter-overrides {overrides}\n\n\
                 As properties of the CDK construct:\n  {}",
                properties.replace('\n', "\n  ")
            )
        });
        entry.unwrap_or_default() + &settings.unwrap_or_default()
    }
}

/// A plan's settings, ready to paste into a deployment.
#[derive(Serialize)]
struct Pasted {
    /// The stack settings, ready to deploy; `None` if no policy meets the goal.
    settings: Option<Vec<DeployedSetting>>,
    /// The changed entry in `POLICIES`; `None` if the plan is for the whole stack, or if no policy meets the goal.
    entry: Option<String>,
}

impl Pasted {
    fn of(plan: &PolicyPlan, other: &Settings, entry: Option<&PolicyEntry>) -> Self {
        let cheapest = plan.cheapest.as_ref();
        Self {
            settings: cheapest.map(|policy| match entry {
                Some(_) => words::queue_settings(policy).into_iter().collect(),
                None => words::settings(policy, other),
            }),
            entry: cheapest.zip(entry).map(|(policy, entry)| words::entry(policy, entry)),
        }
    }
}

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

/// Returns a `comeback plan` command with an example recovery time. `own_policy` holds the values of `--policies` and
/// `--target`.
pub fn command_for(outage: Duration, events_per_second: f64, own_policy: Option<(&str, &str)>) -> String {
    let (outage, rate) = (durations::flag(outage), rate_flag(events_per_second));
    let goal = ["--outage", &outage, "--rate", &rate, "--recover-within", "30m"];
    let own_policy = own_policy.map(|(policies, target)| ["--policies", policies, "--target", target]);
    let own_policy = own_policy.into_iter().flatten();
    command_line(["comeback", "plan"].into_iter().chain(goal).chain(own_policy).chain(["--plot", "."]))
}

/// Parses a share: `1%`, `0.5 %` or `0.01`.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    let share = number.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    share.map(|number| number / unit).ok_or_else(|| "must be a share such as 1% or 0.01".into())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn progress_ends_with_the_last_policy() {
        let words = ["plan", "--outage", "1m", "--rate", "1"];
        let matches = PlanArguments::augment_args(clap::Command::new("plan")).get_matches_from(words);
        let arguments = PlanArguments::from_arg_matches(&matches).unwrap();
        let told = Mutex::new(Vec::new());
        recommended(&arguments, &|done, all| told.lock().unwrap().push((done, all))).unwrap();
        let mut told = told.into_inner().unwrap();
        told.sort_unstable();
        let all = PolicyPlan::policies(&arguments.goal());
        assert_eq!(told, (1..=all).map(|done| (done, all)).collect::<Vec<_>>());
    }

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
