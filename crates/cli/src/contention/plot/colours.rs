use comeback_contention::Strategy;
use plotters::style::RGBColor;

use crate::chart::palette::{BLUE, GREEN, GREY, ORANGE, PURPLE};

pub(super) fn colour(strategy: Strategy) -> RGBColor {
    match strategy {
        Strategy::None => GREY,
        Strategy::Exponential => ORANGE,
        Strategy::Equal => PURPLE,
        Strategy::Full => BLUE,
        Strategy::Decorrelated => GREEN,
    }
}
