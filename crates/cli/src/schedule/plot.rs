use comeback_engine::Policy;
use comeback_timelapse::{Schedule, ScheduledRetry};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::axis::TimeAxis;
use crate::chart::{Area, BLUE, Drawing, FONT, GRID, INK, MUTED, ORANGE, header, svg};
use crate::schedule::table::{axis_of, headline, outcome, percent};
use crate::text::numbers::round_step;

const WIDTH: i32 = 960;
const TOP: i32 = 170;
const BOTTOM: i32 = 62;
/// Where the times are, from left to right, ...
const TIMES: (i32, i32) = (76, 660);
/// ... and the shares of events.
const SHARES: (i32, i32) = (712, 888);
/// Rows are at most this high, ...
const ROW_HEIGHT: f64 = 20.0;
/// ... and lower where there are many, to fit in here.
const ROWS_HEIGHT: f64 = 600.0;
/// A row lower than this has no text of its own.
const TEXT_HEIGHT: f64 = 14.0;

/// How strong the colour of nine events in ten is.
const BAND: f64 = 0.3;

/// A row for each retry: when it comes, and how many events have it.
pub(super) fn draw(policy: &Policy, schedule: &Schedule) -> String {
    let picture = Picture {
        axis: axis_of(schedule, policy.max_age()),
        row: ROW_HEIGHT.min(ROWS_HEIGHT / schedule.retries.len().max(1) as f64),
        schedule,
    };
    svg((WIDTH as u32, (picture.bottom() + BOTTOM) as u32), |root| {
        picture.draw_header(root, &headline(policy, schedule))?;
        picture.draw_axes(root)?;
        picture.draw_numbers(root)?;
        // More rows than pixels are not seen.
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

    /// The upper edge of a retry's row.
    fn top_of(&self, retry: u64) -> i32 {
        TOP + ((retry - 1) as f64 * self.row).round() as i32
    }

    fn draw_header(&self, root: &Area<'_>, headline: &str) -> Drawing {
        let title = "When retries come, and how many there are";
        let outcome = outcome(self.schedule);
        header(root, title, headline.lines().chain([outcome.as_str()]), 20)?;
        let bold = (FONT, 15).into_text_style(root).color(&INK);
        let scale = if self.axis.is_logarithmic() { " (logarithmic scale)" } else { "" };
        let times = format!("time since the first failure{scale}");
        root.draw_text(&times, &bold, (TIMES.0, TOP - 44))?;
        root.draw_text("events that get so far", &bold, (SHARES.0, TOP - 44))?;
        let legend = self.bottom() + 44;
        let muted = (FONT, 14).into_text_style(root).color(&MUTED);
        let beside = muted.pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&bar((TIMES.0, legend - 4), (TIMES.0 + 34, legend + 4), tint(BAND)))?;
        root.draw_text("nine events in ten", &beside, (TIMES.0 + 42, legend))?;
        root.draw(&Circle::new((TIMES.0 + 190, legend), 4, BLUE.filled()))?;
        root.draw_text("mean", &beside, (TIMES.0 + 200, legend))?;
        Ok(())
    }

    fn draw_axes(&self, root: &Area<'_>) -> Drawing {
        let small = (FONT, 13).into_text_style(root).color(&MUTED);
        let below = small.pos(Pos::new(HPos::Center, VPos::Top));
        let bottom = self.bottom();
        let vertical = |x, label: &str| -> Drawing {
            root.draw(&PathElement::new([(x, TOP - 4), (x, bottom + 4)], GRID.stroke_width(1)))?;
            root.draw_text(label, &below, (x, bottom + 8))?;
            Ok(())
        };
        for (seconds, label) in self.axis.ticks(0.065) {
            vertical(self.x(seconds), &label)?;
        }
        for (share, label) in [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")] {
            vertical(between(SHARES, share), label)?;
        }
        let left = (FONT, 13).into_text_style(root).color(&MUTED).pos(Pos::new(HPos::Right, VPos::Bottom));
        root.draw_text("retry", &left, (TIMES.0 - 14, TOP - 8))?;
        Ok(())
    }

    /// Numbers each row, or about one row in 30 pixels where rows are low.
    fn draw_numbers(&self, root: &Area<'_>) -> Drawing {
        let room = if self.row >= TEXT_HEIGHT { self.row } else { 30.0 };
        let step = round_step(|step| step as f64 * self.row >= room);
        let style = (FONT, 13).into_text_style(root).color(&MUTED);
        let right = style.pos(Pos::new(HPos::Right, VPos::Center));
        let last = self.schedule.retries.len() as u64;
        for retry in (1..=last).filter(|&retry| retry == 1 || retry.is_multiple_of(step)) {
            let middle = i32::midpoint(self.top_of(retry), self.top_of(retry + 1));
            root.draw_text(&retry.to_string(), &right, (TIMES.0 - 14, middle))?;
        }
        Ok(())
    }

    fn draw_bars(&self, root: &Area<'_>, retry: &ScheduledRetry) -> Drawing {
        let (top, next) = (self.top_of(retry.retry), self.top_of(retry.retry + 1));
        // Low rows touch, by one pixel more than they would, so that no seams are seen.
        let air = (self.row * 0.18) as i32;
        let (upper, lower) = (top + air, if air == 0 { next.max(top + 1) + 1 } else { next - air });
        let at = retry.since_first_failure_seconds;
        let share = self.share_of(retry);
        let (from, to) = (self.x(at.p5.into()) - 1, self.x(at.p95.into()) + 1);
        root.draw(&bar((from, upper), (to, lower), tint(BAND * strength(share))))?;
        let end = between(SHARES, share).max(SHARES.0 + 1);
        root.draw(&bar((SHARES.0, upper), (end, lower), tint(0.55)))?;
        if self.row >= TEXT_HEIGHT && share < 1.0 {
            let small = (FONT, 12).into_text_style(root).color(&MUTED);
            let left = small.pos(Pos::new(HPos::Left, VPos::Center));
            root.draw_text(&percent(share), &left, (end + 6, i32::midpoint(top, next)))?;
        }
        Ok(())
    }

    fn draw_mean(&self, root: &Area<'_>, retry: &ScheduledRetry) -> Drawing {
        let middle = i32::midpoint(self.top_of(retry.retry), self.top_of(retry.retry + 1));
        let mean = (self.x(retry.since_first_failure_seconds.mean), middle);
        let radius = (self.row * 0.22).clamp(1.0, 4.0) as i32;
        root.draw(&Circle::new(mean, radius, tint(strength(self.share_of(retry))).filled()))?;
        Ok(())
    }

    fn draw_max_age(&self, root: &Area<'_>, max_age: f64) -> Drawing {
        if !self.axis.shows(max_age) {
            return Ok(());
        }
        let x = self.x(max_age);
        root.draw(&PathElement::new([(x, TOP - 8), (x, self.bottom() + 4)], ORANGE.stroke_width(2)))?;
        let style = (FONT, 13).into_text_style(root).color(&ORANGE);
        root.draw_text("MAX_AGE", &style.pos(Pos::new(HPos::Right, VPos::Bottom)), (x, TOP - 12))?;
        Ok(())
    }
}

fn between((left, right): (i32, i32), share: f64) -> i32 {
    left + (share * f64::from(right - left)).round() as i32
}

/// Retries that few events reach are pale, but visible.
fn strength(share: f64) -> f64 {
    0.3 + 0.7 * share
}

/// Blue on white, without transparency: overlaps are not darker.
fn tint(strength: f64) -> RGBColor {
    let on_white = |channel: u8| (255.0 - (255.0 - f64::from(channel)) * strength).round() as u8;
    RGBColor(on_white(BLUE.0), on_white(BLUE.1), on_white(BLUE.2))
}

fn bar(upper_left: (i32, i32), lower_right: (i32, i32), colour: RGBColor) -> Rectangle<(i32, i32)> {
    Rectangle::new([upper_left, lower_right], colour.filled())
}
