//! The plots, as SVG.

mod arrivals;
mod colours;
mod lines;

use std::path::{Path, PathBuf};

use comeback_contention::Report;

use crate::failure::Failure;

use lines::Lines;

/// Writes `calls.svg`, `time.svg` and `arrivals.svg`; the folder is made if it is missing.
pub(super) fn write(folder: &Path, report: &Report, seed: u64) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(folder).map_err(|problem| Failure::write(folder, problem))?;
    let plots = [
        ("calls.svg", Lines::of_calls(report).draw()),
        ("time.svg", Lines::of_time(report).draw()),
        ("arrivals.svg", arrivals::draw(report, seed)),
    ];
    let write = |(name, svg): (&str, String)| {
        let file = folder.join(name);
        std::fs::write(&file, svg).map_err(|problem| Failure::write(&file, problem))?;
        Ok(file)
    };
    plots.into_iter().map(write).collect()
}
