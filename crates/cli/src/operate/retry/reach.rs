//! What an order to retry reaches, and by when, estimated from the handler's log.

use std::time::Duration;

use comeback_engine::{Policies, Timestamp};
use serde::Serialize;

use crate::operate::deployment::Deployment;
use crate::operate::pauses::noticed_within;
use crate::operate::waiting::{WaitingEvent, Waits, Why};

/// What an order reaches of the events that wait and that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reach {
    pub(super) found: u64,
    /// Those that are retried by the order, or sooner.
    pub(super) reached: u64,
    pub(super) half_within_seconds: Option<u64>,
    pub(super) all_within_seconds: Option<u64>,
    /// Their function asked for the wait.
    pub(super) retry_after: u64,
    /// A pause holds them, or has moved them.
    pub(super) paused: u64,
    /// A call for them was not answered or did not work, or pauses could not be read.
    pub(super) unanswered: u64,
    /// Their next retry is the last that `MAX_RETRIES` allows.
    pub(super) last_retry: u64,
}

impl Reach {
    pub(super) fn of(
        waits: &Waits,
        deployment: &Deployment,
        within: Duration,
        longest_hide: Duration,
        now: Timestamp,
    ) -> Self {
        let policies = Policies::from_variables(|name| deployment.variables.get(name).cloned()).ok();
        let is_last = |event: &WaitingEvent<'_>| {
            let policy = policies.as_ref().zip(event.target).map(|(policies, target)| policies.of(target));
            policy.is_some_and(|policy| event.retry >= policy.max_retries())
        };
        let mut reach = Self::default();
        let mut waiting = Vec::new();
        for event in waits.due_by(None) {
            reach.found += 1;
            match event.why {
                Why::RetryAfter => reach.retry_after += 1,
                Why::Pause | Why::Resumed => reach.paused += 1,
                Why::UnansweredCall | Why::FailedCall | Why::PausesUnknown => reach.unanswered += 1,
                Why::Backoff if is_last(&event) => reach.last_retry += 1,
                Why::Backoff => waiting.push((event.logged, event.due)),
            }
        }
        let noticed = now.saturating_add(noticed_within(deployment).unwrap_or_default());
        // Each event draws a moment of its own. Which one is not known here, but they are spread evenly.
        let count = waiting.len() as u32;
        let retried = waiting.iter().zip(0..count).map(|((logged, due), number)| {
            let moment = now.saturating_add(within * (number + 1) / count);
            let look = next_look(*logged, longest_hide, noticed);
            due.map_or(look.max(moment), |due| due.min(look.max(moment)))
        });
        let mut retried: Vec<u64> = retried.map(|at| at.since(now).as_secs()).collect();
        retried.sort_unstable();
        reach.reached = retried.len() as u64;
        reach.all_within_seconds = retried.last().copied();
        reach.half_within_seconds = retried.get(retried.len().saturating_sub(1) / 2).copied();
        reach
    }

    /// What the order leaves alone, and why.
    pub(super) fn left_alone(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let Self { retry_after, paused, unanswered, last_retry, .. } = *self;
        let all = [
            (retry_after, "whose function asked for the wait (RetryAfter)"),
            (paused, "which a pause holds, or brings back over its spread"),
            (unanswered, "whose last call failed or was not answered"),
            (last_retry, "before the last retry that MAX_RETRIES allows"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0)
    }
}

/// When the handler looks at a message again after `noticed`, if it writes no line when it only hides it again.
fn next_look(logged: Timestamp, longest_hide: Duration, noticed: Timestamp) -> Timestamp {
    let piece = longest_hide.as_millis().max(1) as u64;
    let pieces = (noticed.since(logged).as_millis() as u64).div_ceil(piece);
    logged.saturating_add(Duration::from_millis(pieces * piece)).max(noticed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operate::log::HandlerLine;

    const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);

    fn before(seconds: u64) -> Timestamp {
        Timestamp::from_secs(NOW.as_secs() - seconds)
    }

    fn take(waits: &mut Waits, key: &str, at: Timestamp, retry: u64, more: serde_json::Value) {
        let due = NOW.saturating_add(Duration::from_secs(30_000));
        let mut line = json!({
            "timestamp": at.to_string(), "key": key, "target": "arn:aws:lambda:eu-west-1:123456789012:function:orders",
            "retry": retry, "action": "defer", "due": due.to_string(), "delay": 3_600,
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        waits.take(&HandlerLine::read(&line.to_string()).unwrap());
    }

    #[test]
    fn an_order_reaches_backoffs_when_the_handler_looks() {
        let mut waits = Waits::default();
        // The next looks are in 1,000 and 3,500 s, and one is due in 60 s.
        take(&mut waits, "k-1", before(2_600), 1, json!({}));
        take(&mut waits, "k-2", before(3_700), 1, json!({}));
        take(
            &mut waits,
            "k-3",
            before(3_600 - 60),
            1,
            json!({"due": NOW.saturating_add(Duration::from_secs(60)).to_string()}),
        );
        take(&mut waits, "k-4", before(10), 1, json!({"retry_after": NOW.to_string()}));
        take(&mut waits, "k-5", before(10), 185, json!({}));
        take(&mut waits, "k-6", before(10), 1, json!({"action": "hold"}));
        let (within, hour) = (Duration::from_secs(300), Duration::from_secs(3_600));
        let reach = Reach::of(&waits, &Deployment::sample(), within, hour, NOW);
        assert_eq!((reach.found, reach.reached), (6, 3));
        assert_eq!((reach.half_within_seconds, reach.all_within_seconds), (Some(1_000), Some(3_500)));
        assert_eq!((reach.retry_after, reach.last_retry, reach.paused), (1, 1, 1));
    }

    #[test]
    fn a_look_before_the_order_is_noticed_does_not_count() {
        let hour = Duration::from_secs(3_600);
        let noticed = NOW.saturating_add(Duration::from_secs(38));
        assert_eq!(next_look(before(3_590), hour, noticed), NOW.saturating_add(Duration::from_secs(3_610)));
        assert_eq!(next_look(before(3_500), hour, noticed), NOW.saturating_add(Duration::from_secs(100)));
    }
}
