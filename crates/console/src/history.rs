//! Charts of how many messages arrived, were retried or were dead-lettered over time.

use comeback_engine::Timestamp;
use comeback_operate::numbers::grouped;
use comeback_operate::{Series, durations};
use comeback_rehearsal::axis::{CountAxis, TimeAxis};
use comeback_rehearsal::chart::{BLUE, GREEN, LineStyle, ORANGE, Padding, frame, steps};
use comeback_rehearsal::figure::{Chart, FigureTable, LegendEntry, Picture, Values, WIDE, drawn_in};
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;

/// The colour and style of each line in a chart.
const STYLES: [(RGBColor, LineStyle); 3] =
    [(BLUE, LineStyle::Thick), (GREEN, LineStyle::Dashed), (ORANGE, LineStyle::Thin)];

/// Draws a chart with at most three lines.
pub(super) fn chart(series: &Series) -> Chart {
    let (length, step) = (durations::text(series.length()), durations::text(series.step));
    let total = |(name, counts): &(&str, Vec<u64>)| format!("{} {name}", grouped(counts.iter().sum()));
    let keys = series.lines.iter().zip(STYLES);
    let keys = keys.map(|((name, _), (colour, line))| LegendEntry::of_line(line, colour, *name));
    let starts = (0..series.steps()).map(|step| clock(series.at(step))).collect();
    let columns = series
        .lines
        .iter()
        .map(|(name, counts)| ((*name).to_owned(), counts.iter().map(|count| grouped(*count)).collect()));
    let columns = std::iter::once(("from (UTC)".to_owned(), starts)).chain(columns);
    Chart {
        id: if length == "3h" { "history-3h" } else { "history-24h" },
        heading: format!("The last {length}, in steps of {step}, logarithmic scale"),
        description: format!("{}.", series.lines.iter().map(total).collect::<Vec<_>>().join(", ")),
        keys: keys.collect(),
        picture: draw(series).with_values(values(series)),
        table: Some(FigureTable { caption: format!("Messages in each {step}"), columns: columns.collect() }),
    }
}

/// The time of day in UTC, such as `14:35`.
fn clock(moment: Timestamp) -> String {
    moment.to_string().get(11..16).unwrap_or_default().to_owned()
}

/// Returns the chart's tooltips, each with the counts of all lines for one period.
fn values(series: &Series) -> impl Iterator<Item = Values> {
    let share = |step: usize| step as f64 / series.steps() as f64;
    Values::each(series.steps(), share, |step| {
        let counts = series.lines.iter().map(|(name, counts)| format!("{} {name}", grouped(counts[step])));
        let ago = durations::text(series.step * (series.steps() - step) as u32);
        let counts = counts.collect::<Vec<_>>().join("\n");
        format!("{} ({ago} ago)\n{counts}", clock(series.at(step)) + " UTC")
    })
}

fn draw(series: &Series) -> Picture {
    let ago = |step: usize| (series.step * (series.steps() - step) as u32).as_secs_f64();
    let counts = series.lines.iter().flat_map(|(_, counts)| counts);
    let y =
        CountAxis::over([1.0, 10.0].into_iter().chain(counts.map(|count| (*count as f64).max(1.0))), true);
    let floor = y.range().start;
    drawn_in(WIDE, |root| {
        let axis = (TimeAxis::ago(ago(0)), "time before now");
        let mut chart = frame(root, axis, (y, ""), Padding::PAGE)?;
        // The first line is drawn last, on top of the others.
        for ((_, counts), (colour, line)) in series.lines.iter().zip(STYLES).rev() {
            let counts = counts.iter().map(|count| (*count as f64).max(floor));
            line.draw(&mut chart, steps(counts, ago), colour)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_rehearsal::chart::{Colour, PALETTE};

    use super::*;

    #[test]
    fn a_chart_has_the_figures_in_colours_of_the_palette() {
        let line = |points: &[(usize, u64)]| {
            let mut counts = vec![0; 36];
            points.iter().for_each(|(step, count)| counts[*step] = *count);
            counts
        };
        let series = Series {
            from: Timestamp::from_rfc3339("2023-11-14T12:50:00Z").unwrap(),
            step: Duration::from_secs(300),
            lines: vec![
                ("arrived", line(&[(0, 8), (23, 700), (35, 6)])),
                ("retried", line(&[(23, 349), (35, 1)])),
                ("dead-lettered", line(&[(23, 1), (34, 9)])),
            ],
        };
        let chart = chart(&series);
        assert_eq!(chart.id, "history-3h");
        assert_eq!(chart.description, "714 arrived, 350 retried, 10 dead-lettered.");
        for LegendEntry { colour, label, symbol } in &chart.keys {
            let RGBColor(red, green, blue) = colour;
            assert!(
                chart.picture.markup.contains(&format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"")),
                "{label}{symbol}"
            );
        }
        assert!(
            ["\nnow\n", "\n3h\n"].iter().all(|label| chart.picture.markup.contains(label)),
            "{}",
            chart.picture.markup
        );
        // The dark theme can replace only the colours in the palette.
        let colours: Vec<String> = PALETTE.iter().map(Colour::light).collect();
        let used = chart.picture.markup.split(['"', ' ']).filter(|word| word.starts_with('#'));
        assert_eq!(
            used.filter(|colour| !colours.contains(&(*colour).to_owned())).collect::<Vec<_>>(),
            [""; 0]
        );
        let table = chart.table.as_ref().unwrap();
        let row = |number: usize| table.columns.iter().map(|(_, cells)| &*cells[number]).collect::<Vec<_>>();
        assert_eq!([row(0), row(23)], [vec!["12:50", "8", "0", "0"], vec!["14:45", "700", "349", "1"]]);
    }
}
