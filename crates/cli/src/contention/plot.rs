//! The plots, as SVG that stands alone: no script, no network, colours as attributes.

mod arrivals;
mod axis;
mod lines;

use std::path::{Path, PathBuf};

use comeback_timelapse::contention::{Report, Strategy};
use plotters::prelude::*;

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

const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const MUTED: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

type Drawing = Result<(), Box<dyn std::error::Error>>;

/// A drawing as text. Nothing is written on the way, so nothing but a bug can fail.
fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawing,
) -> String {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| draw(&root))
            .and_then(|()| root.present().map_err(Into::into))
            .expect("BUG: a plot could not be drawn");
    }
    text
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
