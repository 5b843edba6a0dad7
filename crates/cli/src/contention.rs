//! `comeback simulate`: the contention study, as tables, CSV, JSON and plots.

mod arguments;
mod figures;
mod plot;
mod tables;

use std::io::Write;

use comeback_contention::{Report, Study};
use indicatif::{ProgressBar, ProgressStyle};

use crate::clock::timed;
use crate::duration;
use crate::failure::Failure;

pub(crate) use arguments::{EXAMPLES, SimulateArguments};

pub(crate) fn simulate(arguments: &SimulateArguments) -> Result<(), Failure> {
    let study = Study::new(arguments.points(), arguments.seed, arguments.reference)
        .map_err(|refused| Failure::Refused(vec![refused.to_string()]))?;
    let (report, wall_time) = timed(|| with_bar(&study));
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json(&report))?;
    } else {
        writeln!(out, "{}\n\nwall time: {}", tables::tables(&report), duration::text(wall_time))?;
    }
    write_files(arguments, &report)
}

/// Runs the study under a bar on standard error, hidden where that is no terminal.
fn with_bar(study: &Study) -> Report {
    let style = ProgressStyle::with_template("{wide_bar} {percent}% of the work, {eta} left")
        .expect("BUG: the template is fixed");
    let bar = ProgressBar::new(study.work()).with_style(style);
    let report = study.run(&|done| bar.inc(done));
    bar.finish_and_clear();
    report
}

/// One line, with the digits of the Python program: the shortest that read back as the same number.
fn json(report: &Report) -> String {
    serde_json::to_string(report).expect("BUG: a report is plain JSON")
}

fn write_files(arguments: &SimulateArguments, report: &Report) -> Result<(), Failure> {
    if let Some(path) = &arguments.csv {
        figures::write(path, report).map_err(|problem| Failure::write(path, problem))?;
    }
    if let Some(folder) = &arguments.plot {
        for path in plot::write(folder, report, arguments.seed)? {
            anstream::eprintln!("wrote {}", path.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use comeback_contention::Strategy;

    use super::arguments::tests::parse;
    use super::*;

    fn report(line: &str) -> Report {
        let arguments = parse(line).unwrap();
        with_bar(&Study::new(arguments.points(), arguments.seed, arguments.reference).unwrap())
    }

    #[test]
    fn prints_the_numbers_of_the_python_program() {
        let report = report("--reference --seed 42 --clients 50 --runs 20 --strategy full");
        assert_eq!(
            json(&report),
            r#"{"cells":[{"clients":50,"strategy":"full","time_ms":2772.105011735381,"calls":333.65}]}"#
        );
    }

    #[test]
    fn files_hold_what_was_measured() {
        let folder = std::env::temp_dir().join(format!("comeback-simulate-{}", std::process::id()));
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

    #[test]
    fn refuses_what_is_no_study() {
        let refused = simulate(&parse("--clients 20000 --strategy none").unwrap()).unwrap_err();
        assert!(
            refused.to_string().starts_with("20000 clients with strategy none: must be at most 10000"),
            "{refused}"
        );
        assert!(matches!(refused, Failure::Refused(_)));
    }
}
