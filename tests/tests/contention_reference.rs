//! The contention study in reference mode against the Python program of the published model: the
//! same seed gives the same numbers to the last digit.

use std::fmt::Debug;
use std::process::Command;
use std::str::FromStr;

use comeback_contention::{Point, Strategy, Study};
use comeback_tests::root;

const FIGURES: &str = include_str!("../contention/reference_figures.txt");

/// The Python program's arguments, and what it printed.
fn figures() -> Vec<(&'static str, &'static str)> {
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#'));
    let figures: Vec<_> =
        lines.map(|line| line.split_once('\t').expect("arguments, a tab, the output")).collect();
    assert_eq!(figures.len(), 7, "the figures were not read");
    figures
}

/// A flag's values.
fn values<T: FromStr<Err: Debug>>(arguments: &str, flag: &str) -> Vec<T> {
    let mut words = arguments.split_whitespace();
    let list =
        words.find(|word| *word == flag).and_then(|_| words.next()).expect("every line has every flag");
    list.split(',').map(|value| value.parse().expect("a value the Python program took")).collect()
}

fn study(arguments: &str) -> Study {
    let [runs] = values(arguments, "--runs")[..] else { panic!("one number of runs") };
    let [seed] = values(arguments, "--seed")[..] else { panic!("one seed") };
    let strategies: Vec<Strategy> = values(arguments, "--strategy");
    let of = |clients| strategies.iter().map(move |&strategy| Point { clients, strategy, runs });
    let points = values(arguments, "--clients").into_iter().flat_map(of).collect();
    Study::new(points, seed, true).expect("a valid study")
}

#[test]
fn the_study_gives_the_python_programs_figures() {
    for (arguments, figures) in figures() {
        let report = study(arguments).run(&|_| {});
        assert_eq!(serde_json::to_string(&report).expect("plain JSON"), figures, "{arguments}");
    }
}

#[test]
fn the_python_program_still_gives_these_figures() {
    for (arguments, figures) in figures() {
        let output = Command::new("python3")
            .arg(root().join("tests/contention/reference_model.py"))
            .args(arguments.split_whitespace())
            .output()
            .expect("python3 is installed");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.trim_end(), figures, "{arguments}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
