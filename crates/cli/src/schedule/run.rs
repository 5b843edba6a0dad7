use std::io::Write;
use std::path::{Path, PathBuf};

use comeback_engine::Policy;
use comeback_timelapse::{IN_FLIGHT_LIMIT, InFlight, MAX_EVENTS, ScenarioError, Schedule, TARGET_ARN};
use serde::Serialize;

use crate::failure::Failure;
use crate::schedule::arguments::ScheduleArguments;
use crate::schedule::axis::axis_of;
use crate::schedule::{plot, table, timeline};
use crate::text::in_flight::in_words;
use crate::text::terminal::Progress;

pub(crate) fn run(arguments: &ScheduleArguments) -> Result<(), Failure> {
    let policy = checked(arguments)?;
    let schedule = followed(arguments, &policy);
    let in_flight = arguments.rate.map(|rate| schedule.in_flight(rate, IN_FLIGHT_LIMIT));
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json(&policy, &schedule, in_flight))?;
    } else {
        writeln!(out, "{}", text(&policy, &schedule))?;
        if let Some(in_flight) = &in_flight {
            writeln!(out, "\n{}", in_words(in_flight))?;
        }
    }
    if let Some(path) = &arguments.plot {
        let file = write(path, &plot::draw(&policy, &schedule))?;
        anstream::eprintln!("wrote {}", file.display());
    }
    Ok(())
}

fn checked(arguments: &ScheduleArguments) -> Result<Policy, Failure> {
    let events = arguments.events.filter(|events| !(1..=MAX_EVENTS).contains(events));
    let refused = events.map(|events| ScenarioError {
        setting: "events",
        value: events.to_string(),
        range: "1 to 100000",
    });
    let refused: Vec<_> = refused.into_iter().collect();
    match arguments.policy.policy(TARGET_ARN) {
        Ok(policy) if refused.is_empty() => Ok(policy),
        policy => Err(Failure::refused(policy.err().unwrap_or_default(), refused)),
    }
}

fn followed(arguments: &ScheduleArguments, policy: &Policy) -> Schedule {
    let events = arguments.events.unwrap_or_else(|| Schedule::default_events(policy, arguments.seed));
    let progress = Progress::new(events as u64, "{percent}% of the events, {eta} left");
    Schedule::of(policy, arguments.seed, events, &|| progress.advance(1))
}

#[derive(Serialize)]
struct Printed<'a> {
    policy: PrintedPolicy,
    #[serde(flatten)]
    schedule: &'a Schedule,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<InFlight>,
}

#[derive(Serialize)]
struct PrintedPolicy {
    max_age_seconds: u64,
    max_retries: u64,
    base_backoff_seconds: u64,
    max_backoff_seconds: u64,
    jitter: &'static str,
}

fn json(policy: &Policy, schedule: &Schedule, in_flight: Option<InFlight>) -> String {
    let backoff = policy.backoff();
    let policy = PrintedPolicy {
        max_age_seconds: policy.max_age().as_secs(),
        max_retries: policy.max_retries(),
        base_backoff_seconds: backoff.base,
        max_backoff_seconds: backoff.cap,
        jitter: backoff.jitter.name(),
    };
    serde_json::to_string_pretty(&Printed { policy, schedule, in_flight })
        .expect("BUG: a schedule is plain JSON")
}

fn text(policy: &Policy, schedule: &Schedule) -> String {
    let head = table::headline(policy, schedule);
    let outcome = table::outcome(schedule);
    if schedule.retries.is_empty() {
        return format!("{head}\n\n{outcome}");
    }
    let axis = axis_of(schedule, policy.max_age().as_secs_f64());
    let left_out = table::left_out(schedule).map_or(String::new(), |left_out| format!("\n{left_out}"));
    format!(
        "{head}\n\n{}{left_out}\n\n{outcome}\n\n\
         When they come, since the first failure: ● on average, ━ for nine events in ten\n{}",
        table::retries(schedule),
        timeline::timeline(schedule, &axis),
    )
}

/// A path that ends in `.svg` is the file, any other the folder for it.
fn write(path: &Path, svg: &str) -> Result<PathBuf, Failure> {
    let is_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let file = if is_file { path.to_owned() } else { path.join("schedule.svg") };
    let folder = file.parent().expect("BUG: a file has a folder");
    std::fs::create_dir_all(folder).map_err(|problem| Failure::write(folder, problem))?;
    std::fs::write(&file, svg).map_err(|problem| Failure::write(&file, problem))?;
    Ok(file)
}
