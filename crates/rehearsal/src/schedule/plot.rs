//! The picture that `comeback schedule` draws: the time of each retry.

use comeback_engine::Policy;
use comeback_operate::numbers::round_step;
use comeback_timelapse::{Schedule, ScheduledRetry};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::axis::TimeAxis;
use crate::chart::{Area, BLUE, Drawing, GRID, INK, MUTED, ORANGE, header, style, svg, write};
use crate::schedule::{axis_of, headline, outcome, percent};

const WIDTH: i32 = 960;
const TOP: i32 = 170;
const BOTTOM: i32 = 62;
/// Left and right edge of the column of times, in pixels.
const TIMES: (i32, i32) = (76, 660);
/// Left and right edge of the column with the shares of events, in pixels.
const SHARES: (i32, i32) = (712, 888);
/// Maximum height of a row, in pixels.
const ROW_HEIGHT: f64 = 20.0;
/// Maximum height of all rows together, in pixels. If there are many, each becomes lower.
const ROWS_HEIGHT: f64 = 600.0;
/// A row lower than this, in pixels, has no text of its own.
const TEXT_HEIGHT: f64 = 14.0;

/// Opacity of the band that covers nine events in ten.
const BAND: f64 = 0.3;

/// Draws a row for each retry: its time, and the share of events that reach it.
pub fn draw(policy: &Policy, schedule: &Schedule) -> String {
    let picture = Picture {
        axis: axis_of(schedule, policy.max_age()),
        row: ROW_HEIGHT.min(ROWS_HEIGHT / schedule.retries.len().max(1) as f64),
        schedule,
    };
    svg((WIDTH as u32, (picture.bottom() + BOTTOM) as u32), |root| {
        picture.draw_header(root, &headline(policy, schedule))?;
        picture.draw_axes(root)?;
        picture.draw_numbers(root)?;
        // More rows than pixels would not be visible.
        let step = (1.0 / picture.row).ceil() as usize;
        for retry in schedule.retries.iter().step_by(step) {
            picture.draw_bars(root, retry)?;
        }
        picture.draw_max_age(root, policy.max_age().as_secs_f64())?;
        for retry in schedule.retries.iter().step_by(step) {
            picture.draw_mean(root, retry)?;
        }
        Ok(())
    })
}

struct Picture<'a> {
    schedule: &'a Schedule,
    axis: TimeAxis,
    row: f64,
}

impl Picture<'_> {
    fn bottom(&self) -> i32 {
        self.top_of(self.schedule.retries.len().max(1) as u64 + 1)
    }

    fn x(&self, seconds: f64) -> i32 {
        between(TIMES, self.axis.share(seconds))
    }

    fn share_of(&self, retry: &ScheduledRetry) -> f64 {
        retry.events as f64 / self.schedule.events as f64
    }

    /// Returns the upper edge of a retry's row, in pixels.
    fn top_of(&self, retry: u64) -> i32 {
        TOP + ((retry - 1) as f64 * self.row).round() as i32
    }

    fn draw_header(&self, root: &Area<'_>, headline: &str) -> Drawing {
        let title = "When retries come, and how many events get that far";
        let outcome = outcome(self.schedule);
        header(root, title, headline.lines().chain([outcome.as_str()]), 20)?;
        let scale = if self.axis.logarithmic { " (logarithmic scale)" } else { "" };
        let times = format!("time since the first failure{scale}");
        for (heading, x) in [(times.as_str(), TIMES.0), ("events that get this far", SHARES.0)] {
            write(root, heading, style(15, INK, HPos::Left, VPos::Top), (x, TOP - 44))?;
        }
        let legend = self.bottom() + 44;
        let label = |text, x| write(root, text, style(14, MUTED, HPos::Left, VPos::Center), (x, legend));
        root.draw(&bar((TIMES.0, legend - 4), (TIMES.0 + 34, legend + 4), tint(BAND)))?;
        label("nine events in ten", TIMES.0 + 42)?;
        root.draw(&Circle::new((TIMES.0 + 190, legend), 4, BLUE.filled()))?;
        label("mean", TIMES.0 + 200)
    }

    fn draw_axes(&self, root: &Area<'_>) -> Drawing {
        let bottom = self.bottom();
        let vertical = |x, label: &str| -> Drawing {
            root.draw(&PathElement::new([(x, TOP - 4), (x, bottom + 4)], GRID.stroke_width(1)))?;
            write(root, label, style(13, MUTED, HPos::Center, VPos::Top), (x, bottom + 8))
        };
        for (seconds, label) in self.axis.ticks(0.065) {
            vertical(self.x(seconds), &label)?;
        }
        for (share, label) in [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")] {
            vertical(between(SHARES, share), label)?;
        }
        write(root, "retry", style(13, MUTED, HPos::Right, VPos::Bottom), (TIMES.0 - 14, TOP - 8))
    }

    /// Writes the number of each row, or about one number per 30 pixels if rows are low.
    fn draw_numbers(&self, root: &Area<'_>) -> Drawing {
        let room = if self.row >= TEXT_HEIGHT { self.row } else { 30.0 };
        let step = round_step(|step| step as f64 * self.row >= room);
        let last = self.schedule.retries.len() as u64;
        for retry in (1..=last).filter(|&retry| retry == 1 || retry.is_multiple_of(step)) {
            let middle = i32::midpoint(self.top_of(retry), self.top_of(retry + 1));
            write(
                root,
                &retry.to_string(),
                style(13, MUTED, HPos::Right, VPos::Center),
                (TIMES.0 - 14, middle),
            )?;
        }
        Ok(())
    }

    fn draw_bars(&self, root: &Area<'_>, retry: &ScheduledRetry) -> Drawing {
        let (top, next) = (self.top_of(retry.retry), self.top_of(retry.retry + 1));
        // Low rows overlap by one pixel, so that no seams are visible.
        let air = (self.row * 0.18) as i32;
        let (upper, lower) = (top + air, if air == 0 { next.max(top + 1) + 1 } else { next - air });
        let at = retry.since_first_failure_seconds;
        let share = self.share_of(retry);
        let (from, to) = (self.x(at.p5.into()) - 1, self.x(at.p95.into()) + 1);
        root.draw(&bar((from, upper), (to, lower), tint(BAND * strength(share))))?;
        let end = between(SHARES, share).max(SHARES.0 + 1);
        root.draw(&bar((SHARES.0, upper), (end, lower), tint(0.55)))?;
        if self.row >= TEXT_HEIGHT && share < 1.0 {
            let at = (end + 6, i32::midpoint(top, next));
            write(root, &percent(share), style(12, MUTED, HPos::Left, VPos::Center), at)?;
        }
        Ok(())
    }

    fn draw_mean(&self, root: &Area<'_>, retry: &ScheduledRetry) -> Drawing {
        let middle = i32::midpoint(self.top_of(retry.retry), self.top_of(retry.retry + 1));
        let mean = (self.x(retry.since_first_failure_seconds.mean), middle);
        let radius = (self.row * 0.22).clamp(1.0, 4.0) as i32;
        Ok(root.draw(&Circle::new(mean, radius, tint(strength(self.share_of(retry))).filled()))?)
    }

    fn draw_max_age(&self, root: &Area<'_>, max_age: f64) -> Drawing {
        if !self.axis.shows(max_age) {
            return Ok(());
        }
        let x = self.x(max_age);
        root.draw(&PathElement::new([(x, TOP - 8), (x, self.bottom() + 4)], ORANGE.stroke_width(2)))?;
        write(root, "MAX_AGE", style(13, ORANGE, HPos::Right, VPos::Bottom), (x, TOP - 12))
    }
}

fn between((left, right): (i32, i32), share: f64) -> i32 {
    left + (share * f64::from(right - left)).round() as i32
}

/// Returns the opacity of a retry: pale if few events reach it, but always visible.
fn strength(share: f64) -> f64 {
    0.3 + 0.7 * share
}

/// Mixes blue with white instead of making it transparent, so that overlaps are not darker.
fn tint(strength: f64) -> RGBColor {
    let on_white = |channel: u8| (255.0 - (255.0 - f64::from(channel)) * strength).round() as u8;
    RGBColor(on_white(BLUE.0), on_white(BLUE.1), on_white(BLUE.2))
}

fn bar(upper_left: (i32, i32), lower_right: (i32, i32), colour: RGBColor) -> Rectangle<(i32, i32)> {
    Rectangle::new([upper_left, lower_right], colour.filled())
}
