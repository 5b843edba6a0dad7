//! Draws the simulation report's chart of the queue's depth.

use std::iter::once;

use comeback_operate::numbers::grouped;
use comeback_timelapse::{Minute, Scenario};
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::axis::CountAxis;
use crate::chart::{BLUE, GREEN, LineStyle, ORANGE, PURPLE, Padding, TEXT, frame, style, write};
use crate::figure::{Chart, FigureTable, LegendEntry, Picture, drawn};
use crate::simulate::figures::{clock, minutes_a_row, peak};
use crate::simulate::page::canvas::{FLOOR, OverTime, shade};
use crate::simulate::page::runs::Side;

/// One of the message counts that add up to the queue's depth.
struct Count {
    name: &'static str,
    of: fn(&Minute) -> u32,
    line: LineStyle,
    /// Colour of the line in a chart of one run.
    colour: RGBColor,
}

const IN_FLIGHT: Count =
    Count { name: "in flight", of: |minute| minute.in_flight, line: LineStyle::Thick, colour: BLUE };
const DELAYED: Count =
    Count { name: "delayed", of: |minute| minute.delayed, line: LineStyle::Dashed, colour: GREEN };
const VISIBLE: Count =
    Count { name: "visible", of: |minute| minute.visible, line: LineStyle::Thin, colour: ORANGE };

pub(super) fn chart(scenario: &Scenario, sides: &[Side]) -> Chart {
    let counts = counts(sides);
    let key = |side: &Side, count: &Count| {
        LegendEntry::of_line(count.line, count.colour(side), count.name_in(side))
    };
    let limit = LegendEntry::of_line(LineStyle::Thick, PURPLE, "the limit of messages in flight");
    Chart {
        id: "depth",
        heading: "Messages in the queue, logarithmic scale".into(),
        description: format!(
            "Messages in flight against their limit of {}. The table below has the figures.",
            grouped(scenario.in_flight_limit as u64)
        ),
        keys: sides
            .iter()
            .flat_map(|side| counts.iter().map(move |count| key(side, count)))
            .chain(once(limit))
            .collect(),
        picture: draw(scenario, sides, &counts),
        table: Some(table(sides, &counts)),
    }
}

/// Returns the count of messages in flight, and every other count that was ever above zero.
fn counts(sides: &[Side]) -> Vec<Count> {
    let is_there = |count: &Count| sides.iter().any(|side| count.most(&side.summary.minutes) > 0);
    once(IN_FLIGHT).chain([DELAYED, VISIBLE].into_iter().filter(is_there)).collect()
}

/// Describes the peak number of messages in flight and, if it reached the limit, the consequences.
pub(super) fn story(side: &Side) -> String {
    let summary = &side.summary;
    let mut story = format!("At most {} messages were in flight.", peak(summary));
    if summary.peak_delayed > 0 {
        let delayed = grouped(summary.peak_delayed as u64);
        story += &format!(" At most {delayed} were delayed; their number has no limit.");
    }
    let full = |minute: &Minute| minute.in_flight as usize >= summary.in_flight_limit;
    let first = summary.minutes.iter().position(full);
    let last = summary.minutes.iter().rposition(full);
    if let (Some(first), Some(last)) = (first, last) {
        story += &format!(
            " The limit was reached first at {} and last at {}. SQS then delivers a message only when another \
             leaves: up to {} were due and not received, and retries came late or not at all, without an \
             error.",
            clock(first),
            clock(last),
            grouped(VISIBLE.most(&summary.minutes[first..=last]).into())
        );
    }
    story
}

impl Count {
    fn most(&self, minutes: &[Minute]) -> u32 {
        minutes.iter().map(self.of).max().unwrap_or(0)
    }

    fn colour(&self, side: &Side) -> RGBColor {
        if side.name.is_empty() { self.colour } else { side.colour }
    }

    fn name_in(&self, side: &Side) -> String {
        if side.name.is_empty() { self.name.into() } else { format!("{}, {}", side.name, self.name) }
    }

    /// Returns, for each point on the time axis, the largest number of messages in any minute that the point covers.
    fn points(&self, side: &Side, time: &OverTime) -> Vec<u32> {
        side.summary.minutes.chunks(time.step).map(|minutes| self.most(minutes)).collect()
    }
}

fn draw(scenario: &Scenario, sides: &[Side], counts: &[Count]) -> Picture {
    let time = OverTime::of(&sides[0].summary);
    let limit = scenario.in_flight_limit as f64;
    let most = sides
        .iter()
        .flat_map(|side| counts.iter().map(|count| f64::from(count.most(&side.summary.minutes)).max(1.0)));
    let y = CountAxis::over([1.0, limit].into_iter().chain(most), true);
    let points = sides.iter().flat_map(|side| counts.iter().map(move |count| (side, count)));
    let points: Vec<_> =
        points.map(|(side, count)| (count.name_in(side), count.points(side, &time))).collect();
    let in_words = |point: usize| {
        let line = |(name, points): &(String, Vec<u32>)| format!("{name}: {}", grouped(points[point].into()));
        points.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let picture = drawn(|root| {
        let (end, high) = (time.axis().range().end, y.range().end);
        let mut chart = frame(root, (time.axis(), "time since the start"), (y, ""), Padding::PAGE)?;
        shade(&mut chart, scenario.longest_outage(), (FLOOR, high))?;
        // The line for messages in flight is drawn last, on top of the other lines.
        for count in counts.iter().rev() {
            for side in sides {
                let most = count.points(side, &time).into_iter().map(|most| f64::from(most).max(FLOOR));
                count.line.draw(&mut chart, time.steps(most), count.colour(side))?;
            }
        }
        LineStyle::Thick.draw(&mut chart, vec![(0.0, limit), (end, limit)], PURPLE)?;
        let label = format!("limit {}", grouped(scenario.in_flight_limit as u64));
        let (x, y) = chart.backend_coord(&(end, limit));
        write(root, &label, style(TEXT, PURPLE, HPos::Right, VPos::Top), (x - 4, y + 4))
    });
    picture.with_values(time.values(points.first().map_or(0, |(_, points)| points.len()), in_words))
}

fn table(sides: &[Side], counts: &[Count]) -> FigureTable {
    let step = minutes_a_row(&sides[0].summary);
    let starts = (0..sides[0].summary.minutes.len()).step_by(step).map(clock).collect();
    let column = |side: &Side, count: &Count| {
        let most = |minutes: &[Minute]| grouped(count.most(minutes).into());
        (side.say(count.name), side.summary.minutes.chunks(step).map(most).collect())
    };
    let columns = sides.iter().flat_map(|side| counts.iter().map(move |count| column(side, count)));
    FigureTable {
        caption: "Most messages at once; visible means due and not received yet".into(),
        columns: once(("from".to_owned(), starts)).chain(columns).collect(),
    }
}

#[cfg(test)]
mod tests {
    use comeback_timelapse::{Schedule, TARGET_ARN, run};

    use super::*;
    use crate::flags::PolicyFlags;

    fn side(delayed: u32) -> (Scenario, Side) {
        let scenario = Scenario { events: 10, ..Scenario::default() };
        let flags = PolicyFlags::default();
        let policies = flags.policies(TARGET_ARN).expect("a valid policy");
        let mut summary = run(&scenario, &policies, &mut ()).expect("a valid scenario");
        summary.minutes[1].delayed = delayed;
        summary.peak_delayed = delayed as usize;
        let schedule = Schedule::of(policies.stack(), 1, 10, &|| {});
        (scenario, Side { name: String::new(), colour: BLUE, flags, policies, summary, schedule })
    }

    fn stroke(colour: RGBColor) -> String {
        let RGBColor(red, green, blue) = colour;
        format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"")
    }

    #[test]
    fn delayed_messages_have_a_line_and_figures() {
        let (scenario, side) = side(3_000_000);
        assert!(story(&side).ends_with(
            " messages were in flight. At most 3,000,000 were delayed; their number has no \
                            limit."
        ));
        let chart = chart(&scenario, &[side]);
        let keys: Vec<_> =
            chart.keys.iter().map(|key| (key.label.as_str(), key.colour, key.symbol)).collect();
        let expected = [
            ("in flight", BLUE, "━━"),
            ("delayed", GREEN, "╍╍"),
            ("visible", ORANGE, "──"),
            ("the limit of messages in flight", PURPLE, "━━"),
        ];
        assert_eq!(keys, expected);
        for colour in [BLUE, GREEN, ORANGE, PURPLE] {
            assert!(chart.picture.markup.contains(&stroke(colour)), "{colour:?}");
        }
        assert!(chart.picture.markup.contains("1,000,000"), "the axis is long enough");
        let page = chart.to_string();
        assert!(page.contains("<title>from 00:00\nin flight: "), "{page}");
        assert!(page.contains("\ndelayed: 3,000,000\n"), "{page}");
        let table = chart.table.expect("a table");
        let heads: Vec<&str> = table.columns.iter().map(|(head, _)| head.as_str()).collect();
        assert_eq!(heads, ["from", "in flight", "delayed", "visible"]);
        assert_eq!(table.columns[2].1[0], "3,000,000");
    }
}
