//! The plots, as SVG.

mod arrivals;
mod axis;
mod lines;

use std::path::{Path, PathBuf};

use comeback_timelapse::contention::{Report, Strategy};
use plotters::style::RGBColor;

use crate::failure::Failure;
use crate::svg::{Area, Drawing, FONT, GRID, INK, MUTED, svg};

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

/// Told apart by people who see no red or green, too.
fn colour(strategy: Strategy) -> RGBColor {
    match strategy {
        Strategy::None => RGBColor(0x55, 0x55, 0x55),
        Strategy::Exponential => RGBColor(0xd5, 0x5e, 0x00),
        Strategy::Equal => RGBColor(0xaa, 0x44, 0x99),
        Strategy::Full => RGBColor(0x00, 0x72, 0xb2),
        Strategy::Decorrelated => RGBColor(0x00, 0x8f, 0x6b),
    }
}
