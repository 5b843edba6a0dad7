//! `comeback contention`: the contention study, as tables, CSV, JSON and plots.

mod plot;
mod tables;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use comeback_contention::{Cell, MAX_CLIENTS_WITHOUT_BACKOFF, Point, Strategy, Study, StudyReport};
use comeback_operate::{Failure, durations};
use comeback_rehearsal::flags;

use crate::clock::timed;
use crate::failure::{CommandFailure, inaccessible};
use crate::output::print_json_line;
use crate::tables::Meter;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback contention --plot out/                      the published experiment, with its plots
  comeback contention --runs 10000                     the same, with standard errors far below 1 %
  comeback contention --clients 100,1000,10000,100000  how calls grow with clients: the last row
  comeback contention --reference --seed 42 --clients 50 --runs 20 --strategy full --json
                                                       what a Python program of the model prints";

#[derive(Debug, Args)]
pub(crate) struct ContentionArguments {
    /// Numbers of clients, each at most 100000, or at most 10000 for the 'none' strategy [default: 10,20,30 … 190]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    clients: Vec<u32>,
    /// Backoff strategies: none, exponential, equal, full, decorrelated [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    strategy: Vec<Strategy>,
    /// Number of runs for each combination of a number of clients and a strategy [default: 100, or 1 for more than 1000
    /// clients]
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw random numbers as CPython does, to match a Python implementation of the same model to the last digit
    #[arg(long)]
    reference: bool,
    /// Print the unrounded means as JSON; the same arguments give the same bytes
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the means and their standard errors to a CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write calls.svg, time.svg and arrivals.svg into this folder
    #[arg(long, value_name = "DIR", value_parser = flags::folder)]
    plot: Option<PathBuf>,
}

/// Above this number of clients, the default is a single run, which already averages over many clients.
const ONE_RUN_ABOVE: u32 = 1_000;

impl ContentionArguments {
    /// Returns the points to simulate. By default, leaves out those that would take too long.
    fn points(&self) -> Vec<Point> {
        let published: Vec<u32> = (10..=190).step_by(10).collect();
        let clients = if self.clients.is_empty() { &published } else { &self.clients };
        let strategies: &[Strategy] = if self.strategy.is_empty() { &Strategy::ALL } else { &self.strategy };
        let left_out = |clients, strategy| {
            self.strategy.is_empty() && strategy == Strategy::None && clients > MAX_CLIENTS_WITHOUT_BACKOFF
        };
        let mut points = Vec::new();
        for &clients in clients {
            let runs = self.runs.unwrap_or(if clients > ONE_RUN_ABOVE { 1 } else { 100 });
            for &strategy in strategies.iter().filter(|&&strategy| !left_out(clients, strategy)) {
                points.push(Point { clients, strategy, runs });
            }
        }
        points
    }
}

pub(crate) fn run(arguments: &ContentionArguments) -> Result<(), CommandFailure> {
    let study = Study::new(arguments.points(), arguments.seed, arguments.reference)
        .map_err(|refused| Failure::refused(refused.to_string()))?;
    let (report, wall_time) = timed(|| report_of(&study));
    if arguments.json {
        // Written first, so that a failure is the only JSON.
        write_files(arguments, &report)?;
        // Prints the whole object on one line, with each number in the shortest form that parses to the same value, as
        // the published Python program does.
        return print_json_line(&report);
    }
    let (tables, wall_time) = (tables::tables(&report), durations::text(wall_time));
    writeln!(anstream::stdout(), "{tables}\n\nwall time: {wall_time}")?;
    write_files(arguments, &report)
}

fn report_of(study: &Study) -> StudyReport {
    let progress = Meter::new(study.work(), "{percent}% of the work, {eta} left");
    study.run(&|done| progress.advance(done))
}

fn write_files(arguments: &ContentionArguments, report: &StudyReport) -> Result<(), CommandFailure> {
    if let Some(path) = &arguments.csv {
        write_csv(path, report).map_err(|problem| inaccessible(path, problem))?;
    }
    if let Some(folder) = &arguments.plot {
        plot::write_all(folder, report, arguments.seed)?;
    }
    Ok(())
}

/// Writes the report to a CSV file, with a row for each combination of strategy and number of clients.
fn write_csv(file: &Path, report: &StudyReport) -> csv::Result<()> {
    let mut writer = csv::Writer::from_path(file)?;
    let head = ["clients", "strategy", "runs", "time_ms", "time_ms_error", "calls", "calls_error"];
    writer.write_record(head)?;
    for cell in &report.cells {
        let Cell { clients, strategy, runs, time_ms, time_ms_error, calls, calls_error } = *cell;
        writer.serialize((clients, strategy, runs, time_ms, time_ms_error, calls, calls_error))?;
    }
    Ok(writer.flush()?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: ContentionArguments,
    }

    fn parse(line: &str) -> Result<ContentionArguments, clap::Error> {
        let words = std::iter::once("contention").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.arguments)
    }

    fn points(line: &str) -> Vec<Point> {
        parse(line).unwrap().points()
    }

    #[test]
    fn the_default_is_the_published_grid() {
        let points = points("");
        assert_eq!(points.len(), 19 * 5);
        assert_eq!(points[0], Point { clients: 10, strategy: Strategy::None, runs: 100 });
        assert_eq!(points[94], Point { clients: 190, strategy: Strategy::Decorrelated, runs: 100 });
    }

    #[test]
    fn lists_keep_their_order() {
        let point = |clients, strategy| Point { clients, strategy, runs: 7 };
        let expected = [
            point(20, Strategy::Full),
            point(20, Strategy::Equal),
            point(10, Strategy::Full),
            point(10, Strategy::Equal),
        ];
        assert_eq!(points("--clients 20,10 --strategy full,equal --runs 7"), expected);
    }

    #[test]
    fn many_clients_are_run_once_and_without_none_unless_it_is_named() {
        let points_of = points("--clients 1000,1001,10001");
        let runs: Vec<u32> = points_of.iter().map(|point| point.runs).collect();
        assert_eq!(runs, [[100; 5].as_slice(), &[1; 9]].concat());
        assert_eq!(points_of.iter().filter(|point| point.strategy == Strategy::None).count(), 2);
        assert_eq!(points("--clients 10001 --strategy none").len(), 1);
    }

    #[test]
    fn an_unknown_strategy_is_refused_with_a_list() {
        let error = parse("--strategy full,fibonacci").unwrap_err().to_string();
        assert!(
            error.contains("'fibonacci'")
                && error.contains("must be none, exponential, equal, full or decorrelated"),
            "{error}"
        );
    }

    fn report(line: &str) -> StudyReport {
        let arguments = parse(line).unwrap();
        report_of(&Study::new(arguments.points(), arguments.seed, arguments.reference).unwrap())
    }

    #[test]
    fn files_hold_what_was_measured() {
        let folder = std::env::temp_dir().join(format!("comeback-contention-{}", std::process::id()));
        let mut arguments = parse("--clients 5,10 --runs 3").unwrap();
        arguments.csv = Some(folder.join("figures.csv"));
        arguments.plot = Some(folder.join("plots"));
        let report = report("--clients 5,10 --runs 3");
        let missing = write_files(&arguments, &report).unwrap_err().to_string();
        assert!(missing.contains("figures.csv: "), "{missing}");
        std::fs::create_dir_all(&folder).unwrap();
        write_files(&arguments, &report).unwrap();
        let csv = std::fs::read_to_string(folder.join("figures.csv")).unwrap();
        assert_eq!(csv.lines().count(), 11);
        assert!(csv.starts_with("clients,strategy,runs,time_ms,time_ms_error,calls,calls_error\n5,none,3,"));
        for file in ["calls.svg", "time.svg", "arrivals.svg"] {
            let svg = std::fs::read_to_string(folder.join("plots").join(file)).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{file}");
            for strategy in Strategy::ALL {
                assert!(svg.contains(strategy.name()), "{file} does not name {strategy}");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
