//! What every plot shares. SVG that stands alone: no script, no network, colours as attributes.

use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) const FONT: &str = "sans-serif";
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(crate) const MUTED: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub(crate) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

/// Told apart by people who see no red or green, too.
pub(crate) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(crate) const ORANGE: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub(crate) const GREEN: RGBColor = RGBColor(0x00, 0x8f, 0x6b);
pub(crate) const PURPLE: RGBColor = RGBColor(0xaa, 0x44, 0x99);
pub(crate) const GREY: RGBColor = RGBColor(0x55, 0x55, 0x55);

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
