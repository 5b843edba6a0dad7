//! The command that makes a run again, as it runs from a checkout.

use crate::simulate::arguments::SimulateArguments;
use crate::text::terminal::{FROM_CHECKOUT, command_line};

/// Where the command shown on a page writes it: always here, so that a page does not depend on its
/// place.
const PAGE: &str = "report.html";

/// The command that makes the run of one seed again, and its page. Ready to paste into a shell.
pub(super) fn command(arguments: &SimulateArguments, seed: u64) -> String {
    let mut words = vec!["simulate".to_owned(), "--seed".into(), seed.to_string()];
    let SimulateArguments { policy, simulation, faults, json } = arguments;
    let policy = policy.given().into_iter().map(|(flag, value)| (format!("--{flag}"), value));
    let others = simulation.given().into_iter().chain(faults.given());
    for (flag, value) in others.map(|(flag, value)| (flag.to_owned(), value)).chain(policy) {
        match flag.as_str() {
            // The seed is named already, and a table of minutes changes nothing.
            "--seed" | "--seeds" | "--csv" => {}
            "--report" => words.extend([flag, PAGE.into()]),
            "--chaos" | "--chaos=storm" => words.push(flag),
            _ => words.extend([flag, value]),
        }
    }
    words.extend(json.then(|| "--json".into()));
    command_line(FROM_CHECKOUT.into_iter().chain(words.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn repeated(line: &[&str]) -> String {
        let simulate = SimulateArguments::augment_args(Command::new("simulate").no_binary_name(true));
        let arguments = SimulateArguments::from_arg_matches(&simulate.get_matches_from(line)).unwrap();
        command(&arguments, 17)
    }

    #[test]
    fn the_command_has_every_flag_that_matters() {
        let line = [
            "--outage",
            "90 m",
            "--csv",
            "a.csv",
            "--report",
            "/elsewhere/a.html",
            "--vs",
            "jitter=none",
            "--max-age",
            "12h",
            "--json",
        ];
        assert_eq!(
            repeated(&line),
            "cargo run --release -p comeback -- simulate --seed 17 --outage 1h30m --report report.html --vs jitter=none --max-age 12h --json"
        );
        assert_eq!(repeated(&["--seed", "7"]), "cargo run --release -p comeback -- simulate --seed 17");
    }

    #[test]
    fn faults_are_among_them_and_the_number_of_seeds_is_not() {
        let line =
            ["--chaos", "--seeds=200", "--fault", "clock_skew=0.5", "--fault", "handler_outage=1@90m..4h"];
        assert_eq!(
            repeated(&line),
            "cargo run --release -p comeback -- simulate --seed 17 --chaos --fault clock_skew=0.5 --fault handler_outage=1@1h30m..4h"
        );
    }

    #[test]
    fn a_storm_is_named() {
        assert_eq!(
            repeated(&["--chaos=storm"]),
            "cargo run --release -p comeback -- simulate --seed 17 --chaos=storm"
        );
        assert_eq!(
            repeated(&["--chaos=mixed"]),
            "cargo run --release -p comeback -- simulate --seed 17 --chaos"
        );
    }

    #[test]
    fn values_are_one_word_to_a_shell() {
        let globs = ["--non-retryable-errors", "Order*,It's"];
        assert_eq!(
            repeated(&globs),
            "cargo run --release -p comeback -- simulate --seed 17 --non-retryable-errors \"Order*,It's\""
        );
        let none = ["--non-retryable-errors", ""];
        assert_eq!(
            repeated(&none),
            "cargo run --release -p comeback -- simulate --seed 17 --non-retryable-errors ''"
        );
    }
}
