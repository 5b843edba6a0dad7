//! CloudWatch's minutes of a function: how many invocations began in each, and how many of them failed.

use std::time::Duration;

use comeback_engine::{MetricMinute, Timestamp};

use super::agenda::START;

const MINUTE: Duration = Duration::from_secs(60);

/// The minutes of one function, from the start of the run on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    /// Invocations and errors.
    minutes: Vec<(u32, u32)>,
}

impl Metrics {
    /// An invocation that began then has ended. Source: "Types of metrics for Lambda functions", AWS Lambda Developer
    /// Guide: the timestamp of a metric is when the function was invoked, which may be minutes before it is emitted.
    pub(crate) fn note(&mut self, began: Timestamp, failed: bool) {
        let index = began.since(START).as_secs() as usize / 60;
        if self.minutes.len() <= index {
            self.minutes.resize(index + 1, (0, 0));
        }
        self.minutes[index].0 += 1;
        self.minutes[index].1 += u32::from(failed);
    }

    /// The minutes from `since` on that have ended `lag` before `now`. One without invocations has no data.
    pub(crate) fn published(&self, since: Timestamp, now: Timestamp, lag: Duration) -> Vec<MetricMinute> {
        let moments = (0..).map(|index| START.saturating_add(MINUTE * index));
        let minutes = self.minutes.iter().zip(moments).filter(|(counts, from)| {
            counts.0 > 0 && since <= *from && from.saturating_add(MINUTE).saturating_add(lag) <= now
        });
        let minutes = minutes.map(|(&(invocations, errors), from)| MetricMinute {
            number: from.as_secs() / 60,
            invocations,
            errors,
        });
        minutes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_published_once_it_has_ended_and_the_lag_is_over() {
        let at = |secs| START.saturating_add(Duration::from_secs(secs));
        let mut metrics = Metrics::default();
        for (began, failed) in [(59, true), (60, false), (119, true), (200, false)] {
            metrics.note(at(began), failed);
        }
        let first = at(0).as_secs() / 60;
        let counts = |since, now| -> Vec<(u64, u32, u32)> {
            let minutes = metrics.published(at(since), at(now), Duration::from_secs(90));
            minutes.iter().map(|it| (it.number - first, it.invocations, it.errors)).collect()
        };
        assert_eq!((counts(0, 149), counts(0, 209)), (vec![], vec![(0, 1, 1)]));
        assert_eq!(counts(0, 1_000), [(0, 1, 1), (1, 2, 1), (3, 1, 0)], "nothing began in the third");
        assert_eq!(counts(60, 1_000).len(), 2);
    }
}
