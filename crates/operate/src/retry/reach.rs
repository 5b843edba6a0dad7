//! The reach of a request to retry: which events, and by when, estimated from the handler's log.

use std::collections::HashSet;
use std::time::Duration;

use comeback_engine::{Pauses, Timestamp};
use serde::Serialize;

use crate::deployment::Deployment;
use crate::durations;
use crate::numbers::{counted, grouped};
use crate::pauses::noticed_within;
use crate::waiting::events::{WaitingEvent, Waits, Why};
use crate::waiting::no_error_matches;

/// The longest delay that SQS allows.
const HOP: Duration = Duration::from_secs(900);

/// The waiting events that a request names, and those of them that it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// The events that the request names.
    pub found: u64,
    /// Those that are retried by the request, or sooner.
    pub reached: u64,
    /// The longest that one of them stays hidden from now on.
    #[serde(skip)]
    pub hidden: Duration,
    /// True if any is retried sooner than without the request.
    #[serde(skip)]
    pub brings_forward: bool,
    /// Half of them are retried within this time; `None` if none is.
    pub half_within_seconds: Option<u64>,
    /// All of them are retried within this time.
    pub all_within_seconds: Option<u64>,
    /// Their function asked for the wait.
    pub retry_after: u64,
    /// A pause holds them or their function.
    pub paused: u64,
    /// They return within the spread of a pause that is over.
    pub returning: u64,
    /// A call for them was not answered or did not work, or pauses could not be read.
    pub unanswered: u64,
    /// Their next retry is the last that `MAX_RETRIES` allows.
    pub last_retry: u64,
    /// The request's error glob and the errors of the events that wait, if it takes none of them.
    #[serde(skip)]
    pub unmatched: Option<(String, String)>,
    /// The retries of the events that are reached: the keys and their numbers.
    #[serde(skip)]
    pub retries: HashSet<(String, u64)>,
}

/// The retries of a request come from this moment on, within this time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its begin.
    pub from: Timestamp,
    /// Its length.
    pub within: Duration,
}

impl Reach {
    /// The reach of a request by the events that wait, under these pauses.
    pub fn of(waits: &Waits, deployment: &Deployment, pauses: &Pauses, window: Window) -> Self {
        let Window { from: now, within } = window;
        let policies = deployment.policies().ok();
        let is_last = |event: &WaitingEvent<'_>| {
            let policy = policies.as_ref().zip(event.target).map(|(policies, target)| policies.of(target));
            policy.is_some_and(|policy| event.retry >= policy.settings().max_retries)
        };
        let is_paused = |target: &str| pauses.of_function(target).any(|pause| pause.is_active(now));
        let noticed = now.saturating_add(noticed_within(deployment).unwrap_or_default());
        let mut reach = Self::default();
        let mut waiting = Vec::new();
        for event in waits.all() {
            reach.found += 1;
            match event.why {
                Why::RetryAfter => reach.retry_after += 1,
                Why::Resumed => reach.returning += 1,
                Why::Pause if !event.target.is_some_and(is_paused) => reach.returning += 1,
                Why::Pause => reach.paused += 1,
                Why::UnansweredCall | Why::FailedCall | Why::PausesUnknown => reach.unanswered += 1,
                // A note says what becomes of them.
                Why::NotAllowed => {}
                // The pause may outlast the request.
                Why::Backoff if event.target.is_some_and(is_paused) => reach.paused += 1,
                Why::Backoff if is_last(&event) => reach.last_retry += 1,
                Why::Backoff => {
                    reach.retries.insert((event.key.to_owned(), event.retry));
                    let check = next_check(&event, noticed);
                    reach.hidden = reach.hidden.max(check.since(now));
                    reach.brings_forward |= event.due.is_none_or(|due| check < due);
                    waiting.push((check, event.due));
                }
            }
        }
        // Each event draws a moment of its own. Which one is not known here, but they are spread evenly.
        let count = waiting.len() as u32;
        let retried = waiting.iter().zip(0..count).map(|((check, due), number)| {
            let moment = now.saturating_add(within * (number + 1) / count);
            let check = (*check).max(moment);
            due.map_or(check, |due| due.min(check))
        });
        let mut retried: Vec<u64> = retried.map(|at| at.since(now).as_secs()).collect();
        retried.sort_unstable();
        reach.reached = retried.len() as u64;
        reach.all_within_seconds = retried.last().copied();
        reach.half_within_seconds = retried.get(retried.len().saturating_sub(1) / 2).copied();
        reach
    }

    /// The number of events that are retried, and by when.
    pub fn in_words(&self) -> String {
        let Self { found, reached, .. } = *self;
        let short = |seconds: Option<u64>| durations::short(seconds.unwrap_or_default() as f64);
        let [all, half] = [self.all_within_seconds, self.half_within_seconds].map(short);
        if let Some((glob, errors)) = &self.unmatched {
            return no_error_matches(glob, errors);
        }
        if reached == 0 {
            return "nothing to speed up".into();
        }
        if !self.brings_forward {
            let (these, they) = if reached == 1 { ("this", "it is") } else { ("these", "they are") };
            let events = counted(reached, "event", "events");
            return format!(
                "nothing to speed up. A waiting message stays hidden until its next check; for {these} {events}, that \
                 is when {they} due anyway (within {all})"
            );
        }
        let events = if reached == found {
            counted(reached, "waiting event", "waiting events")
        } else {
            format!("{} of {} waiting events", grouped(reached), grouped(found))
        };
        format!("{events} will be retried, all within {all}, half within {half}")
    }

    /// The numbers of events that the request leaves alone, with the reasons.
    pub fn left_alone(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let Self { retry_after, paused, returning, unanswered, last_retry, .. } = *self;
        let all = [
            (retry_after, "which wait because their function asked for it (RetryAfter)"),
            (paused, "held by a pause: resume, then retry again"),
            (returning, "returning within the spread of a pause that has ended; nothing brings them forward"),
            (unanswered, "whose last call failed or was not answered"),
            (last_retry, "with only one retry left (MAX_RETRIES)"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0)
    }
}

/// The first check of a message after the handler has noticed the request. If its last line says that it was to be checked
/// earlier, and its retry is due later, then it is a copy that moves on, for 15 minutes at a time and without a line.
fn next_check(event: &WaitingEvent<'_>, noticed: Timestamp) -> Timestamp {
    match event.due {
        _ if event.next_check >= noticed => event.next_check,
        Some(due) if due <= noticed.saturating_add(HOP) => due,
        _ => noticed.saturating_add(HOP),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::log::test_line;

    const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);

    fn before(seconds: u64) -> Timestamp {
        Timestamp::from_secs(NOW.as_secs() - seconds)
    }

    fn take(waits: &mut Waits, (key, retry): (&str, u64), at: Timestamp, more: serde_json::Value) {
        let due = NOW.saturating_add(Duration::from_secs(30_000));
        let mut line = json!({
            "timestamp": at, "key": key, "target": "arn:aws:lambda:eu-west-1:123456789012:function:orders",
            "retry": retry, "action": "defer", "due": due, "due_by": "policy", "delay": 3_600,
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        waits.take(&test_line(line));
    }

    #[test]
    fn a_request_reaches_backoffs_when_the_handler_checks() {
        let mut waits = Waits::default();
        // The next checks are in 1,000 and 3,500 s, and one is due in 60 s.
        take(&mut waits, ("k-1", 1), before(2_600), json!({}));
        take(&mut waits, ("k-2", 1), before(100), json!({}));
        take(
            &mut waits,
            ("k-3", 1),
            before(3_600 - 60),
            json!({"due": NOW.saturating_add(Duration::from_secs(60)).to_string()}),
        );
        take(&mut waits, ("k-4", 1), before(10), json!({"due_by": "retry_after"}));
        take(&mut waits, ("k-5", 1_000), before(10), json!({}));
        take(&mut waits, ("k-6", 1), before(10), json!({"action": "hold"}));
        let within = Duration::from_secs(300);
        let reach =
            Reach::of(&waits, &Deployment::sample(), &Pauses::default(), Window { from: NOW, within });
        assert_eq!((reach.found, reach.reached), (6, 3));
        assert_eq!((reach.half_within_seconds, reach.all_within_seconds), (Some(1_000), Some(3_500)));
        assert_eq!((reach.retry_after, reach.last_retry, reach.paused, reach.returning), (1, 1, 0, 1));
    }

    #[test]
    fn what_a_pause_holds_is_left_alone() {
        let mut waits = Waits::default();
        take(&mut waits, ("k-1", 1), before(2_600), json!({}));
        let billing = "arn:aws:lambda:eu-west-1:123456789012:function:billing";
        take(&mut waits, ("k-2", 1), before(10), json!({"target": billing}));
        let reach = |target: &str| {
            let pause = format!(r#"{{"target":"{target}","from":1,"until":null,"spread":0}}"#);
            let pauses = Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}]}}"#)).unwrap();
            let within = Duration::from_secs(300);
            let reach = Reach::of(&waits, &Deployment::sample(), &pauses, Window { from: NOW, within });
            (reach.reached, reach.paused, reach.brings_forward, reach.in_words())
        };
        let one = "1 of 2 waiting events will be retried, all within 16m 40s, half within 16m 40s";
        assert_eq!(reach(billing), (1, 1, true, one.into()));
        assert_eq!(reach("*"), (0, 2, false, "nothing to speed up".into()));
    }

    #[test]
    fn what_the_allow_list_dead_letters_is_not_reached() {
        let mut waits = Waits::default();
        take(&mut waits, ("k-1", 1), before(2_600), json!({}));
        waits.apply_allow_list(|target| target.ends_with(":orders"));
        let within = Duration::from_secs(300);
        let reach =
            Reach::of(&waits, &Deployment::sample(), &Pauses::default(), Window { from: NOW, within });
        assert_eq!((reach.found, reach.reached), (1, 0));
    }

    #[test]
    fn a_request_that_would_bring_nothing_forward_is_known() {
        let soon = json!({"due": NOW.saturating_add(Duration::from_secs(20)).to_string()});
        let mut waits = Waits::default();
        let reach = |waits: &Waits| {
            let within = Duration::from_secs(300);
            let reach =
                Reach::of(waits, &Deployment::sample(), &Pauses::default(), Window { from: NOW, within });
            (reach.brings_forward, reach.in_words())
        };
        let nothing = "nothing to speed up";
        let stays = "A waiting message stays hidden until its next check; for";
        assert_eq!(reach(&waits), (false, nothing.to_owned()));
        // The handler notices a request within 38 s.
        take(&mut waits, ("k-1", 1), before(10), soon);
        assert_eq!(
            reach(&waits),
            (false, format!("{nothing}. {stays} this 1 event, that is when it is due anyway (within 20s)"))
        );
        // Hidden until it is due, so the handler does not check it before.
        let hidden = json!({"due": NOW.saturating_add(Duration::from_secs(280)).to_string(), "delay": 300});
        take(&mut waits, ("k-2", 1), before(20), hidden);
        assert_eq!(
            reach(&waits),
            (
                false,
                format!(
                    "{nothing}. {stays} these 2 events, that is when they are due anyway (within 4m 40s)"
                )
            )
        );
        take(&mut waits, ("k-3", 1), before(10), json!({}));
        assert!(reach(&waits).0);
    }

    #[test]
    fn a_copy_that_moves_on_is_checked_every_15_minutes() {
        let noticed = NOW.saturating_add(Duration::from_secs(38));
        let after = |seconds| NOW.saturating_add(Duration::from_secs(seconds));
        let check = |at: Timestamp, hidden: u64, due: Timestamp| {
            let mut waits = Waits::default();
            take(&mut waits, ("k", 1), at, json!({"due": due.to_string(), "delay": hidden}));
            let event = waits.all().next().unwrap();
            next_check(&event, noticed)
        };
        assert_eq!(check(before(100), 200, after(9_000)), after(100), "its hiding has not ended");
        assert_eq!(check(before(1_000), 900, after(9_000)), after(938));
        assert_eq!(check(before(1_000), 900, after(60)), after(60));
    }
}
