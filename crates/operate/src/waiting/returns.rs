//! The number of waiting events that are due in each period of time, by function.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::Timestamp;
use serde::{Serialize, Serializer};

use crate::waiting::events::{WaitingEvent, WaitingGroup};

/// The maximum number of functions that are counted separately.
const MOST_FUNCTIONS: usize = 4;
/// The maximum number of time periods into which due times are grouped.
const MOST_PERIODS: u64 = 48;
/// The possible values of [`Returns::period`], in seconds, shortest first.
const LENGTHS: [u64; 13] = [10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

/// Numbers of waiting events by function and due time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Returns<'w> {
    /// The start of the first period, which also counts events that were due earlier.
    pub from: Timestamp,
    /// The length of each period, serialized in seconds.
    #[serde(rename = "period_seconds", serialize_with = "seconds")]
    pub period: Duration,
    /// The functions with the most events, then one entry that combines any others.
    pub functions: Vec<OfFunction<'w>>,
    /// The number of events without a due time, such as the events of a paused function.
    pub without_due: u64,
}

/// The numbers of events due in successive time periods, for one function or for several combined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OfFunction<'w> {
    /// The ARN of the function, or `None` for the entry that combines several functions.
    pub target: Option<&'w str>,
    /// The number of events that are due in each time period, earliest period first.
    pub counts: Vec<u64>,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_secs())
}

impl<'w> Returns<'w> {
    /// Counts `events` by due time. `groups` must contain the same events.
    pub fn of(
        events: impl Iterator<Item = WaitingEvent<'w>>,
        groups: &[WaitingGroup<'w>],
        now: Timestamp,
    ) -> Self {
        let last = groups.iter().filter_map(|group| group.last_due).max().unwrap_or(now);
        let span = last.since(now).as_secs() + 1;
        let fits = |length: &u64| span.div_ceil(*length) <= MOST_PERIODS;
        // Waits end within 14 days, so one of the lengths fits.
        let length = LENGTHS.into_iter().find(fits).unwrap_or(span);
        let periods = span.div_ceil(length) as usize;
        let of = |target| OfFunction { target, counts: vec![0; periods] };
        let mut functions: Vec<_> =
            most_frequent(groups).into_iter().map(|target| of(Some(target))).collect();
        let mut others = of(None);
        let mut without_due = 0;
        for event in events {
            let Some(due) = event.due else {
                without_due += 1;
                continue;
            };
            let period = (due.since(now).as_secs() / length) as usize;
            let mut named = functions.iter_mut();
            let counted = named.find(|it| it.target == event.target).unwrap_or(&mut others);
            counted.counts[period] += 1;
        }
        functions.extend(Some(others).filter(|others| others.counts.iter().any(|count| *count > 0)));
        Self { from: now, period: Duration::from_secs(length), functions, without_due }
    }

    /// Returns the number of time periods into which due times are grouped.
    pub fn periods(&self) -> usize {
        self.functions.first().map_or(0, |function| function.counts.len())
    }

    /// The number of events that are due in a period; the first period is 0.
    pub fn total(&self, period: usize) -> u64 {
        self.functions.iter().map(|function| function.counts[period]).sum()
    }
}

fn most_frequent<'w>(groups: &[WaitingGroup<'w>]) -> Vec<&'w str> {
    let mut counts = BTreeMap::<_, u64>::new();
    for group in groups {
        *counts.entry(group.target).or_default() += group.count;
    }
    let mut counts: Vec<_> =
        counts.into_iter().filter_map(|(target, count)| Some((target?, count))).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().take(MOST_FUNCTIONS).map(|(target, _)| target).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::log::test_line;
    use crate::waiting::events::Waits;
    use crate::waiting::reading::tests::{NOW, ORDERS};

    /// Creates waiting events from pairs of a function and the number of seconds until its event's retry is due. The
    /// number is `None` if the event is paused.
    fn waits(events: &[(&str, Option<u64>)]) -> Waits {
        let mut waits = Waits::default();
        for (n, (function, due)) in events.iter().enumerate() {
            let due = due.map(|due| NOW.saturating_add(Duration::from_secs(due)));
            let action = if due.is_some() { "defer" } else { "hold" };
            waits.take(&test_line(json!({
                "timestamp": NOW, "key": format!("k-{n}"), "target": ORDERS.replace("orders", function), "delay": 60,
                "action": action, "due": due.unwrap_or(NOW), "due_by": due.map(|_| "policy"),
            })));
        }
        waits
    }

    fn returns(waits: &Waits) -> Returns<'_> {
        Returns::of(waits.all(), &waits.all_groups(), NOW)
    }

    #[test]
    fn events_are_counted_by_when_they_come_back() {
        let waits =
            waits(&[("orders", Some(9)), ("orders", Some(10)), ("billing", Some(29)), ("orders", None)]);
        let returns = returns(&waits);
        assert_eq!((returns.period.as_secs(), returns.without_due), (10, 1));
        let counts: Vec<_> = returns.functions.iter().map(|it| (it.target, &*it.counts)).collect();
        let billing = ORDERS.replace("orders", "billing");
        assert_eq!(counts, [(Some(ORDERS), &[1, 1, 0][..]), (Some(&*billing), &[0, 0, 1])]);
    }

    #[test]
    fn a_long_wait_makes_long_periods() {
        for (due, length) in [(479, 10), (480, 30), (43_170, 900), (14 * 86_400, 43_200)] {
            let waits = waits(&[("orders", Some(due))]);
            let returns = returns(&waits);
            assert_eq!(returns.period.as_secs(), length, "{due}");
            assert_eq!(returns.functions[0].counts.last(), Some(&1));
        }
    }

    #[test]
    fn overdue_events_count_in_the_first_period() {
        let mut waits = waits(&[("orders", Some(0))]);
        let late = NOW.before(Duration::from_secs(60));
        let line = json!({"timestamp": late, "action": "defer", "due": late, "due_by": "policy", "delay": 0});
        waits.take(&test_line(line));
        assert_eq!(returns(&waits).functions.iter().map(|it| it.counts[0]).sum::<u64>(), 2);
    }

    #[test]
    fn functions_with_few_events_are_counted_together() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let events: Vec<_> =
            names.iter().enumerate().flat_map(|(n, name)| vec![(*name, Some(1)); 9 - n]).collect();
        let waits = waits(&events);
        let returns = returns(&waits);
        assert_eq!(returns.functions.len(), 5);
        assert_eq!((returns.functions[4].target, returns.functions[4].counts[0]), (None, 5 + 4));
    }
}
