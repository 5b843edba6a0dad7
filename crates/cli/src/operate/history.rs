//! What arrived, was retried and was dead-lettered in the last 3 and 24 hours, from CloudWatch's metrics of the queues:
//! as figures, in a terminal and as charts.

use std::time::Duration;

use comeback_engine::Timestamp;
use comeback_rehearsal::axis::{AgoAxis, CountAxis};
use comeback_rehearsal::chart::{BLUE, GREEN, ORANGE};
use comeback_rehearsal::figure::{Chart, Key, Table, drawn, frame};
use indicatif::HumanCount;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use serde::Serialize;

use crate::account::{Account, Failure};
use crate::operate::deployment::Deployment;
use crate::operate::metrics::{Points, points};
use crate::text::durations;

/// CloudWatch's points. Both windows are made of them.
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);
const THREE_HOURS: Duration = Duration::from_secs(3 * 3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What happened lately. CloudWatch's points come some minutes late, so the last step of each window grows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct History {
    /// When it was read.
    at: Timestamp,
    last_3_hours: Window,
    last_24_hours: Window,
}

/// Counts in equal steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Window {
    /// When the first step begins.
    from: Timestamp,
    step_seconds: u64,
    /// Messages sent to the retry queue: failures, redriven dead-letters, and moves. All three are `None` if CloudWatch
    /// has no data.
    arrived: Option<Counts>,
    /// Messages that left the retry queue, except for those that were dead-lettered: retries, and moves.
    retried: Option<Counts>,
    /// Messages sent to the dead-letter queue, imported ones too.
    dead_lettered: Option<Counts>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Counts {
    total: u64,
    /// One for each step, the oldest first.
    counts: Vec<u64>,
}

impl Counts {
    fn of(counts: Vec<u64>) -> Self {
        Self { total: counts.iter().sum(), counts }
    }

    fn most(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

impl History {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let retry_queue = ("AWS/SQS", "QueueName", deployment.retry_queue.name());
        let dead_letter_queue = ("AWS/SQS", "QueueName", deployment.dead_letter_queue.name());
        let series = [
            (retry_queue, "NumberOfMessagesSent", "Sum"),
            (retry_queue, "NumberOfMessagesDeleted", "Sum"),
            (dead_letter_queue, "NumberOfMessagesSent", "Sum"),
        ];
        // CloudWatch rounds times to whole periods.
        let (from, to) = (rounded_up(now, HALF_AN_HOUR).before(DAY), rounded_up(now, FIVE_MINUTES));
        let points = points(account, series, FIVE_MINUTES, from..to).await?;
        Ok(Self {
            at: now,
            last_3_hours: Window::of(&points, now, THREE_HOURS, FIVE_MINUTES),
            last_24_hours: Window::of(&points, now, DAY, HALF_AN_HOUR),
        })
    }

    fn windows(&self) -> [(&Window, &'static str); 2] {
        [(&self.last_3_hours, "3h"), (&self.last_24_hours, "24h")]
    }

    /// A table for each window, at most 80 columns wide.
    pub(crate) fn text(&self) -> String {
        self.windows().map(|(window, length)| window.text(length)).concat()
    }

    /// A chart for each window. None if CloudWatch has no data.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let ids = ["history-3h", "history-24h"].into_iter();
        ids.zip(self.windows()).filter_map(|(id, (window, length))| window.chart(id, length)).collect()
    }
}

fn rounded_up(moment: Timestamp, step: Duration) -> Timestamp {
    Timestamp::from_secs(moment.rounded_up_to_secs().as_secs().next_multiple_of(step.as_secs()))
}

/// The three counts of a window.
struct Line<'a> {
    name: &'static str,
    counts: &'a Counts,
    colour: RGBColor,
    /// As the key shows it: distinct even without colours.
    symbol: &'static str,
}

impl Window {
    /// Sums the points of the messages that were sent to the retry queue, left it, and were sent to the dead-letter
    /// queue.
    fn of(points: &[Points; 3], now: Timestamp, length: Duration, step: Duration) -> Self {
        let from = rounded_up(now, step).before(length);
        let steps = (length.as_secs() / step.as_secs()) as usize;
        let sums = |points: &Points| {
            let mut sums = vec![0; steps];
            for (at, count) in points.iter().filter(|(at, _)| *at >= from) {
                let step = at.since(from).as_secs() / step.as_secs();
                if let Some(sum) = sums.get_mut(step as usize) {
                    *sum += count.round() as u64;
                }
            }
            sums
        };
        let [arrived, left, dead_lettered] = points.each_ref().map(sums);
        // A dead-letter and the deletion of its message may be counted in two steps.
        let retried = left.iter().zip(&dead_lettered).map(|(left, dead)| left.saturating_sub(*dead));
        let retried = retried.collect();
        // SQS has no points of a queue that nobody uses. The handler always asks the retry queue.
        let is_known = points.iter().any(|points| !points.is_empty());
        let [arrived, retried, dead_lettered] =
            [arrived, retried, dead_lettered].map(|counts| is_known.then(|| Counts::of(counts)));
        Self { from, step_seconds: step.as_secs(), arrived, retried, dead_lettered }
    }

    fn lines(&self) -> Option<[Line<'_>; 3]> {
        let line = |name, counts, colour, symbol| Line { name, counts, colour, symbol };
        Some([
            line("arrived", self.arrived.as_ref()?, BLUE, THICK),
            line("retried", self.retried.as_ref()?, GREEN, DASHED),
            line("dead-lettered", self.dead_lettered.as_ref()?, ORANGE, THIN),
        ])
    }

    fn step(&self) -> String {
        durations::text(Duration::from_secs(self.step_seconds))
    }

    /// `14:35`, in UTC: when a step begins.
    fn clock(&self, step: usize) -> String {
        let moment = self.from.saturating_add(Duration::from_secs(self.step_seconds * step as u64));
        moment.to_string().get(11..16).unwrap_or_default().to_owned()
    }

    fn text(&self, length: &str) -> String {
        let title = format!("Last {length}");
        let Some(lines) = self.lines() else {
            return format!("\n{title:<13} CloudWatch has no data\n");
        };
        let (step, first) = (self.step(), self.clock(0));
        let mut text =
            format!("\n{title:<13} {:>8} {:>7} one column per {step}, from {first} UTC\n", "total", "most");
        for Line { name, counts, .. } in lines {
            let (total, most) = (HumanCount(counts.total).to_string(), HumanCount(counts.most()).to_string());
            text += &format!("{name:<13} {total:>8} {most:>7} {}\n", columns(counts));
        }
        text
    }

    fn chart(&self, id: &'static str, length: &str) -> Option<Chart> {
        let lines = self.lines()?;
        let say = |Line { name, counts, .. }: &Line<'_>| format!("{} {name}", HumanCount(counts.total));
        let key = |Line { name, colour, symbol, .. }: &Line<'_>| Key {
            symbol,
            colour: *colour,
            label: (*name).to_owned(),
        };
        let svg = self.draw(&lines);
        let starts = (0..lines[0].counts.counts.len()).map(|step| self.clock(step)).collect();
        let column = |Line { name, counts, .. }: &Line<'_>| {
            let cells = counts.counts.iter().map(|count| HumanCount(*count).to_string());
            ((*name).to_owned(), cells.collect())
        };
        let columns = std::iter::once(("from (UTC)".to_owned(), starts)).chain(lines.iter().map(column));
        Some(Chart {
            id,
            heading: format!("The last {length}, in steps of {}, logarithmic scale", self.step()),
            description: format!("{}.", lines.iter().map(say).collect::<Vec<_>>().join(", ")),
            keys: lines.iter().map(key).collect(),
            svg,
            table: Some(Table {
                caption: format!("Messages in each {}", self.step()),
                columns: columns.collect(),
            }),
        })
    }

    fn draw(&self, lines: &[Line<'_>]) -> String {
        let steps = lines[0].counts.counts.len();
        let ago = |step: usize| ((steps - step) as u64 * self.step_seconds) as f64;
        let most = lines.iter().map(|line| line.counts.most() as f64);
        let y = CountAxis::over([1.0, 10.0].into_iter().chain(most.map(|most| most.max(1.0))), true);
        let floor = y.range().start;
        drawn(|root| {
            let mut chart = frame(root, (AgoAxis::new(ago(0)), y), "time before now", "")?;
            // The first comes last, above the others.
            for Line { counts, colour, symbol, .. } in lines.iter().rev() {
                let corner = |(step, count): (usize, &u64)| {
                    let count = (*count as f64).max(floor);
                    [(ago(step), count), (ago(step + 1), count)]
                };
                let corners: Vec<_> = counts.counts.iter().enumerate().flat_map(corner).collect();
                let stroke = |width| colour.stroke_width(width);
                match *symbol {
                    DASHED => {
                        chart.draw_series(DashedLineSeries::new(corners, 6, 4, stroke(2)))?;
                    }
                    THIN => {
                        chart.draw_series([PathElement::new(corners, stroke(1))])?;
                    }
                    _ => {
                        chart.draw_series([PathElement::new(corners, stroke(2))])?;
                    }
                }
            }
            Ok(())
        })
    }
}

const THICK: &str = "━━";
const DASHED: &str = "╍╍";
const THIN: &str = "──";

/// Heights of a column in a terminal. Without anything, there is a dot.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn columns(counts: &Counts) -> String {
    let most = counts.most().max(1);
    let column = |count: &u64| match count * HEIGHTS.len() as u64 {
        0 => '·',
        height => HEIGHTS[(height.div_ceil(most) - 1) as usize],
    };
    counts.counts.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudwatch::primitives::DateTime;
    use aws_smithy_cbor::Encoder;
    use serde_json::{Value, json};

    use super::*;
    use comeback_rehearsal::chart::{Colour, PALETTE};

    /// 15:47:20 on a day, so that the last steps begin at 15:45 and 15:30.
    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000 / 86_400 * 86_400 + 15 * 3_600 + 47 * 60 + 20);

    /// An answer of CloudWatch's, as it sends it: the newest point first. A point is minutes before 15:45, and a count.
    fn answer(series: [&[(u64, f64)]; 3]) -> Vec<u8> {
        let start = NOW.as_secs() / 300 * 300;
        let mut cbor = Encoder::new(Vec::new());
        cbor.begin_map().str("MetricDataResults").begin_array();
        for (index, points) in series.iter().enumerate() {
            cbor.begin_map().str("Id").str(&format!("m{index}")).str("Label").str("NumberOfMessagesSent");
            cbor.str("StatusCode").str("Complete").str("Timestamps").begin_array();
            for (ago, _) in *points {
                cbor.timestamp(&DateTime::from_secs((start - ago * 60) as i64));
            }
            cbor.end().str("Values").begin_array();
            for (_, count) in *points {
                cbor.double(*count);
            }
            cbor.end().end();
        }
        cbor.end().str("Messages").begin_array().end().end();
        cbor.into_writer()
    }

    async fn read(series: [&[(u64, f64)]; 3]) -> History {
        let answer = answer(series);
        let account = Account::answering_in_cbor(move |request| {
            let request = String::from_utf8_lossy(request);
            assert!(request.matches("retries").count() == 2 && request.matches("dead").count() == 1);
            assert_eq!(request.matches("NumberOfMessagesSent").count(), 2);
            answer.clone()
        });
        History::read(&account.await, &Deployment::sample(), NOW).await.unwrap()
    }

    async fn busy() -> History {
        read([
            &[(0, 2.0), (5, 4.0), (60, 700.0), (175, 8.0), (180, 5.0), (1_425, 3.0), (1_430, 100.0)],
            &[(0, 1.0), (5, 8.0), (60, 350.0), (1_425, 2.0)],
            &[(5, 9.0), (60, 1.0)],
        ])
        .await
    }

    #[tokio::test]
    async fn a_window_has_the_sums_of_its_steps() {
        let json = serde_json::to_value(busy().await).unwrap();
        assert_eq!(json["at"], "2023-11-14T15:47:20.000Z");
        let (hours, day) = (&json["last_3_hours"], &json["last_24_hours"]);
        assert_eq!(
            (&hours["from"], &hours["step_seconds"]),
            (&json!("2023-11-14T12:50:00.000Z"), &json!(300))
        );
        assert_eq!((&day["from"], &day["step_seconds"]), (&json!("2023-11-13T16:00:00.000Z"), &json!(1_800)));
        let steps = |window: &Value, name: &str| {
            let counts = window[name]["counts"].as_array().unwrap();
            let steps = counts.iter().enumerate().filter(|(_, count)| **count != 0);
            let steps: Vec<_> = steps.map(|(step, count)| (step, count.as_u64().unwrap())).collect();
            (counts.len(), window[name]["total"].as_u64().unwrap(), steps)
        };
        assert_eq!(steps(hours, "arrived"), (36, 714, vec![(0, 8), (23, 700), (34, 4), (35, 2)]));
        assert_eq!(steps(day, "arrived"), (48, 722, vec![(0, 3), (41, 13), (45, 700), (47, 6)]));
        assert_eq!(steps(hours, "dead_lettered"), (36, 10, vec![(23, 1), (34, 9)]));
        // What was dead-lettered has left the queue too.
        assert_eq!(steps(hours, "retried"), (36, 350, vec![(23, 349), (35, 1)]));
        assert_eq!(steps(day, "retried"), (48, 351, vec![(0, 2), (45, 349)]));
    }

    #[tokio::test]
    async fn a_terminal_shows_a_column_for_each_step() {
        let expected = "
Last 3h          total    most one column per 5m, from 12:50 UTC
arrived            714     700 ▁······················█··········▁▁
retried            350     349 ·······················█···········▁
dead-lettered       10       9 ·······················▁··········█·

Last 24h         total    most one column per 30m, from 16:00 UTC
arrived            722     700 ▁········································▁···█·▁
retried            351     349 ▁············································█··
dead-lettered       10       9 ·············································▁·█
";
        let text = busy().await.text();
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let nothing = "\nLast 3h       CloudWatch has no data\n\nLast 24h      CloudWatch has no data\n";
        assert_eq!(read([&[], &[], &[]]).await.text(), nothing);
    }

    #[tokio::test]
    async fn a_chart_has_the_figures_in_colours_of_the_palette() {
        let charts = busy().await.charts();
        assert_eq!(charts.iter().map(|chart| chart.id).collect::<Vec<_>>(), ["history-3h", "history-24h"]);
        let chart = &charts[0];
        assert_eq!(chart.description, "714 arrived, 350 retried, 10 dead-lettered.");
        for Key { colour, label, symbol } in &chart.keys {
            let RGBColor(red, green, blue) = colour;
            assert!(
                chart.svg.contains(&format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"")),
                "{label}{symbol}"
            );
        }
        assert!(["\nnow\n", "\n3h\n"].iter().all(|label| chart.svg.contains(label)), "{}", chart.svg);
        // What the style sheet does not know stays as it is on a dark page.
        let colours: Vec<String> = PALETTE.iter().map(Colour::light).collect();
        let used = chart.svg.split(['"', ' ']).filter(|word| word.starts_with('#'));
        assert_eq!(
            used.filter(|colour| !colours.contains(&(*colour).to_owned())).collect::<Vec<_>>(),
            [""; 0]
        );
        let table = chart.table.as_ref().unwrap();
        let row = |number: usize| table.columns.iter().map(|(_, cells)| &*cells[number]).collect::<Vec<_>>();
        assert_eq!([row(0), row(23)], [vec!["12:50", "8", "0", "0"], vec!["14:45", "700", "349", "1"]]);
        assert!(read([&[], &[], &[]]).await.charts().is_empty());
    }
}
