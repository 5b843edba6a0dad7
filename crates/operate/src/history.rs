//! Recent counts of arrivals, retries and dead-letters, from CloudWatch metrics for the two queues.

use std::time::Duration;

use comeback_engine::Timestamp;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::account::Account;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::layout::{Block, Fact, Layout, Series};
use crate::metrics::{Points, points, series};

/// The period that each data point from CloudWatch covers.
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);
const THREE_HOURS: Duration = Duration::from_secs(3 * 3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Counts of messages that arrived, were retried or were dead-lettered in the last 3 and 24 hours. The newest counts
/// are incomplete, because CloudWatch is a few minutes behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct History {
    at: Timestamp,
    #[serde(serialize_with = "with_totals")]
    last_3_hours: Series,
    #[serde(serialize_with = "with_totals")]
    last_24_hours: Series,
}

impl History {
    /// Reads the message counts of the last 24 hours from CloudWatch.
    ///
    /// # Errors
    ///
    /// Fails if CloudWatch cannot be read.
    pub async fn read(account: &Account, deployment: &Deployment, now: Timestamp) -> Result<Self, Failure> {
        let retry_queue = ("AWS/SQS", "QueueName", deployment.retry_queue.name());
        let dead_letter_queue = ("AWS/SQS", "QueueName", deployment.dead_letter_queue.name());
        let series = [
            series(retry_queue, "NumberOfMessagesSent", "Sum"),
            series(retry_queue, "NumberOfMessagesDeleted", "Sum"),
            series(dead_letter_queue, "NumberOfMessagesSent", "Sum"),
        ];
        // CloudWatch rounds times to whole periods.
        let (from, to) = (rounded_up(now, HALF_AN_HOUR).before(DAY), rounded_up(now, FIVE_MINUTES));
        let points = points(account, series, FIVE_MINUTES, from..to).await?;
        Ok(Self {
            at: now,
            last_3_hours: message_counts(&points, now, THREE_HOURS, FIVE_MINUTES),
            last_24_hours: message_counts(&points, now, DAY, HALF_AN_HOUR),
        })
    }

    /// Lays out the message counts as one chart for the last 3 hours and one for the last 24 hours.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        for (series, title) in [(&self.last_3_hours, "Last 3h"), (&self.last_24_hours, "Last 24h")] {
            layout.line("");
            layout.0.push(match series.lines.is_empty() {
                true => Block::Facts(vec![Fact::new(title, vec!["CloudWatch has no data".into()])]),
                false => Block::Series(series.clone()),
            });
        }
        layout
    }
}

fn rounded_up(moment: Timestamp, step: Duration) -> Timestamp {
    Timestamp::from_secs(moment.rounded_up_to_secs().as_secs().next_multiple_of(step.as_secs()))
}

/// Counts the messages of the last `length`, in steps of `step`, up to the end of the present step. `points` holds the
/// counts of messages sent to the retry queue, deleted from it, and sent to the dead-letter queue. The series has no
/// lines if CloudWatch has no data.
fn message_counts(points: &[Points; 3], now: Timestamp, length: Duration, step: Duration) -> Series {
    let from = rounded_up(now, step).before(length);
    // SQS reports nothing for an unused queue, so the counts are known if any metric has data.
    if points.iter().all(Vec::is_empty) {
        return Series { from, step, lines: Vec::new() };
    }
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
    // Redriven dead-letters and copies of moved messages count as arrived, and imported dead-letters as dead-lettered.
    let [arrived, left, dead_lettered] = points.each_ref().map(sums);
    // CloudWatch may count a dead-letter in one period and the deletion of its message in another. A message that was
    // moved counts as retried.
    let retried = left.iter().zip(&dead_lettered).map(|(left, dead)| left.saturating_sub(*dead)).collect();
    let lines = vec![("arrived", arrived), ("retried", retried), ("dead-lettered", dead_lettered)];
    Series { from, step, lines }
}

/// Serializes message counts with their totals; both are `null` if CloudWatch has no data.
fn with_totals<S: Serializer>(series: &Series, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counts<'c> {
        total: u64,
        counts: &'c [u64],
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("from", &series.from)?;
    map.serialize_entry("step_seconds", &series.step.as_secs())?;
    for (line, name) in ["arrived", "retried", "dead_lettered"].into_iter().enumerate() {
        let counts = series.lines.get(line);
        let counts = counts.map(|(_, counts)| Counts { total: counts.iter().sum(), counts });
        map.serialize_entry(name, &counts)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::aws::simulated::Sample;
    use crate::deployment::find::Which;
    use crate::operator::Operator;

    /// 15:47:20 on an arbitrary day.
    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000 / 86_400 * 86_400 + 15 * 3_600 + 47 * 60 + 20);

    /// Returns the history for these counts of arrivals, deletions and dead-letters. Each pair is a number of minutes
    /// before 15:45, and a count.
    async fn read(counts: [&[(u64, f64)]; 3]) -> History {
        let aws = Sample::new(NOW).build();
        let queues = [
            (Sample::RETRY_QUEUE, "NumberOfMessagesSent"),
            (Sample::RETRY_QUEUE, "NumberOfMessagesDeleted"),
            (Sample::DEAD_LETTER_QUEUE, "NumberOfMessagesSent"),
        ];
        for ((queue, metric), points) in queues.into_iter().zip(counts) {
            for (ago, count) in points {
                let at = Timestamp::from_secs(NOW.as_secs() / 300 * 300 - ago * 60);
                let series = series(("AWS/SQS", "QueueName", queue), metric, "Sum");
                aws.state().metrics.put(series, at, *count);
            }
        }
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let deployment = operator.deployment().await.unwrap();
        History::read(&operator.account, &deployment, NOW).await.unwrap()
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
        // Deletions of dead-lettered messages do not count as retries.
        assert_eq!(steps(hours, "retried"), (36, 350, vec![(23, 349), (35, 1)]));
        assert_eq!(steps(day, "retried"), (48, 351, vec![(0, 2), (45, 349)]));
    }

    #[tokio::test]
    async fn each_known_window_is_a_series() {
        let layout = busy().await.layout();
        let series = layout.0.iter().filter_map(|block| match block {
            Block::Series(series) => Some(series),
            _ => None,
        });
        let series: Vec<_> = series.collect();
        let [hours, day] = series[..] else { panic!("{layout:?}") };
        assert_eq!([hours.length(), day.length()], [THREE_HOURS, DAY]);
        let names: Vec<_> = hours.lines.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["arrived", "retried", "dead-lettered"]);
        assert_eq!(
            (hours.at(23).to_string(), hours.lines[0].1[23]),
            ("2023-11-14T14:45:00.000Z".into(), 700)
        );
        let unknown = Block::Facts(vec![Fact::new("Last 3h", vec!["CloudWatch has no data".into()])]);
        assert_eq!(read([&[], &[], &[]]).await.layout().0[1], unknown);
    }
}
