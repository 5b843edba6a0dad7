//! SVG that stands alone: no script, no network, colours as attributes.

use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) const FONT: &str = "sans-serif";

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Drawing = Result<(), Box<dyn std::error::Error>>;

/// A drawing as text. Nothing is written on the way, so nothing but a bug can fail.
pub(crate) fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawing) -> String {
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
