use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use comeback_engine::Timestamp;
use comeback_timelapse::Scenario;

use crate::contention::{self, SimulateArguments};
use crate::duration;
use crate::fault_flags::FaultFlags;
use crate::policy_flags::PolicyFlags;
use crate::schedule::{self, ScheduleArguments};

/// Rehearse Comeback's retries on this machine: the code that ships, on a virtual clock.
#[derive(Debug, Parser)]
#[command(name = "comeback", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the retry handler through a day in fast motion, or on recorded SQS events
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Box<ReplayArguments>),
    /// Print a copy of a recorded SQS event, shifted in time so that its moment is now
    #[command(after_help = EVENT_EXAMPLES)]
    Event(EventArguments),
    /// Compare backoff strategies: clients compete for one row, and back off when refused
    ///
    /// The experiment of "Exponential Backoff And Jitter" (AWS Architecture Blog). Each client reads
    /// a row's version and writes it back; the write is refused if another came in between, and
    /// after a backoff (5 ms · 2ⁿ, at most 2 s, jittered by strategy) the client reads again. Every
    /// hop takes |Normal(10 ms, 2 ms)|. Shown are the time until the last client is done, and the
    /// calls it took.
    #[command(after_help = contention::EXAMPLES)]
    Simulate(SimulateArguments),
    /// Print what a policy means: when each retry comes, and how many an event has
    ///
    /// Events whose target fails every time are followed from their first failure until they are
    /// given up, through the retry handler's own decisions. Nothing but the backoff takes time. The
    /// figures of a retry are over the events that get so far.
    #[command(after_help = schedule::EXAMPLES)]
    Schedule(ScheduleArguments),
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  comeback replay                                    1,000 events, target down for 3 of 24 hours
  comeback replay --jitter none --csv retries.csv    what happens without jitter, minute by minute
  comeback replay --events 100000 --failure-rate 0.1 --max-retries 5 --json
  comeback replay --chaos                            what happens when everything else fails as well
  comeback replay --chaos --seeds 500 --events 100   the same 500 times, on all cores
  comeback replay --fault handler_outage=1@2h..5h    what happens when the retry handler is down
  comeback replay events/*.json                      what the handler does with each sample
  comeback replay --at 2026-09-14T16:00:00Z events/early-return.json";

const EVENT_EXAMPLES: &str = "\
Examples:
  comeback event events/second-receive.json > /tmp/now.json
  cargo lambda invoke retry-handler --data-file /tmp/now.json";

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// SQS event files to run the handler on, instead of a simulation
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON: the same arguments give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
    #[command(flatten)]
    pub(crate) simulation: SimulationFlags,
    #[command(flatten)]
    pub(crate) faults: FaultFlags,
    #[command(flatten)]
    pub(crate) recorded: RecordedFlags,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Simulation (times as 200ms, 90s, 3h or plain seconds)")]
pub(crate) struct SimulationFlags {
    /// Events that reach the target [default: 1000]
    #[arg(long, value_name = "N")]
    events: Option<usize>,
    /// Time from the start over which they arrive [default: the outage, or 1h if there is none]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    arrival_spread: Option<Duration>,
    /// Time from the start in which every invocation of the target fails [default: 3h]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    outage: Option<Duration>,
    /// Share of the invocations that fail after the outage, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    failure_rate: Option<f64>,
    /// How long an invocation of the target takes [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    run_time: Option<Duration>,
    /// Virtual time of the whole run [default: 24h]
    #[arg(long = "for", value_name = "TIME", value_parser = duration::read)]
    duration: Option<Duration>,
    /// Messages in a batch at most, 1 to 10 [default: 10]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,
    /// Batches under way at once, 2 to 1000 [default: 10]
    #[arg(long, value_name = "N")]
    maximum_concurrency: Option<usize>,
    /// How long the retry handler takes for a batch [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    handler_run_time: Option<Duration>,
    /// From a message's becoming visible to a poller's receiving it [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    poll_delay: Option<Duration>,
    /// Messages in flight at most; past it SQS hands out nothing [default: 120000]
    #[arg(long, value_name = "N")]
    in_flight_limit: Option<usize>,
    /// Everything random is drawn from it [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write retries over time to a CSV file, a line a minute
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Recorded events")]
pub(crate) struct RecordedFlags {
    /// The handler's clock, RFC 3339 [default: the moment the file's last message is due]
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    pub(crate) at: Option<Timestamp>,
    /// TARGET_FUNCTIONS: ARNs of functions that may be re-invoked [default: the samples' target]
    #[arg(long, value_name = "ARNS")]
    pub(crate) target_functions: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EventArguments {
    /// An SQS event as JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
    /// The moment that is to be now, RFC 3339 [default: the moment the file's last message is due]
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    pub(crate) at: Option<Timestamp>,
}

fn read_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(text).ok_or_else(|| "must be a time such as 2026-09-14T15:46:54Z".into())
}

impl ReplayArguments {
    /// Refuses flags of the simulation beside files, and flags of recorded events without files.
    pub(crate) fn checked(&self) -> Result<(), clap::Error> {
        let (given, meaning) = if self.files.is_empty() {
            (self.recorded.given(), "is for recorded events: name at least one FILE")
        } else {
            let given = [self.simulation.given(), self.faults.given()].concat();
            (given, "is for the simulation, which runs without FILE")
        };
        if given.is_empty() {
            return Ok(());
        }
        let message = format!("{} {meaning}", given.join(", "));
        let mut command = Arguments::command();
        command.build();
        let replay = command.find_subcommand_mut("replay").expect("BUG: replay is a subcommand");
        Err(replay.error(ErrorKind::ArgumentConflict, message))
    }
}

impl SimulationFlags {
    /// The scenario they describe, without faults; unchecked.
    pub(crate) fn scenario(&self) -> Scenario {
        let default = Scenario::default();
        let outage = self.outage.unwrap_or(default.outage);
        let spread = if outage.is_zero() { Duration::from_secs(3_600) } else { outage };
        Scenario {
            seed: self.seed.unwrap_or(default.seed),
            events: self.events.unwrap_or(default.events),
            arrival_spread: self.arrival_spread.unwrap_or(spread),
            outage,
            failure_rate: self.failure_rate.unwrap_or(default.failure_rate),
            run_time: self.run_time.unwrap_or(default.run_time),
            duration: self.duration.unwrap_or(default.duration),
            batch_size: self.batch_size.unwrap_or(default.batch_size),
            maximum_concurrency: self.maximum_concurrency.unwrap_or(default.maximum_concurrency),
            handler_run_time: self.handler_run_time.unwrap_or(default.handler_run_time),
            poll_delay: self.poll_delay.unwrap_or(default.poll_delay),
            in_flight_limit: self.in_flight_limit.unwrap_or(default.in_flight_limit),
            faults: default.faults,
        }
    }

    fn given(&self) -> Vec<&'static str> {
        // By pattern, so that a new flag cannot be forgotten here.
        let Self {
            events,
            arrival_spread,
            outage,
            failure_rate,
            run_time,
            duration,
            batch_size,
            maximum_concurrency,
            handler_run_time,
            poll_delay,
            in_flight_limit,
            seed,
            csv,
        } = self;
        let flags = [
            ("--events", events.is_some()),
            ("--arrival-spread", arrival_spread.is_some()),
            ("--outage", outage.is_some()),
            ("--failure-rate", failure_rate.is_some()),
            ("--run-time", run_time.is_some()),
            ("--for", duration.is_some()),
            ("--batch-size", batch_size.is_some()),
            ("--maximum-concurrency", maximum_concurrency.is_some()),
            ("--handler-run-time", handler_run_time.is_some()),
            ("--poll-delay", poll_delay.is_some()),
            ("--in-flight-limit", in_flight_limit.is_some()),
            ("--seed", seed.is_some()),
            ("--csv", csv.is_some()),
        ];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }
}

impl RecordedFlags {
    fn given(&self) -> Vec<&'static str> {
        let Self { at, target_functions } = self;
        let flags = [("--at", at.is_some()), ("--target-functions", target_functions.is_some())];
        flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }
}
