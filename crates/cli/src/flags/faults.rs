use std::time::Duration;

use clap::{Args, ValueEnum};
use comeback_timelapse::{Fault, Faults, OperatorPause, Scenario, Strikes};

use crate::text::durations;

/// What goes wrong in a simulation besides the target. The rate that `--chaos` gives each
/// fault stands in `comeback_timelapse`, in `Faults::chaos`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Faults (drawn from the seed)")]
pub(crate) struct FaultFlags {
    /// Let everything go wrong now and then, except the end of retention; or, with `storm`, let each call
    /// of the handler and its end fail every time for 1 to 60 minutes
    #[arg(long, value_name = "MIX", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "mixed")]
    chaos: Option<Chaos>,
    /// Let one thing go wrong: at this rate, from 0 to 1, and only within this time of the run, if
    /// one is given. May be repeated; beside --chaos it replaces that fault's rate. An unknown name is
    /// refused with a list of all faults
    #[arg(long = "fault", value_name = "NAME=RATE[@FROM..UNTIL]", value_parser = read)]
    faults: Vec<(Fault, Strikes)>,
    /// Run this many seeds, from --seed on, on all cores; stop at the first that breaks an invariant
    #[arg(long, value_name = "N", conflicts_with_all = ["csv", "report"], value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
}

/// A mix of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Chaos {
    Mixed,
    Storm,
}

impl FaultFlags {
    /// The scenario under another seed, with its faults.
    pub(crate) fn scenario(&self, scenario: &Scenario, seed: u64) -> Scenario {
        let mix = match self.chaos {
            Some(Chaos::Mixed) => Faults::chaos(seed, scenario.duration),
            Some(Chaos::Storm) => Faults::storm(seed, scenario.duration),
            None => Faults::default(),
        };
        let faults = self.faults.iter().cloned().fold(mix, |mix, (fault, strikes)| mix.with(fault, strikes));
        let pauses = match self.chaos {
            Some(Chaos::Mixed) => OperatorPause::chaos(seed, scenario.duration),
            _ => scenario.pauses.clone(),
        };
        Scenario { seed, faults, pauses, ..scenario.clone() }
    }

    /// The flags that were given, and their values.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let Self { chaos, faults, seeds } = self;
        let chaos = chaos.map(|mix| match mix {
            Chaos::Mixed => ("--chaos", String::new()),
            Chaos::Storm => ("--chaos=storm", String::new()),
        });
        let faults = faults.iter().map(|(fault, strikes)| ("--fault", text(*fault, strikes)));
        chaos.into_iter().chain(faults).chain(seeds.map(|seeds| ("--seeds", seeds.to_string()))).collect()
    }
}

/// Writes what [`read`] reads.
fn text(fault: Fault, Strikes { rate, window }: &Strikes) -> String {
    if *window == Strikes::always(*rate).window {
        return format!("{fault}={rate}");
    }
    format!("{fault}={rate}@{}..{}", durations::flag(window.start), durations::flag(window.end))
}

/// Reads `NAME=RATE` or `NAME=RATE@FROM..UNTIL`.
fn read(text: &str) -> Result<(Fault, Strikes), String> {
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
    use super::*;

    #[test]
    fn a_fault_has_a_rate_and_may_have_a_window() {
        assert_eq!(read("clock_skew=0.5"), Ok((Fault::ClockSkew, Strikes::always(0.5))));
        let window = Duration::from_secs(5_400)..Duration::from_secs(14_400);
        let outage = (Fault::HandlerOutage, Strikes { rate: 1.0, window });
        assert_eq!(read("handler_outage=1@90m..4h"), Ok(outage.clone()));
        for (fault, strikes) in [outage, (Fault::ClockSkew, Strikes::always(0.1))] {
            assert_eq!(read(&text(fault, &strikes)), Ok((fault, strikes)));
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_it_must_be() {
        let form = "must be NAME=RATE or NAME=RATE@FROM..UNTIL, such as invoke_throttled=0.1@2h..4h";
        for text in ["clock_skew", "clock_skew=often", "clock_skew=0.5@2h", "clock_skew="] {
            assert_eq!(read(text), Err(form.into()), "{text}");
        }
        let unknown = read("gremlins=1").unwrap_err();
        assert!(unknown.starts_with("\"gremlins\" must be one of duplicate_delivery, "), "{unknown}");
        let soon = read("clock_skew=1@soon..4h").unwrap_err();
        assert!(soon.starts_with("\"soon\" must be whole seconds"), "{soon}");
    }

    #[test]
    fn one_fault_beside_chaos_takes_its_place() {
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
