use comeback_timelapse::Scenario;

use crate::arguments::ReplayArguments;

/// Where the page is written to by the command it shows: not where it was, so that a page does not
/// depend on its place.
const PAGE: &str = "report.html";

/// The command that gives the same page.
pub(super) fn repeating(arguments: &ReplayArguments, scenario: &Scenario) -> String {
    let mut words = vec!["comeback".to_owned(), "replay".into(), "--seed".into(), scenario.seed.to_string()];
    let policy = arguments.policy.given().into_iter().map(|(flag, value)| (format!("--{flag}"), value));
    let simulation = arguments.simulation.given().into_iter().map(|(flag, value)| (flag.to_owned(), value));
    for (flag, value) in simulation.chain(policy) {
        match flag.as_str() {
            // What a run writes does not change it; the seed is there.
            "--csv" | "--seed" => {}
            "--report" => words.extend([flag, PAGE.into()]),
            _ => words.extend([flag, quoted(&value)]),
        }
    }
    words.join(" ")
}

/// As a shell reads it as one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn repeated(line: &[&str]) -> String {
        let words = ["comeback", "replay"].iter().chain(line);
        let Command::Replay(replay) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("no replay")
        };
        repeating(&replay, &replay.simulation.scenario())
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
        ];
        assert_eq!(
            repeated(&line),
            "comeback replay --seed 1 --outage 1h30m --report report.html --vs jitter=none --max-age 12h"
        );
        assert_eq!(repeated(&["--seed", "7"]), "comeback replay --seed 7");
    }

    #[test]
    fn values_are_one_word_to_a_shell() {
        let globs = ["--non-retryable-errors", "Order*,It's"];
        assert_eq!(repeated(&globs), r"comeback replay --seed 1 --non-retryable-errors 'Order*,It'\''s'");
    }
}
