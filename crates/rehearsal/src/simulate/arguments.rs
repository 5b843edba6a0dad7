//! The arguments of `comeback simulate`, and the scenario that they describe.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use comeback_engine::Policies;
use comeback_operate::aws::simulated::SimulatedOperators;
use comeback_operate::command::command_line;
use comeback_operate::numbers::read_number;
use comeback_operate::request::{DEFAULT_WITHIN, read_within};
use comeback_operate::{Failure, durations};
use comeback_timelapse::{Fault, Faults, Scenario, SimulatedTarget, Strikes};

use crate::failure::unless_both;
use crate::flags::{self, PolicyChanges, PolicyFlags, own_command};

/// The arguments of `comeback simulate`.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    /// Print JSON; the same arguments give the same bytes
    #[arg(long)]
    pub json: bool,
    /// Faults to inject, besides the target's failures.
    #[command(flatten)]
    pub faults: FaultFlags,
    /// The scenario to simulate, and where to write the results.
    #[command(flatten)]
    pub simulation: SimulationFlags,
    /// The retry policy to simulate.
    #[command(flatten)]
    pub policy: PolicyFlags,
}

/// A checked scenario, its policies and, with `--vs`, the flags and policies to compare with.
type Checked = (Scenario, Policies, Option<(PolicyFlags, Policies)>);

impl SimulateArguments {
    /// Returns the scenario and the policies to simulate, or a failure that lists every mistake in the arguments.
    pub fn checked(&self) -> Result<Checked, Failure> {
        let scenario = self.scenario(self.simulation.scenario().seed);
        let other_flags = self.simulation.vs.as_ref().map(|changes| changes.applied_to(&self.policy));
        let targets = scenario.target_functions();
        let own = self.policy.policies(&targets);
        let other = other_flags.as_ref().map(|flags| flags.policies(&targets)).transpose();
        let both = match (own, other) {
            (Ok(own), Ok(other)) => Ok((own, other_flags.zip(other))),
            (own, other) => {
                let mut refused = own.err().unwrap_or_default();
                let of_other = other.err().unwrap_or_default();
                let more = of_other.into_iter().filter(|error| !refused.contains(error));
                refused.extend(more.collect::<Vec<_>>());
                Err(refused)
            }
        };
        let ((policies, other), ()) = unless_both(both, scenario.check())?;
        Ok((scenario, policies, other))
    }

    /// Builds the scenario with the seed `seed`, including faults and operators.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let scenario = self.faults.scenario(&self.simulation.scenario(), seed);
        let chaos = self.faults.chaos.map(|_| (seed, scenario.duration));
        Scenario { operators: SimulatedOperators::of(self.simulation.retry_now(), chaos), ..scenario }
    }

    /// Returns the command that runs the simulation again with the seed `seed`. It also writes the report again, if
    /// there is one.
    pub fn repeat(&self, seed: u64) -> String {
        let Self { policy, simulation, faults, json } = self;
        let mut words = vec!["simulate".to_owned(), "--seed".into(), seed.to_string()];
        words.extend(simulation.words());
        words.extend(faults.words());
        words.extend(policy.given().flat_map(|(flag, value)| [format!("--{flag}"), value.to_owned()]));
        words.extend(json.then(|| "--json".into()));
        command_line(own_command().iter().copied().chain(words.iter().map(String::as_str)))
    }
}

/// The scenario of a simulation, and where its results go.
#[derive(Debug, Default, Args)]
pub struct SimulationFlags {
    /// Number of events that reach the target [default: 1000]
    #[arg(long, value_name = "N")]
    events: Option<usize>,
    /// Events arrive over this time, which begins at the start of the run [default: the length of the outage, or 1h if
    /// there is none]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    arrival_spread: Option<Duration>,
    /// Target function, its share of the events and its own outage; repeatable [default: orders]
    #[arg(long = "target", value_name = "NAME[:SHARE][,outage=TIME]", value_parser = read_target)]
    targets: Vec<SimulatedTarget>,
    /// Length of the outage at the start of the run, during which every invocation fails [default: 3h]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    outage: Option<Duration>,
    /// Share (0 to 1) of invocations that fail after the outage [default: 0]
    #[arg(long, value_name = "SHARE")]
    failure_rate: Option<f64>,
    /// Share (0 to 1) of events that always fail [default: 0]
    #[arg(long, value_name = "SHARE")]
    poison: Option<f64>,
    /// Switch between down and up during the outage, and stay in each state for this long
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    flapping: Option<Duration>,
    /// Make invocations during the outage hang for this long instead of failing at once
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    hang: Option<Duration>,
    /// Fail invocations beyond this multiple of the target's usual traffic per minute
    #[arg(long, value_name = "TIMES", value_parser = read_number)]
    capacity: Option<f64>,
    /// Make each failure request a wait of this length with RetryAfter; 1s to 14d
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    retry_after: Option<Duration>,
    /// Run comeback retry this long after the simulation starts, to recall every waiting event
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    retry_now: Option<Duration>,
    /// Spread the retries requested by --retry-now over this time; at most 11h [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = read_within, requires = "retry_now")]
    within: Option<Duration>,
    /// Minimum size of each payload, in bytes; larger payloads cost more [default: about 100]
    #[arg(long, value_name = "BYTES")]
    payload_size: Option<usize>,
    /// Duration of each invocation of the target [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    run_time: Option<Duration>,
    /// Virtual duration of the whole run [default: 24h]
    #[arg(long = "for", value_name = "TIME", value_parser = durations::read)]
    duration: Option<Duration>,
    /// Maximum number of messages per batch, 1 to 10 [default: 10]
    #[arg(long, value_name = "N")]
    batch_size: Option<usize>,
    /// Run time of the retry handler per batch [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    handler_run_time: Option<Duration>,
    /// Time until a poller receives a visible message [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    poll_delay: Option<Duration>,
    /// Maximum number of messages in flight; once it is reached, SQS delivers nothing [default: 120000]
    #[arg(long, value_name = "N")]
    in_flight_limit: Option<usize>,
    /// Seed for everything random [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write retries, outcomes and queue depth per minute to a CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write an HTML page to share: charts, costs and limits of the run, and its recovery with each kind of jitter
    #[arg(long, value_name = "FILE.html", value_parser = flags::html)]
    pub report: Option<PathBuf>,
    /// In the report, compare the policy with a second one. Give only the flags that differ, such as
    /// jitter=none,max-backoff=1h
    #[arg(long, value_name = "FLAG=VALUE,…", requires = "report", value_parser = PolicyChanges::read)]
    pub vs: Option<PolicyChanges>,
}

impl SimulationFlags {
    /// Builds the scenario from the flags, without faults or operators. Does not check its settings.
    pub fn scenario(&self) -> Scenario {
        let default = Scenario::default();
        let outage = self.outage.unwrap_or(default.outage);
        let spread = if outage.is_zero() { Duration::from_secs(3_600) } else { outage };
        Scenario {
            targets: if self.targets.is_empty() { default.targets } else { self.targets.clone() },
            seed: self.seed.unwrap_or(default.seed),
            events: self.events.unwrap_or(default.events),
            arrival_spread: self.arrival_spread.unwrap_or(spread),
            outage,
            failure_rate: self.failure_rate.unwrap_or(default.failure_rate),
            poison: self.poison.unwrap_or(default.poison),
            flapping: self.flapping,
            hang: self.hang,
            capacity: self.capacity,
            retry_after: self.retry_after.or(default.retry_after),
            payload_size: self.payload_size.unwrap_or(default.payload_size),
            run_time: self.run_time.unwrap_or(default.run_time),
            duration: self.duration.unwrap_or(default.duration),
            batch_size: self.batch_size.unwrap_or(default.batch_size),
            handler_run_time: self.handler_run_time.unwrap_or(default.handler_run_time),
            poll_delay: self.poll_delay.unwrap_or(default.poll_delay),
            in_flight_limit: self.in_flight_limit.unwrap_or(default.in_flight_limit),
            ..default
        }
    }

    fn retry_now(&self) -> Option<(Duration, Duration)> {
        self.retry_now.map(|at| (at, self.within.unwrap_or(DEFAULT_WITHIN)))
    }

    /// Returns the given flags, except `--seed` and `--csv`. A report's path becomes `report.html`, so that it is
    /// written to the current folder.
    fn words(&self) -> Vec<String> {
        let count = |count: Option<usize>| count.map(|count| count.to_string());
        let time = |time: Option<Duration>| time.map(durations::flag);
        let flags = [
            ("--events", count(self.events)),
            ("--arrival-spread", time(self.arrival_spread)),
            ("--outage", time(self.outage)),
            ("--failure-rate", self.failure_rate.map(|rate| rate.to_string())),
            ("--poison", self.poison.map(|share| share.to_string())),
            ("--flapping", time(self.flapping)),
            ("--hang", time(self.hang)),
            ("--capacity", self.capacity.map(|times| times.to_string())),
            ("--retry-after", time(self.retry_after)),
            ("--retry-now", time(self.retry_now)),
            ("--within", time(self.within)),
            ("--payload-size", count(self.payload_size)),
            ("--run-time", time(self.run_time)),
            ("--for", time(self.duration)),
            ("--batch-size", count(self.batch_size)),
            ("--handler-run-time", time(self.handler_run_time)),
            ("--poll-delay", time(self.poll_delay)),
            ("--in-flight-limit", count(self.in_flight_limit)),
            ("--report", self.report.as_ref().map(|_| "report.html".to_owned())),
            ("--vs", self.vs.as_ref().map(ToString::to_string)),
        ];
        let targets = self.targets.iter().map(|target| ("--target", Some(target_text(target))));
        let flags = targets.chain(flags);
        flags.filter_map(|(flag, value)| Some([flag.to_owned(), value?])).flatten().collect()
    }
}

/// Faults to inject into a simulation, besides the target's failures.
#[derive(Debug, Default, Args)]
pub struct FaultFlags {
    /// Inject every fault at random, except that no message expires early; with `storm`, instead fail every call of one
    /// kind for 1 to 60 minutes at a time
    #[arg(long, value_name = "MIX", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "mixed")]
    chaos: Option<Chaos>,
    /// Inject one fault at this rate (0 to 1), throughout the run or from FROM until UNTIL; repeatable. With --chaos,
    /// this replaces the fault's rate. To list all faults, pass an unknown name
    #[arg(long = "fault", value_name = "NAME=RATE[@FROM..UNTIL]", value_parser = read_fault)]
    faults: Vec<(Fault, Strikes)>,
    /// Run the simulation with this many seeds, starting at --seed, on all cores, and stop at the first seed that
    /// breaks an invariant
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["csv", "report", "vs"],
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub seeds: Option<u64>,
}

/// A mix of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Chaos {
    Mixed,
    Storm,
}

impl FaultFlags {
    fn scenario(&self, scenario: &Scenario, seed: u64) -> Scenario {
        let mix = match self.chaos {
            Some(Chaos::Mixed) => Faults::chaos(seed, scenario.duration),
            Some(Chaos::Storm) => Faults::storm(seed, scenario.duration),
            None => Faults::default(),
        };
        let faults = self.faults.iter().cloned().fold(mix, |mix, (fault, strikes)| mix.with(fault, strikes));
        Scenario { seed, faults, ..scenario.clone() }
    }

    fn words(&self) -> Vec<String> {
        let Self { chaos, faults, seeds: _ } = self;
        let chaos = chaos.map(|mix| match mix {
            Chaos::Mixed => "--chaos".to_owned(),
            Chaos::Storm => "--chaos=storm".to_owned(),
        });
        let faults = faults.iter().flat_map(|(fault, strikes)| ["--fault".to_owned(), text(*fault, strikes)]);
        chaos.into_iter().chain(faults).collect()
    }
}

/// Parses `NAME`, `NAME:SHARE` or `NAME:SHARE,outage=TIME`.
fn read_target(text: &str) -> Result<SimulatedTarget, String> {
    let form = "must be NAME[:SHARE][,outage=TIME], such as export:0.3,outage=6h";
    let (head, outage) = match text.split_once(',') {
        Some((head, outage)) => (head, Some(outage.strip_prefix("outage=").ok_or(form)?)),
        None => (text, None),
    };
    let (name, share) = head.split_once(':').unwrap_or((head, "1"));
    Ok(SimulatedTarget {
        name: name.into(),
        share: share.parse().map_err(|_| form)?,
        outage: outage.map(durations::read).transpose()?,
    })
}

/// Formats a target so that [`read_target`] can parse it.
fn target_text(SimulatedTarget { name, share, outage }: &SimulatedTarget) -> String {
    let outage = outage.map(|outage| format!(",outage={}", durations::flag(outage))).unwrap_or_default();
    format!("{name}:{share}{outage}")
}

/// Formats a fault so that [`read_fault`] can parse it.
fn text(fault: Fault, Strikes { rate, window }: &Strikes) -> String {
    if *window == Strikes::always(*rate).window {
        return format!("{fault}={rate}");
    }
    format!("{fault}={rate}@{}..{}", durations::flag(window.start), durations::flag(window.end))
}

/// Parses `NAME=RATE` or `NAME=RATE@FROM..UNTIL`.
fn read_fault(text: &str) -> Result<(Fault, Strikes), String> {
    let form = "must be NAME=RATE or NAME=RATE@FROM..UNTIL, such as invoke_throttled=0.1@2h..4h";
    let (name, strikes) = text.split_once('=').ok_or(form)?;
    let fault = name.parse::<Fault>().map_err(|unknown| format!("{name:?} {unknown}"))?;
    let (rate, window) = strikes.split_once('@').unwrap_or((strikes, ""));
    let always = Strikes::always(rate.parse().map_err(|_| form)?);
    if window.is_empty() {
        return Ok((fault, always));
    }
    let (from, until) = window.split_once("..").ok_or(form)?;
    let time = |text: &str| -> Result<Duration, String> {
        durations::read(text).map_err(|problem| format!("{text:?} {problem}"))
    };
    Ok((fault, Strikes { window: time(from)?..time(until)?, ..always }))
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn repeated(line: &str) -> String {
        let simulate = SimulateArguments::augment_args(Command::new("simulate").no_binary_name(true));
        let arguments =
            SimulateArguments::from_arg_matches(&simulate.get_matches_from(shlex::split(line).unwrap()))
                .unwrap();
        arguments.repeat(17)
    }

    #[test]
    fn the_help_names_the_default_of_within() {
        let help = SimulationFlags::augment_args(clap::Command::new("simulate")).render_help().to_string();
        let default = durations::text(DEFAULT_WITHIN);
        assert!(help.contains(&format!("at most 11h [default: {default}]")), "{help}");
    }

    #[test]
    fn repeated_command_has_every_relevant_flag() {
        let start = "cargo run --release -p comeback -- simulate --seed 17";
        for (line, expected) in [
            (
                "--outage 90m --csv a.csv --report /elsewhere/a.html --vs jitter=none --max-age 12h --json",
                " --outage 1h30m --report report.html --vs jitter=none --max-age 12h --json",
            ),
            (
                "--chaos --seeds=200 --fault clock_skew=0.5 --fault handler_outage=1@90m..4h --seed 7",
                " --chaos --fault clock_skew=0.5 --fault handler_outage=1@1h30m..4h",
            ),
            (
                "--events 7 --arrival-spread 1h --failure-rate 0.5 --retry-after 1m --payload-size 9 --run-time 1s",
                " --events 7 --arrival-spread 1h --failure-rate 0.5 --retry-after 1m --payload-size 9 --run-time 1s",
            ),
            (
                "--for 2d --batch-size 3 --handler-run-time 2s --poll-delay 20ms --in-flight-limit 5",
                " --for 2d --batch-size 3 --handler-run-time 2s --poll-delay 20ms --in-flight-limit 5",
            ),
            ("--chaos=storm", " --chaos=storm"),
            (
                "--poison 0.3 --flapping 10m --hang 30s --capacity 2",
                " --poison 0.3 --flapping 10m --hang 30s --capacity 2",
            ),
            ("--within 1m --retry-now 3h2m", " --retry-now 3h2m --within 1m"),
            (
                "--target orders:0.7 --target export,outage=90m --policies 'orders MAX_AGE=2h' --backoffs 20s,5m",
                " --target orders:0.7 --target export:1,outage=1h30m --backoffs 20s,5m --policies 'orders MAX_AGE=2h'",
            ),
            ("--chaos=mixed", " --chaos"),
            ("--non-retryable-errors ''", " --non-retryable-errors ''"),
        ] {
            assert_eq!(repeated(line), format!("{start}{expected}"));
        }
    }

    #[test]
    fn many_seeds_write_no_file_and_compare_nothing() {
        let simulate = SimulateArguments::augment_args(Command::new("simulate").no_binary_name(true));
        for words in ["--csv a.csv", "--report a.html", "--vs jitter=none"] {
            let refused = simulate.clone().try_get_matches_from(format!("--seeds 2 {words}").split(' '));
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("cannot be used with"), "{words}: {refused}");
        }
    }

    #[test]
    fn a_fault_has_a_rate_and_may_have_a_window() {
        assert_eq!(read_fault("clock_skew=0.5"), Ok((Fault::ClockSkew, Strikes::always(0.5))));
        let window = Duration::from_secs(5_400)..Duration::from_secs(14_400);
        let outage = (Fault::HandlerOutage, Strikes { rate: 1.0, window });
        assert_eq!(read_fault("handler_outage=1@90m..4h"), Ok(outage.clone()));
        for (fault, strikes) in [outage, (Fault::ClockSkew, Strikes::always(0.1))] {
            assert_eq!(read_fault(&text(fault, &strikes)), Ok((fault, strikes)));
        }
    }

    #[test]
    fn refusal_gives_the_expected_form() {
        let form = "must be NAME=RATE or NAME=RATE@FROM..UNTIL, such as invoke_throttled=0.1@2h..4h";
        for text in ["clock_skew", "clock_skew=often", "clock_skew=0.5@2h", "clock_skew="] {
            assert_eq!(read_fault(text), Err(form.into()), "{text}");
        }
        let unknown = read_fault("gremlins=1").unwrap_err();
        assert!(unknown.starts_with("\"gremlins\" must be one of duplicate_delivery, "), "{unknown}");
        let soon = read_fault("clock_skew=1@soon..4h").unwrap_err();
        assert!(soon.starts_with("\"soon\" must be whole seconds"), "{soon}");
    }

    #[test]
    fn target_may_have_a_share_and_an_outage() {
        let target = |name: &str, share, outage| SimulatedTarget { name: name.into(), share, outage };
        assert_eq!(read_target("orders"), Ok(target("orders", 1.0, None)));
        let export = target("export", 0.3, Some(Duration::from_secs(21_600)));
        assert_eq!(read_target("export:0.3,outage=6h"), Ok(export));
        let form = "must be NAME[:SHARE][,outage=TIME], such as export:0.3,outage=6h";
        for text in ["export:", "export:often", "export,6h", "export:1,share=2"] {
            assert_eq!(read_target(text), Err(form.into()), "{text}");
        }
    }

    #[test]
    fn a_single_fault_replaces_its_rate_in_chaos() {
        let scenario = Scenario::default();
        let flags = FaultFlags { chaos: Some(Chaos::Mixed), ..FaultFlags::default() };
        let chaos = flags.scenario(&scenario, 7);
        assert_eq!((chaos.seed, chaos.faults), (7, Faults::chaos(7, scenario.duration)));
        let never = Strikes::always(0.0);
        let flags = FaultFlags { faults: vec![(Fault::HandlerOutage, never.clone())], ..flags };
        let faults = flags.scenario(&scenario, 7).faults;
        assert_eq!(faults, Faults::chaos(7, scenario.duration).with(Fault::HandlerOutage, never));
    }
}
