//! `comeback schedule`: shows when a policy would retry an event, without deploying the policy.

mod table;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use comeback_engine::{Policies, Policy, PolicyEntry};
use comeback_operate::Failure;
use comeback_operate::numbers::read_rate;
use comeback_rehearsal::failure::unless_both;
use comeback_rehearsal::flags::{self, PolicyFlags};
use comeback_rehearsal::in_flight::in_words;
use comeback_rehearsal::schedule;
use comeback_timelapse::{IN_FLIGHT_LIMIT, InFlight, MAX_EVENTS, ScenarioError, Schedule, TARGET_ARN};
use serde::Serialize;

use crate::failure::CommandFailure;
use crate::output::{create, fill, print_json};
use crate::tables::Meter;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback schedule                                  the default policy
  comeback schedule --max-age 1h --jitter equal      a shorter one, with waits that vary less
  comeback schedule --base-backoff 30s --max-backoff 30s --max-retries 20 --plot schedule.svg
  comeback schedule --max-age 12h --rate 20/s        what 20 failing events a second need
  comeback schedule --policies 'export MAX_AGE=14d BACKOFFS=20s,5m,2h' --target export
  comeback schedule --jitter decorrelated --json";

#[derive(Debug, Args)]
pub(crate) struct ScheduleArguments {
    /// Print JSON; the same arguments give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the chart as SVG to this file, or as schedule.svg into this folder
    #[arg(long, value_name = "FILE.svg|DIR", value_parser = flags::svg_or_folder)]
    plot: Option<PathBuf>,
    /// Number of events to follow, 1 to 100000 [default: 10000, fewer with many retries]
    #[arg(long, value_name = "N")]
    events: Option<usize>,
    /// Rate at which events fail, such as 10/s, 600/m, 20000/h or 1000000/d; shows how many events wait at this rate,
    /// what that costs and how many pollers it needs
    #[arg(long, value_name = "EVENTS", value_parser = read_rate, allow_hyphen_values = true)]
    rate: Option<f64>,
    /// Show the schedule for this function, with the policy that --policies gives it [default: the stack's policy]
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(arguments: &ScheduleArguments) -> Result<(), CommandFailure> {
    let policies = checked(arguments)?;
    let entry = arguments.target.as_ref().map(|name| flags::entry_of(&policies, name)).transpose()?;
    let policy = entry.map_or(policies.stack(), PolicyEntry::policy);
    if entry.is_none() && !policies.entries().is_empty() {
        anstream::eprintln!(
            "warning: this is the stack's policy; --target NAME shows what --policies gives a function"
        );
    }
    let schedule = followed(arguments, policy);
    // Written before anything is printed, so that a failure is the only output.
    if let Some(path) = &arguments.plot {
        let is_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
        let file = if is_file { path.to_owned() } else { path.join("schedule.svg") };
        fill(create(&file)?, &file, &schedule::draw(policy, &schedule))?;
    }
    let in_flight = arguments.rate.map(|rate| schedule.in_flight(rate, IN_FLIGHT_LIMIT));
    if arguments.json {
        let backoff = policy.backoff();
        let policy = PrintedPolicy {
            max_age_seconds: policy.max_age().as_secs(),
            max_retries: policy.settings().max_retries,
            base_backoff_seconds: backoff.base().as_secs(),
            max_backoff_seconds: backoff.cap().as_secs(),
            backoffs_seconds: &policy.settings().backoffs,
            jitter: backoff.jitter().name(),
        };
        print_json(&Printed { policy, schedule: &schedule, in_flight })?;
    } else {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", text(policy, &schedule))?;
        if let Some(in_flight) = &in_flight {
            writeln!(out, "\n{}", in_words(in_flight))?;
        }
    }
    Ok(())
}

fn checked(arguments: &ScheduleArguments) -> Result<Policies, Failure> {
    let refused =
        |events: usize| ScenarioError { setting: "events", value: events.to_string(), range: "1 to 100000" };
    let events = arguments.events.filter(|events| !(1..=MAX_EVENTS).contains(events));
    let events = events.map_or(Ok(()), |events| Err(vec![refused(events)]));
    Ok(unless_both(arguments.policy.policies(TARGET_ARN), events)?.0)
}

fn followed(arguments: &ScheduleArguments, policy: &Policy) -> Schedule {
    let events = arguments.events.unwrap_or_else(|| Schedule::default_events(policy, arguments.seed));
    let progress = Meter::new(events as u64, "{percent}% of the events, {eta} left");
    Schedule::of(policy, arguments.seed, events, &|| progress.advance(1))
}

#[derive(Serialize)]
struct Printed<'a> {
    policy: PrintedPolicy<'a>,
    #[serde(flatten)]
    schedule: &'a Schedule,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<InFlight>,
}

#[derive(Serialize)]
struct PrintedPolicy<'a> {
    max_age_seconds: u64,
    max_retries: u64,
    base_backoff_seconds: u64,
    max_backoff_seconds: u64,
    /// The waits that `BACKOFFS` lists, in seconds; empty if it is not set.
    backoffs_seconds: &'a [u64],
    jitter: &'static str,
}

fn text(policy: &Policy, schedule: &Schedule) -> String {
    let head = schedule::headline(policy, schedule);
    let outcome = schedule::outcome(schedule);
    if schedule.retries.is_empty() {
        return format!("{head}\n\n{outcome}");
    }
    let (all, rows) = (schedule.retries.len(), schedule::shown(&schedule.retries).count());
    let left_out = || format!("\n{rows} of {all} retries shown; --json prints all");
    let left_out = (rows < all).then(left_out).unwrap_or_default();
    format!(
        "{head}\n\n{}{left_out}\n\n{outcome}\n\nTime of each retry since the first failure: ● on average, ━ \
         for nine events in ten\n{}",
        table::retries(schedule),
        table::timeline(schedule, policy.max_age()),
    )
}
