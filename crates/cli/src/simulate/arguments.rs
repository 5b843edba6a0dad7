use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use comeback_timelapse::Scenario;

use crate::flags;
use crate::flags::PolicyChanges;
use crate::flags::PolicyFlags;
use crate::flags::faults::FaultFlags;
use crate::text::durations;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback simulate                                    1,000 events, target down for 3 of 24 hours
  comeback simulate --jitter none --csv retries.csv    what happens without jitter, minute by minute
  comeback simulate --report day.html --vs jitter=none two policies compared, on a page to share
  comeback simulate --retry-after 15m                  the same when the target says so itself
  comeback simulate --events 100000 --failure-rate 0.1 --max-retries 5 --json
  comeback simulate --chaos                            what happens when everything else fails too
  comeback simulate --chaos --seeds 500 --events 100   the same 500 times, on all cores
  comeback simulate --chaos=storm --seeds 50           what happens when calls fail for up to an hour
  comeback simulate --fault handler_outage=1@2h..5h    what happens when the retry handler is down";

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// Print JSON: the same arguments give the same bytes
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
    #[command(flatten)]
    pub(super) simulation: SimulationFlags,
    #[command(flatten)]
    pub(super) faults: FaultFlags,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Simulation (times as 200ms, 90s, 3h or plain seconds)")]
pub(super) struct SimulationFlags {
    /// Events that reach the target [default: 1000]
    #[arg(long, value_name = "N")]
    events: Option<usize>,
    /// Time from the start over which they arrive [default: the outage, or 1h if there is none]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    arrival_spread: Option<Duration>,
    /// Time from the start in which every invocation of the target fails [default: 3h]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    outage: Option<Duration>,
    /// Share of the invocations that fail after the outage, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    failure_rate: Option<f64>,
    /// How long the target asks to be left alone whenever it fails, with a RetryAfter; 1s to 14d
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    retry_after: Option<Duration>,
    /// Bytes of each event's payload at least, which count in the costs [default: about 100]
    #[arg(long, value_name = "BYTES")]
    payload_size: Option<usize>,
    /// How long an invocation of the target takes [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    run_time: Option<Duration>,
    /// Virtual time of the whole run [default: 24h]
    #[arg(long = "for", value_name = "TIME", value_parser = durations::read)]
    duration: Option<Duration>,
    /// Messages in a batch at most, 1 to 10 [default: 10]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,
    /// How long the retry handler takes for a batch [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    handler_run_time: Option<Duration>,
    /// From a message's becoming visible to a poller's receiving it [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    poll_delay: Option<Duration>,
    /// Messages in flight at most; past it SQS hands out nothing [default: 120000]
    #[arg(long, value_name = "N")]
    in_flight_limit: Option<usize>,
    /// Everything random is drawn from it [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write retries, ends and the queue's depth over time to a CSV file, a line a minute
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write a page to share: charts of the run and of every jitter, costs, the in-flight
    /// limit. Its folder is made if it is missing
    #[arg(long, value_name = "FILE.html", value_parser = flags::html)]
    pub(super) report: Option<PathBuf>,
    /// Compare with a second policy in the report: the policy's flags that differ, such as
    /// jitter=none,max-backoff=1h
    #[arg(long, value_name = "FLAG=VALUE,…", requires = "report", value_parser = PolicyChanges::read)]
    pub(super) vs: Option<PolicyChanges>,
}

impl SimulationFlags {
    /// The scenario they describe, without faults; unchecked.
    pub(super) fn scenario(&self) -> Scenario {
        let default = Scenario::default();
        let outage = self.outage.unwrap_or(default.outage);
        let spread = if outage.is_zero() { Duration::from_secs(3_600) } else { outage };
        Scenario {
            seed: self.seed.unwrap_or(default.seed),
            events: self.events.unwrap_or(default.events),
            arrival_spread: self.arrival_spread.unwrap_or(spread),
            outage,
            failure_rate: self.failure_rate.unwrap_or(default.failure_rate),
            retry_after: self.retry_after.or(default.retry_after),
            payload_size: self.payload_size.unwrap_or(default.payload_size),
            run_time: self.run_time.unwrap_or(default.run_time),
            duration: self.duration.unwrap_or(default.duration),
            batch_size: self.batch_size.unwrap_or(default.batch_size),
            handler_run_time: self.handler_run_time.unwrap_or(default.handler_run_time),
            poll_delay: self.poll_delay.unwrap_or(default.poll_delay),
            in_flight_limit: self.in_flight_limit.unwrap_or(default.in_flight_limit),
            faults: default.faults,
            pauses: default.pauses,
        }
    }

    /// The flags that were given, and their values.
    pub(super) fn given(&self) -> Vec<(&'static str, String)> {
        // By pattern, so that a new flag cannot be forgotten here.
        let Self {
            events,
            arrival_spread,
            outage,
            failure_rate,
            retry_after,
            payload_size,
            run_time,
            duration,
            batch_size,
            handler_run_time,
            poll_delay,
            in_flight_limit,
            seed,
            csv,
            report,
            vs,
        } = self;
        let count = |count: Option<usize>| count.map(|count| count.to_string());
        let time = |time: Option<Duration>| time.map(durations::flag);
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--events", count(*events)),
            ("--arrival-spread", time(*arrival_spread)),
            ("--outage", time(*outage)),
            ("--failure-rate", failure_rate.map(|rate| rate.to_string())),
            ("--retry-after", time(*retry_after)),
            ("--payload-size", count(*payload_size)),
            ("--run-time", time(*run_time)),
            ("--for", time(*duration)),
            ("--batch-size", count(*batch_size)),
            ("--handler-run-time", time(*handler_run_time)),
            ("--poll-delay", time(*poll_delay)),
            ("--in-flight-limit", count(*in_flight_limit)),
            ("--seed", seed.map(|seed| seed.to_string())),
            ("--csv", path(csv)),
            ("--report", path(report)),
            ("--vs", vs.as_ref().map(ToString::to_string)),
        ];
        flags.into_iter().filter_map(|(flag, value)| Some((flag, value?))).collect()
    }
}
