//! Helpers for drawing charts as SVG images: colours, frames, lines and labels.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::axis::CountAxis;

const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
/// Colour for headings and titles.
pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Colour for labels and notes.
pub const MUTED: RGBColor = RGBColor(0x66, 0x66, 0x66);
/// Colour for the grid lines behind a drawing.
pub const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

// The colours are distinct even to readers with red-green colour blindness.
/// Blue, for a chart's lines and bars.
pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
/// Orange, for a chart's lines and bars.
pub const ORANGE: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
/// Green, for a chart's lines and bars.
pub const GREEN: RGBColor = RGBColor(0x00, 0x8f, 0x6b);
/// Purple, for a chart's lines and bars.
pub const PURPLE: RGBColor = RGBColor(0xaa, 0x44, 0x99);
/// Grey, for a chart's lines and bars.
pub const GREY: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// A chart colour and its CSS variable in the style sheet of the simulation report.
pub struct Colour {
    /// Name of the colour's CSS variable, without the leading `--`.
    pub name: &'static str,
    light: RGBColor,
    /// The colour's counterpart for dark mode, as a CSS value.
    pub dark: &'static str,
}

/// Every colour that a chart in the simulation report may use.
pub const PALETTE: [Colour; 9] = [
    Colour { name: "paper", light: PAPER, dark: "#17181B" },
    Colour { name: "ink", light: INK, dark: "#EAEAEA" },
    Colour { name: "muted", light: MUTED, dark: "#AFB1B5" },
    Colour { name: "grid", light: GRID, dark: "#3A3C41" },
    Colour { name: "blue", light: BLUE, dark: "#5DB7EA" },
    Colour { name: "orange", light: ORANGE, dark: "#FF9447" },
    Colour { name: "green", light: GREEN, dark: "#35C79C" },
    Colour { name: "purple", light: PURPLE, dark: "#DB8FD2" },
    Colour { name: "grey", light: GREY, dark: "#BDBDBD" },
];

impl Colour {
    /// Formats the light theme's colour exactly as `plotters` does, so that the style sheet's rules match it.
    pub fn light(&self) -> String {
        let RGBColor(red, green, blue) = self.light;
        format!("#{red:02X}{green:02X}{blue:02X}")
    }
}

/// Returns the name that the simulation report's style sheet uses for a chart colour.
pub fn name_of(colour: RGBColor) -> &'static str {
    PALETTE.iter().find(|named| named.light == colour).expect("BUG: a colour outside the palette").name
}

/// Font for all text in charts.
pub const FONT: &str = "sans-serif";

/// The surface on which a chart is drawn.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Result of drawing; an error is a bug in Comeback.
pub type Drawing = Result<(), Box<dyn std::error::Error>>;

/// Draws a chart and returns its SVG text; `size` is in pixels. Panics if `draw` fails.
pub fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawing) -> String {
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

/// Style of a label with its anchor at `side` and `edge`.
pub fn style(size: i32, colour: RGBColor, side: HPos, edge: VPos) -> TextStyle<'static> {
    TextStyle { font: (FONT, size).into_font(), color: colour.to_backend_color(), pos: Pos::new(side, edge) }
}

/// Writes a label so that its anchor is at the point `at`, in pixels.
pub fn write(root: &Area<'_>, text: &str, style: TextStyle<'_>, at: (i32, i32)) -> Drawing {
    Ok(root.draw_text(text, &style, at)?)
}

/// Draws a chart's title, with lines of notes below it.
pub fn header<'a>(
    root: &Area<'_>,
    title: &str,
    notes: impl IntoIterator<Item = &'a str>,
    line_height: usize,
) -> Drawing {
    write(root, title, style(22, INK, HPos::Left, VPos::Top), (24, 18))?;
    let notes = (48..).step_by(line_height).zip(notes);
    notes
        .into_iter()
        .try_for_each(|(y, note)| write(root, note, style(14, MUTED, HPos::Left, VPos::Top), (24, y)))
}

/// The plot area of a chart.
pub type PlotArea<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

/// Size of the labels beside the axes, in pixels. On a phone, charts are scaled down, and the labels are 9 pixels high.
pub const TEXT: i32 = 15;
/// Width of a label below the horizontal axis, including the gap to the next label, in pixels.
const LABEL_WIDTH: u32 = 42;

/// Space around a plot, in pixels, for labels, a header and margins.
#[derive(Clone, Copy, Debug)]
pub struct Padding {
    /// Room above the plot.
    pub top: u32,
    /// Room to the right of the plot.
    pub right: u32,
    /// Room for the labels on the left.
    pub left: u32,
    /// Empty margin below and to the left of the labels.
    pub margin: u32,
}

impl Padding {
    /// The space around a plot on a page, where the heading and the legend are HTML.
    pub const PAGE: Self = Self { top: 12, right: 16, left: 66, margin: 0 };
    /// Room for the labels below the plot.
    pub const BELOW: u32 = 46;

    /// Returns the space around a plot in an image file. The header above the plot is `header` pixels high.
    pub const fn below(header: u32) -> Self {
        Self { top: header, right: 24, left: 76, margin: 14 }
    }
}

/// Draws the axes, their titles and the grid of a plot; `y_title` may be empty.
pub fn frame<'a, 'b: 'a, X: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    root: &'a Area<'b>,
    (x, x_title): (X, &str),
    (y, y_title): (CountAxis, &str),
    Padding { top, right, left, margin }: Padding,
) -> Result<PlotArea<'a, 'b, X, CountAxis>, Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(root)
        .margin_top(top)
        .margin_bottom(margin)
        .margin_left(margin)
        .margin_right(right)
        .x_label_area_size(Padding::BELOW)
        .y_label_area_size(left)
        .build_cartesian_2d(x, y)?;
    let small = (FONT, TEXT).into_text_style(root).color(&MUTED);
    let (width, _) = chart.plotting_area().dim_in_pixel();
    let mut mesh = chart.configure_mesh();
    if !y_title.is_empty() {
        mesh.y_desc(y_title);
    }
    mesh.x_desc(x_title)
        .x_labels((width / LABEL_WIDTH).clamp(2, 8) as usize)
        .y_labels(7)
        .max_light_lines(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(MUTED)
        .label_style(small.clone())
        .axis_desc_style(small)
        .draw()?;
    Ok(chart)
}

/// Style of a line in a chart and in its legend, recognizable without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// A solid line, two pixels wide.
    Thick,
    /// A dashed line, two pixels wide.
    Dashed,
    /// A solid line, one pixel wide.
    Thin,
}

impl LineStyle {
    /// Characters that represent a line of this style in a legend.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Thick => "━━",
            Self::Dashed => "╍╍",
            Self::Thin => "──",
        }
    }

    /// Draws a line through `points`.
    pub fn draw<X: Ranged<ValueType = f64>>(
        self,
        chart: &mut PlotArea<'_, '_, X, CountAxis>,
        points: Vec<(f64, f64)>,
        colour: RGBColor,
    ) -> Drawing {
        match self {
            Self::Thick => chart.draw_series([PathElement::new(points, colour.stroke_width(2))]).map(drop)?,
            Self::Thin => chart.draw_series([PathElement::new(points, colour.stroke_width(1))]).map(drop)?,
            Self::Dashed => {
                chart.draw_series(DashedLineSeries::new(points, 6, 4, colour.stroke_width(2))).map(drop)?
            }
        }
        Ok(())
    }
}

/// Returns the corners of a step line, in which value `n` extends from `edge(n)` to `edge(n + 1)`.
pub fn steps(values: impl IntoIterator<Item = f64>, edge: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let both = |(i, value)| [(edge(i), value), (edge(i + 1), value)];
    values.into_iter().enumerate().flat_map(both).collect()
}
