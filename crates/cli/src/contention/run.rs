use std::io::Write;

use comeback_contention::{Report, Study};

use crate::clock::timed;
use crate::contention::arguments::ContentionArguments;
use crate::contention::{figures, plot, tables};
use crate::failure::Failure;
use crate::text::durations;
use crate::text::terminal::Progress;

pub(crate) fn run(arguments: &ContentionArguments) -> Result<(), Failure> {
    let study = Study::new(arguments.points(), arguments.seed, arguments.reference)
        .map_err(|refused| Failure::Refused(vec![refused.to_string()]))?;
    let (report, wall_time) = timed(|| report_of(&study));
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json(&report))?;
    } else {
        writeln!(out, "{}\n\nwall time: {}", tables::tables(&report), durations::text(wall_time))?;
    }
    write_files(arguments, &report)
}

fn report_of(study: &Study) -> Report {
    let progress = Progress::new(study.work(), "{percent}% of the work, {eta} left");
    study.run(&|done| progress.advance(done))
}

/// One line, with the Python program's digits: the shortest that read back as the same number.
fn json(report: &Report) -> String {
    serde_json::to_string(report).expect("BUG: a report is plain JSON")
}

fn write_files(arguments: &ContentionArguments, report: &Report) -> Result<(), Failure> {
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

    use super::*;
    use crate::contention::arguments::tests::parse;

    fn report(line: &str) -> Report {
        let arguments = parse(line).unwrap();
        report_of(&Study::new(arguments.points(), arguments.seed, arguments.reference).unwrap())
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

    #[test]
    fn refuses_what_is_no_study() {
        let refused = run(&parse("--clients 20000 --strategy none").unwrap()).unwrap_err();
        assert!(
            refused.to_string().starts_with("20000 clients with strategy none: must be at most 10000"),
            "{refused}"
        );
        assert!(matches!(refused, Failure::Refused(_)));
    }
}
