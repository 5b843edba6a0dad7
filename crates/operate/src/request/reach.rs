//! Estimates which waiting events a request or the end of a pause affects, and when they are retried.

use std::collections::HashSet;
use std::time::Duration;

use comeback_engine::{LONGEST_HOP, NotRecalled, Pauses, Recall, RequestKind, Rules, Timestamp};
use serde::Serialize;

use crate::deployment::Deployment;
use crate::durations;
use crate::numbers::{counted, grouped};
use crate::pauses::noticed_within;
use crate::waiting::events::{WaitingEvent, Waits, Why};
use crate::waiting::no_error_matches;

/// An estimate of which waiting events a request or the end of a pause affects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// The number of events that match the request's function, error and keys.
    pub found: u64,
    /// The number of events that the request affects, including those that would be retried just as soon without it.
    pub reached: u64,
    /// The number of affected events whose messages become visible earlier because of the request or the end of the
    /// pause.
    pub recalled: u64,
    /// The longest time that an affected event's message would stay hidden without a new visibility timeout.
    #[serde(skip)]
    pub hidden: Duration,
    /// True if the request makes at least one retry due earlier. Also true if it cancels at least one event.
    #[serde(skip)]
    pub brings_forward: bool,
    /// The number of seconds within which half of the affected events are retried, or `None` if no event is affected.
    pub half_within_seconds: Option<u64>,
    /// The number of seconds within which all affected events are retried, or `None` if no event is affected.
    pub all_within_seconds: Option<u64>,
    /// The number of events whose messages are not recalled, because an earlier request or resume already applied to
    /// them. The new request applies to such a message once it becomes visible.
    pub before: u64,
    /// The number of events whose messages were moved (sent again with a delay). The handler checks these messages
    /// within 15 minutes.
    pub moved: u64,
    /// The number of events that wait because their function returned `RetryAfter`. A request does not shorten such a
    /// wait.
    pub retry_after: u64,
    /// The number of events that a pause holds.
    pub paused: u64,
    /// The number of events whose pause has ended, and whose retries are spread over a period after it.
    pub returning: u64,
    /// The number of events whose last invocation got no response from Lambda, and may have succeeded.
    pub unanswered: u64,
    /// The number of events with only one retry left under `MAX_RETRIES`.
    pub last_retry: u64,
    /// The error glob and the waiting events' errors, if the glob matches none of the errors.
    #[serde(skip)]
    pub unmatched: Option<(String, String)>,
    /// The event key and retry number of each affected event.
    #[serde(skip)]
    pub retries: HashSet<(String, u64)>,
}

impl Reach {
    /// Estimates which waiting events are affected by `entry`: a request, or the end of a pause.
    pub fn of(waits: &Waits, deployment: &Deployment, pauses: &Pauses, entry: Recall<'_>) -> Self {
        let mut reach = Self::default();
        let Ok(policies) = deployment.policies() else { return reach };
        let rules = Rules { policies: &policies, pauses };
        let now = entry.at();
        let noticed = now.saturating_add(noticed_within(deployment).unwrap_or_default());
        let mut retried = Vec::new();
        for (event, message, kind) in waits.all_messages() {
            let due = entry.due(message, kind, rules, now);
            reach.found += u64::from(due != Err(NotRecalled::NotCovered));
            // A separate note reports the events whose function is not on the allow-list.
            if event.why == Why::NotAllowed {
                continue;
            }
            let by_itself = next_check(&event, noticed);
            let at = match due {
                Ok(due) => {
                    reach.recalled += 1;
                    due.max(noticed)
                }
                Err(why) if reach.leaves_alone(why, entry) => continue,
                // This due time is an estimate, because the handler picks the actual time later.
                Err(_) => {
                    let drawn = entry.drawn(event.key, message);
                    by_itself.max(event.due.map_or(drawn, |due| due.min(drawn)))
                }
            };
            reach.retries.insert((event.key.to_owned(), event.retry));
            reach.hidden = reach.hidden.max(by_itself.since(now));
            reach.brings_forward |= entry.is_cancel() || event.due.is_none_or(|due| at < due);
            retried.push(at.since(now).as_secs());
        }
        retried.sort_unstable();
        reach.reached = retried.len() as u64;
        reach.all_within_seconds = retried.last().copied();
        reach.half_within_seconds = retried.get(retried.len().saturating_sub(1) / 2).copied();
        reach
    }

    /// Describes how many hidden messages are recalled, and why the others are not. `due` says when a recalled message
    /// becomes visible. `paused` is the reason given for the messages of paused functions.
    pub(crate) fn lines(&self, noticed: Option<u64>, due: &str, paused: &'static str) -> Vec<String> {
        let not = |(count, why)| format!("  not recalled: {}, {why}", counted(count, "event", "events"));
        let mut lines: Vec<String> = self.not_recalled(paused).map(not).collect();
        if self.recalled > 0 {
            let noticed = durations::text(Duration::from_secs(noticed.unwrap_or_default()));
            let messages = counted(self.recalled, "message is", "messages are");
            let once = format!("{messages} recalled once the handler has read the request ({noticed})");
            lines.push(format!("{once}: each returns {due}."));
        }
        lines
    }

    /// Counts an event whose message is not recalled, under the reason `why` if that reason is counted. Returns true if
    /// `entry` does not affect when the event is due.
    fn leaves_alone(&mut self, why: NotRecalled, entry: Recall<'_>) -> bool {
        let (count, leaves_alone) = match why {
            NotRecalled::NotCovered => return true,
            NotRecalled::Soon => return false,
            NotRecalled::Before => (&mut self.before, false),
            NotRecalled::Moved => (&mut self.moved, false),
            NotRecalled::RetryAfter => (&mut self.retry_after, true),
            NotRecalled::Paused => (&mut self.paused, true),
            NotRecalled::Returning => (&mut self.returning, true),
            // A cancellation needs no invocation, so it takes effect when the message returns.
            NotRecalled::Unanswered => (&mut self.unanswered, !entry.is_cancel()),
            NotRecalled::LastRetry => (&mut self.last_retry, true),
        };
        *count += 1;
        leaves_alone
    }

    /// Describes how many events are retried or cancelled, and how soon.
    pub fn in_words(&self, kind: RequestKind) -> String {
        let Self { found, reached, .. } = *self;
        let is_cancel = kind == RequestKind::Cancel;
        let short = |seconds: Option<u64>| durations::short(seconds.unwrap_or_default() as f64);
        let [all, half] = [self.all_within_seconds, self.half_within_seconds].map(short);
        if let Some((glob, errors)) = &self.unmatched {
            return no_error_matches(glob, errors);
        }
        if reached == 0 {
            return if is_cancel { "nothing to cancel" } else { "nothing to speed up" }.into();
        }
        if !self.brings_forward {
            let (these, they) = if reached == 1 { ("this", "it is") } else { ("these", "they are") };
            let events = counted(reached, "event returns", "events return");
            return format!("nothing to speed up: {these} {events} when {they} due anyway (within {all})");
        }
        let events = if reached == found {
            counted(reached, "waiting event", "waiting events")
        } else {
            format!("{} of {} waiting events", grouped(reached), grouped(found))
        };
        let done = if is_cancel { "cancelled" } else { "retried" };
        format!("{events} will be {done}, all within {all}, half within {half}")
    }

    fn not_recalled(&self, paused: &'static str) -> impl Iterator<Item = (u64, &'static str)> {
        let Self { before, moved, retry_after, returning, unanswered, last_retry, .. } = *self;
        let all = [
            (
                before,
                "recalled or left by an earlier request: the handler finds this one when their hiding ends",
            ),
            (moved, "sent again with a delay: the handler finds the request within 15m"),
            (retry_after, "which wait because their function asked for it (RetryAfter)"),
            (self.paused, paused),
            (returning, "returning within the spread of a pause that has ended"),
            (unanswered, "whose last call was not answered: it may have succeeded"),
            (last_retry, "with only one retry left (MAX_RETRIES)"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0)
    }
}

/// Estimates when the handler next checks the event, once it has read the request at the time `noticed`. It checks a
/// moved message every 15 minutes until the retry is due. It does not log these checks.
fn next_check(event: &WaitingEvent<'_>, noticed: Timestamp) -> Timestamp {
    match event.due {
        _ if event.next_check >= noticed => event.next_check,
        Some(due) if due <= noticed.saturating_add(LONGEST_HOP) => due,
        _ => noticed.saturating_add(LONGEST_HOP),
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::{PauseTarget, Request};
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
            "timestamp": at, "message_id": key, "key": key, "retry": retry, "receipt_handle": "h-1",
            "target": "arn:aws:lambda:eu-west-1:123456789012:function:orders",
            "action": "defer", "due": due, "due_by": "policy", "delay": 3_600,
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        waits.take(&test_line(line));
    }

    /// Estimates what a retry request would affect, if the handler reads it within 38 s.
    fn reach(waits: &Waits, pauses: &str) -> Reach {
        let request = Request {
            kind: RequestKind::Retry,
            target: PauseTarget::All,
            at: NOW,
            within: Duration::from_secs(300),
            errors: Vec::new(),
            keys: Vec::new(),
            by: None,
            why: None,
            until: None,
            withdrawn: false,
            millis: 0,
        };
        let pauses = Pauses::read(&format!(r#"{{"v":1,"pauses":[{pauses}]}}"#)).unwrap();
        Reach::of(waits, &Deployment::sample(), &pauses.with_request(&request), Recall::Request(&request))
    }

    #[test]
    fn request_recalls_events_in_backoff() {
        let mut waits = Waits::keeping_handles();
        let in_a_minute = NOW.saturating_add(Duration::from_secs(60));
        take(&mut waits, ("k-1", 1), before(2_600), json!({}));
        take(&mut waits, ("k-2", 1), before(100), json!({}));
        take(&mut waits, ("k-3", 1), before(3_600 - 60), json!({"due": in_a_minute}));
        take(&mut waits, ("k-4", 1), before(10), json!({"due_by": "retry_after"}));
        take(&mut waits, ("k-5", 1_000), before(10), json!({}));
        take(&mut waits, ("k-6", 1), before(10), json!({"action": "hold"}));
        let moved = json!({"receipt_handle": null, "delay": 900});
        take(&mut waits, ("k-7", 1), before(10), moved);
        let unanswered =
            json!({"receipt_handle": null, "action": "keep", "cause": "unanswered", "due_by": null});
        take(&mut waits, ("k-8", 1), before(10), unanswered);
        let reach = reach(&waits, "");
        assert_eq!((reach.found, reach.reached, reach.recalled), (8, 4, 2));
        let counts = (reach.retry_after, reach.last_retry, reach.paused, reach.returning);
        assert_eq!((counts, reach.unanswered, reach.moved), ((1, 1, 0, 1), 1, 1));
        assert!(reach.half_within_seconds.is_some_and(|half| (38..=300).contains(&half)), "{reach:?}");
        assert_eq!(reach.all_within_seconds, Some(890), "the moved one");
        assert_eq!(reach.hidden.as_secs(), 3_500, "without a recall");
    }

    #[test]
    fn paused_events_are_left_alone() {
        let mut waits = Waits::keeping_handles();
        take(&mut waits, ("k-1", 1), before(2_600), json!({}));
        let billing = "arn:aws:lambda:eu-west-1:123456789012:function:billing";
        take(&mut waits, ("k-2", 1), before(10), json!({"target": billing}));
        let reach = |target: &str| {
            let reach =
                reach(&waits, &format!(r#"{{"target":"{target}","from":1,"until":null,"spread":0}}"#));
            (reach.recalled, reach.paused, reach.brings_forward, reach.in_words(RequestKind::Retry))
        };
        let (recalled, paused, brings_forward, words) = reach(billing);
        assert_eq!((recalled, paused, brings_forward), (1, 1, true));
        assert!(words.starts_with("1 of 2 waiting events will be retried, all within "), "{words}");
        assert_eq!(reach("*"), (0, 2, false, "nothing to speed up".into()));
    }

    #[test]
    fn unlisted_events_are_not_reached() {
        let mut waits = Waits::keeping_handles();
        take(&mut waits, ("k-1", 1), before(2_600), json!({}));
        waits.apply_allow_list(|target| target.ends_with(":orders"));
        let reach = reach(&waits, "");
        assert_eq!((reach.found, reach.reached), (1, 0));
    }

    #[test]
    fn useless_request_is_recognized() {
        let due = |seconds: u64| NOW.saturating_add(Duration::from_secs(seconds));
        let mut waits = Waits::keeping_handles();
        let said = |waits: &Waits| {
            let reach = reach(waits, "");
            (reach.brings_forward, reach.in_words(RequestKind::Retry))
        };
        assert_eq!(said(&waits), (false, "nothing to speed up".to_owned()));
        let soon = json!({"due": due(20), "delay": 30, "receipt_handle": null});
        take(&mut waits, ("k-1", 1), before(10), soon);
        let one = "nothing to speed up: this 1 event returns when it is due anyway (within 20s)";
        assert_eq!(said(&waits), (false, one.into()));
        let soon = json!({"due": due(35), "delay": 45, "receipt_handle": null});
        take(&mut waits, ("k-2", 1), before(10), soon);
        let both = "nothing to speed up: these 2 events return when they are due anyway (within 35s)";
        assert_eq!(said(&waits), (false, both.into()));
        take(&mut waits, ("k-3", 1), before(10), json!({}));
        assert!(said(&waits).0);
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
