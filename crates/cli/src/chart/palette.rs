//! Every colour of the plots, and of the report's page on a light screen and on a dark one.

use plotters::style::RGBColor;

const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(crate) const MUTED: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub(crate) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

// Distinct for people who see no red or no green, too.
pub(crate) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(crate) const ORANGE: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub(crate) const GREEN: RGBColor = RGBColor(0x00, 0x8f, 0x6b);
pub(crate) const PURPLE: RGBColor = RGBColor(0xaa, 0x44, 0x99);
pub(crate) const GREY: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// A colour as a CSS variable of the report's page.
pub(crate) struct Colour {
    pub(crate) name: &'static str,
    light: RGBColor,
    /// Of the same hue, and light enough for text on the dark page.
    pub(crate) dark: &'static str,
}

/// Every colour that a chart of the page may use.
pub(crate) const PALETTE: [Colour; 9] = [
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
    /// As `plotters` writes it, so that the style sheet finds it in a chart.
    pub(crate) fn light(&self) -> String {
        let RGBColor(red, green, blue) = self.light;
        format!("#{red:02X}{green:02X}{blue:02X}")
    }
}

/// The name of a chart's colour in the page's style sheet.
pub(crate) fn name_of(colour: RGBColor) -> &'static str {
    PALETTE.iter().find(|named| named.light == colour).expect("BUG: a colour outside the palette").name
}
