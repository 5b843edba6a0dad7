//! Determines the waiting events from the handler's log, the pauses and the allow-list.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;
use std::ops::Range;

use comeback_engine::{
    Cause, DueBy, HOLD, LogFold, LogLine, MessageKind, Timestamp, WaitingMessage, WaitsFor,
};
use serde::{Serialize, Serializer};

use crate::numbers::grouped;
use crate::pauses::in_force::InForce;
use crate::waiting::filter::WaitingFilter;
use crate::waiting::recent::Recent;

/// The maximum number of errors that [`Waits::errors`] lists.
const MOST_NAMED: usize = 5;

/// The waiting events, according to the log lines added so far.
#[derive(Debug, Default)]
pub struct Waits {
    log: LogFold<RandomState>,
    /// Counts for each five-minute period: each function's failures, retries and dead-letters, and all due events.
    pub(super) recent: Recent,
    /// The state of the pauses and the allow-list for each kind of message (function and error).
    situations: Vec<Situation>,
}

/// A range of due times. An event without a due time is in the range only if the range has no limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueRange {
    /// The earliest due time in the range, or `None` for no limit.
    pub from: Option<Timestamp>,
    /// The latest due time in the range, or `None` for no limit.
    pub by: Option<Timestamp>,
}

impl DueRange {
    /// Returns true if the range has no limits.
    pub fn is_everything(self) -> bool {
        self == Self::default()
    }

    fn takes(self, due: Option<Timestamp>) -> bool {
        self.is_everything()
            || due.is_some_and(|due| {
                self.from.is_none_or(|from| due >= from) && self.by.is_none_or(|by| due <= by)
            })
    }
}

/// The current state of the pauses and the allow-list for a function.
#[derive(Clone, Copy, Debug, Default)]
struct Situation {
    in_force: Option<InForce>,
    /// True if the handler will dead-letter the function's events because the function is not on the allow-list.
    is_dead_lettered: bool,
}

/// The reason why an event waits, according to the log or to the current pauses and allow-list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The backoff has not ended.
    Backoff,
    /// The function requested this wait with a `RetryAfter` error.
    RetryAfter,
    /// The function is paused, or its retries are spread over time after a pause.
    Pause,
    /// The function was paused when the handler last checked the event, but is no longer paused.
    Resumed,
    /// Lambda did not respond to the re-invocation, but may have accepted it.
    UnansweredCall,
    /// A call to retry or dead-letter the event failed, and the handler will repeat it.
    FailedCall,
    /// The handler did not retry the event, because it could not read the pauses.
    PausesUnknown,
    /// The function is not on the allow-list, so the handler will dead-letter the event.
    NotAllowed,
}

/// Converts a log line's reason for waiting into a [`Why`].
impl From<WaitsFor> for Why {
    fn from(waits_for: WaitsFor) -> Self {
        match waits_for {
            WaitsFor::Due { by: DueBy::Policy | DueBy::RetryNow, .. } => Self::Backoff,
            WaitsFor::Due { by: DueBy::RetryAfter, .. } => Self::RetryAfter,
            WaitsFor::Due { by: DueBy::Pause, .. } | WaitsFor::Resume => Self::Pause,
            WaitsFor::NextTry { cause: Cause::Unanswered, .. } => Self::UnansweredCall,
            WaitsFor::NextTry { cause: Cause::PausesUnknown, .. } => Self::PausesUnknown,
            WaitsFor::NextTry { .. } => Self::FailedCall,
        }
    }
}

impl Why {
    /// Returns the reason why the event waits, as a short phrase for a table.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::RetryAfter => "RetryAfter",
            Self::Pause => "pause",
            Self::Resumed => "resumed",
            Self::UnansweredCall => "unanswered call",
            Self::FailedCall => "failed call",
            Self::PausesUnknown => "pauses unknown",
            Self::NotAllowed => "dead-lettering",
        }
    }
}

impl Waits {
    /// Creates an empty `Waits` that keeps each message's receipt handle, which a recall needs.
    pub fn keeping_handles() -> Self {
        Self { log: LogFold::default().keeping_handles(), ..Self::default() }
    }

    /// Adds a line from the handler's log.
    pub fn take(&mut self, line: &LogLine<'_>) {
        if let Some(event) = &line.event {
            self.recent.take(line, event, self.log.state_of(event));
        }
        self.log.take(line);
    }

    /// Removes the messages without a log line since this time, because they must have left the queue.
    pub fn forget_before(&mut self, since: Timestamp) {
        self.recent.forget_before(since);
        self.log.forget_before(since);
    }

    /// Applies the current pauses, which may be newer than those in the log, to the waiting events.
    pub fn apply_pauses(&mut self, in_force: impl Fn(&str) -> InForce) {
        self.change(|it, target| it.in_force = target.map(&in_force));
    }

    /// Applies the current allow-list to the waiting events. `dead_letters` returns true if the handler dead-letters
    /// a function's events.
    pub fn apply_allow_list(&mut self, dead_letters: impl Fn(&str) -> bool) {
        self.change(|it, target| it.is_dead_lettered = target.is_some_and(&dead_letters));
    }

    fn change(&mut self, change: impl Fn(&mut Situation, Option<&str>)) {
        let kinds = self.log.kinds();
        self.situations.resize(kinds.len(), Situation::default());
        for (situation, kind) in self.situations.iter_mut().zip(kinds) {
            change(situation, kind.target.as_deref());
        }
    }

    /// Selects the events that match a filter and are due in the range.
    pub fn selected(&self, wanted: &WaitingFilter, range: DueRange) -> Selected<'_> {
        let takes =
            |kind: &MessageKind| wanted.takes_kind(kind.target.as_deref(), kind.error_type.as_deref());
        let kinds: Vec<bool> = self.log.kinds().iter().map(takes).collect();
        let messages = self.log.waiting();
        let messages =
            messages.filter(|message| kinds[message.kind as usize] && wanted.takes_key(&message.key));
        let messages = messages.map(|message| (self.now(message).1, message));
        Selected { waits: self, messages: messages.filter(|(due, _)| range.takes(*due)).collect() }
    }

    /// Groups all waiting events by function and error.
    pub fn all_groups(&self) -> Vec<WaitingGroup<'_>> {
        self.selected(&WaitingFilter::default(), DueRange::default()).groups()
    }

    /// All waiting events, in no particular order.
    pub fn all(&self) -> impl Iterator<Item = WaitingEvent<'_>> {
        self.log.waiting().map(|message| self.event(message))
    }

    /// The messages of all waiting events, in no particular order, each with its event and its kind (function and
    /// error).
    pub fn all_messages(&self) -> impl Iterator<Item = (WaitingEvent<'_>, &WaitingMessage, &MessageKind)> {
        let kinds = self.log.kinds();
        self.log.waiting().map(|message| (self.event(message), message, &kinds[message.kind as usize]))
    }

    /// The functions that the log mentions.
    pub fn targets(&self) -> BTreeSet<&str> {
        let kinds = self.log.kinds().iter().filter_map(|kind| kind.target.as_deref());
        kinds.chain(self.recent.targets()).collect()
    }

    /// The number of waiting events.
    pub fn count(&self) -> usize {
        self.log.waiting().len()
    }

    /// The most frequent errors of the waiting events, if any, with counts: `TargetDown (3), Timeout (1)`.
    pub fn errors(&self) -> Option<String> {
        let mut counts = BTreeMap::<_, u64>::new();
        for event in self.all() {
            *counts.entry(event.error_type.unwrap_or("unknown")).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        let named = counts.iter().take(MOST_NAMED);
        let mut named: Vec<_> =
            named.map(|(error, count)| format!("{error} ({})", grouped(*count))).collect();
        named.extend((counts.len() > MOST_NAMED).then(|| "…".to_owned()));
        (!named.is_empty()).then(|| named.join(", "))
    }

    fn event<'w>(&'w self, message: &'w WaitingMessage) -> WaitingEvent<'w> {
        let WaitingMessage { key, kind, retry, first_failure, .. } = message;
        let MessageKind { target, error_type, .. } = &self.log.kinds()[*kind as usize];
        let (why, due, paused_until) = self.now(message);
        WaitingEvent {
            key,
            target: target.as_deref(),
            retry: *retry,
            error_type: error_type.as_deref(),
            first_failure: *first_failure,
            due,
            why,
            paused_until,
            next_check: message.next_check(),
        }
    }

    /// The reason why a message waits, its due time, and the planned end of the pause that holds it.
    fn now(&self, message: &WaitingMessage) -> (Why, Option<Timestamp>, Option<Timestamp>) {
        let situation = self.situations.get(message.kind as usize).copied().unwrap_or_default();
        let why = Why::from(message.waits_for);
        let due = message.waits_for.end();
        if situation.is_dead_lettered {
            // The handler dead-letters the event even during a pause.
            return (Why::NotAllowed, Some(due.unwrap_or_else(|| message.next_check())), None);
        }
        match situation.in_force {
            Some(pause @ InForce::Paused { until }) if pause.holds(due) => (Why::Pause, None, until),
            Some(InForce::NotPaused { back_by }) if message.waits_for == WaitsFor::Resume => {
                let back_by = back_by.unwrap_or_else(|| message.at.saturating_add(HOLD));
                (Why::Resumed, Some(back_by), None)
            }
            _ => (why, due, None),
        }
    }
}

/// A waiting message and its due time, if known.
type Due<'w> = (Option<Timestamp>, &'w WaitingMessage);

/// Some of the waiting events, each built on demand to save memory.
#[derive(Clone, Debug)]
pub struct Selected<'w> {
    waits: &'w Waits,
    messages: Vec<Due<'w>>,
}

impl<'w> Selected<'w> {
    /// The number of selected events.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns true if no event was selected.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Builds the events, in no particular order unless they were [sorted](Self::in_order).
    pub fn iter(&self) -> impl Iterator<Item = WaitingEvent<'w>> {
        self.messages.iter().map(|(_, message)| self.waits.event(message))
    }

    /// Groups the events by function and error, largest group first.
    pub fn groups(&self) -> Vec<WaitingGroup<'w>> {
        let kinds = self.waits.log.kinds().iter();
        let mut groups: Vec<_> = kinds.map(WaitingGroup::of).collect();
        for (_, message) in &self.messages {
            groups[message.kind as usize].add(&self.waits.event(message));
        }
        groups.retain(|group| group.count > 0);
        groups.sort_by_key(|group| (Reverse(group.count), group.target, group.error_type));
        groups
    }

    /// Sorts the events by due time, with unknown times last. Keeps only the events at the positions `places`.
    #[must_use]
    pub fn in_order(mut self, places: Range<usize>) -> Self {
        let in_order = |(due, message): &Due<'_>, (other_due, other): &Due<'_>| {
            let place = (due.is_none(), due, &message.key, message.retry);
            place.cmp(&(other_due.is_none(), other_due, &other.key, other.retry))
        };
        // Only the requested events are sorted, because sorting a hundred thousand events takes a while.
        if places.end < self.len() {
            self.messages.select_nth_unstable_by(places.end, in_order);
            self.messages.truncate(places.end);
        }
        self.messages.sort_unstable_by(in_order);
        self.messages.drain(..places.start.min(self.len()));
        self
    }
}

impl Serialize for Selected<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// An event that is waiting for its next retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingEvent<'w> {
    /// The event's key.
    pub key: &'w str,
    /// The ARN of the event's function, or `None` if there were too many functions and errors to list separately.
    pub target: Option<&'w str>,
    /// The number of the next retry.
    pub retry: u64,
    /// The error type of the last failed invocation, if known.
    pub error_type: Option<&'w str>,
    /// The time when the event first failed.
    pub first_failure: Timestamp,
    /// The time when the retry is due. For [`Why::Resumed`] and [`Why::NotAllowed`], this is the latest possible
    /// time. `None` while the function is paused, or if the message could not be hidden.
    pub due: Option<Timestamp>,
    /// The reason why the event is waiting.
    pub why: Why,
    /// The planned end of the pause that holds the event, if any.
    pub paused_until: Option<Timestamp>,
    /// The time when the handler next checks the event's message.
    #[serde(skip)]
    pub next_check: Timestamp,
}

/// The waiting events that have the same function and the same error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitingGroup<'w> {
    /// The ARN of the function, or `None` if there were too many functions and errors to list separately.
    pub target: Option<&'w str>,
    /// The type of the error, if known.
    pub error_type: Option<&'w str>,
    /// The number of events in the group.
    pub count: u64,
    /// The earliest time at which any event in the group first failed.
    pub oldest_first_failure: Option<Timestamp>,
    /// The earliest due time in the group.
    pub next_due: Option<Timestamp>,
    /// The latest due time in the group.
    pub last_due: Option<Timestamp>,
    /// The number of events that have no due time because their function is paused.
    pub held: u64,
    /// The number of events that the handler will dead-letter because their function is not on the allow-list.
    pub not_allowed: u64,
    /// The number of events in the group, by the reason for the wait.
    pub why: BTreeMap<Why, u64>,
    /// For an ignored `RetryAfter` error: the start of its message, and the reason why the error was ignored.
    #[serde(skip)]
    pub retry_after_ignored: Option<&'w str>,
}

impl<'w> WaitingGroup<'w> {
    fn of(kind: &'w MessageKind) -> Self {
        Self {
            target: kind.target.as_deref(),
            error_type: kind.error_type.as_deref(),
            retry_after_ignored: kind.retry_after_ignored.as_deref(),
            ..Self::default()
        }
    }

    fn add(&mut self, event: &WaitingEvent<'_>) {
        let earlier = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
        self.count += 1;
        self.oldest_first_failure = earlier(self.oldest_first_failure, Some(event.first_failure));
        self.next_due = earlier(self.next_due, event.due);
        self.last_due = self.last_due.max(event.due);
        self.held += u64::from(event.why == Why::Pause && event.due.is_none());
        self.not_allowed += u64::from(event.why == Why::NotAllowed);
        *self.why.entry(event.why).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::LoggedEvent;
    use serde_json::{Value, json};

    use super::*;
    use crate::log::test_line;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    fn line(second: u64, mut fields: Value) -> LogLine<'static> {
        fields["timestamp"] = json!(at(second));
        test_line(fields)
    }

    fn defers(second: u64, due: u64) -> LogLine<'static> {
        defers_by(second, due, "policy")
    }

    fn defers_by(second: u64, due: u64, by: &str) -> LogLine<'static> {
        line(second, json!({"action": "defer", "due": at(due), "due_by": by, "delay": 60}))
    }

    fn holds(second: u64) -> LogLine<'static> {
        line(second, json!({"action": "hold", "due": at(112), "delay": 1_344}))
    }

    fn due_by(waits: &Waits, by: Timestamp) -> Selected<'_> {
        waits.selected(&WaitingFilter::default(), DueRange { from: None, by: Some(by) })
    }

    fn sorted(waits: &Waits, places: Range<usize>) -> Selected<'_> {
        waits.selected(&WaitingFilter::default(), DueRange::default()).in_order(places)
    }

    fn keys(selected: &Selected<'_>) -> Vec<String> {
        selected.iter().map(|event| event.key.to_owned()).collect()
    }

    fn event_of<'l>(line: &'l mut LogLine<'static>) -> &'l mut LoggedEvent<'static> {
        line.event.as_mut().unwrap()
    }

    fn waits(lines: &[LogLine<'static>]) -> Waits {
        let mut waits = Waits::default();
        lines.iter().for_each(|line| waits.take(line));
        waits
    }

    fn why(lines: &[LogLine<'static>]) -> Vec<(Why, Option<u64>)> {
        let waits = waits(lines);
        sorted(&waits, 0..9).iter().map(|it| (it.why, it.due.map(Timestamp::as_secs))).collect()
    }

    #[test]
    fn each_line_says_why_its_message_waits() {
        let kept = |cause: &str| line(120, json!({"action": "keep", "cause": cause, "delay": 7}));
        for (line, expected) in [
            (defers(110, 900), (Why::Backoff, Some(900))),
            (defers_by(110, 900, "retry_after"), (Why::RetryAfter, Some(900))),
            (defers_by(110, 900, "pause"), (Why::Pause, Some(900))),
            // A due time that an earlier request set counts as backoff.
            (defers_by(110, 900, "retry_now"), (Why::Backoff, Some(900))),
            (holds(120), (Why::Pause, None)),
            (kept("unanswered"), (Why::UnansweredCall, Some(127))),
            (kept("refused"), (Why::FailedCall, Some(127))),
            (kept("not_sent"), (Why::FailedCall, Some(127))),
            (kept("dead_letter_not_sent"), (Why::FailedCall, Some(127))),
            (kept("pauses_unknown"), (Why::PausesUnknown, Some(127))),
        ] {
            assert_eq!(why(&[line]), [expected]);
        }
    }

    #[test]
    fn an_ignored_wait_is_named_for_its_function() {
        let mut ignored = defers(110, 900);
        event_of(&mut ignored).retry_after_ignored = Some("\"soon\": why".into());
        let target = event_of(&mut ignored).target.to_string();
        assert_eq!(waits(&[defers(110, 900)]).all_groups()[0].retry_after_ignored, None);
        let waits = waits(&[ignored]);
        let group = &waits.all_groups()[0];
        assert_eq!(group.target.zip(group.retry_after_ignored), Some((&*target, "\"soon\": why")));
    }

    #[test]
    fn pauses_in_force_override_the_log() {
        let now = |line, in_force| {
            let mut waits = waits(&[line]);
            waits.apply_pauses(|_| in_force);
            let due = due_by(&waits, at(5_000)).len();
            let event = waits.all().next().unwrap();
            let seconds = |moment: Option<Timestamp>| moment.map(Timestamp::as_secs);
            (event.why, seconds(event.due), seconds(event.paused_until), due)
        };
        let until = |until: Option<u64>| InForce::Paused { until: until.map(at) };
        let back_by = |back_by: Option<u64>| InForce::NotPaused { back_by: back_by.map(at) };
        for (line, in_force, expected) in [
            (defers(110, 600), until(Some(4_000)), (Why::Pause, None, Some(4_000), 0)),
            (defers(110, 600), until(None), (Why::Pause, None, None, 0)),
            (defers(110, 600), until(Some(500)), (Why::Backoff, Some(600), None, 1)),
            (defers(110, 600), back_by(Some(900)), (Why::Backoff, Some(600), None, 1)),
            (holds(120), until(None), (Why::Pause, None, None, 0)),
            (holds(120), back_by(Some(900)), (Why::Resumed, Some(900), None, 1)),
            (holds(120), back_by(None), (Why::Resumed, Some(120 + 1_344), None, 1)),
        ] {
            assert_eq!(now(line, in_force), expected, "{in_force:?}");
        }
    }

    #[test]
    fn an_event_off_the_allow_list_waits_to_be_dead_lettered() {
        for (line, due) in [(defers(110, 600), 600), (holds(120), 120 + 1_344)] {
            let mut waits = waits(&[line]);
            waits.apply_pauses(|_| InForce::Paused { until: None });
            waits.apply_allow_list(|target| target != "arn:orders");
            assert_eq!(waits.all().next().unwrap().why, Why::Pause);
            waits.apply_allow_list(|target| target == "arn:orders");
            let event = due_by(&waits, at(due)).iter().next().unwrap();
            assert_eq!((event.why, event.due), (Why::NotAllowed, Some(at(due))));
            let [group] = &waits.all_groups()[..] else { panic!("one group") };
            assert_eq!((group.held, group.not_allowed), (0, 1));
        }
        assert_eq!(serde_json::to_value(Why::NotAllowed).unwrap(), "not_allowed");
    }

    #[test]
    fn events_are_grouped_by_function_and_error() {
        let other = |key: &str, fields: Value| {
            let mut other = line(110, fields);
            event_of(&mut other).key = key.to_owned().into();
            other
        };
        let lines = [
            defers(110, 190),
            other(
                "k-2",
                json!({"action": "defer", "due": at(120), "due_by": "policy", "delay": 60, "first_failure": at(50)}),
            ),
            other("k-3", json!({"action": "hold", "due": at(112), "delay": 60})),
            other(
                "k-4",
                json!({"action": "hold", "due": at(112), "delay": 60, "target": "arn:billing", "error_type": null}),
            ),
        ];
        let waits = waits(&lines);
        let group =
            |target, error_type, count: u64, first, due: Option<(u64, u64)>, held: u64| WaitingGroup {
                target: Some(target),
                error_type,
                count,
                oldest_first_failure: Some(at(first)),
                next_due: due.map(|(next, _)| at(next)),
                last_due: due.map(|(_, last)| at(last)),
                held,
                not_allowed: 0,
                why: [(Why::Backoff, count - held), (Why::Pause, held)]
                    .into_iter()
                    .filter(|(_, n)| *n > 0)
                    .collect(),
                retry_after_ignored: None,
            };
        let orders = group("arn:orders", Some("TargetDown"), 3, 50, Some((120, 190)), 1);
        let billing = group("arn:billing", None, 1, 100, None, 1);
        assert_eq!(waits.all_groups(), [orders, billing]);
        let due = due_by(&waits, at(120)).groups();
        assert_eq!(due, [group("arn:orders", Some("TargetDown"), 1, 50, Some((120, 120)), 0)]);
        assert_eq!(keys(&sorted(&waits, 0..9)), ["k-2", "k-1", "k-3", "k-4"]);
        assert_eq!(keys(&sorted(&waits, 0..1)), ["k-2"]);
    }

    #[test]
    fn a_filter_chooses_by_function_error_and_key() {
        let mut other =
            line(110, json!({"action": "hold", "due": at(112), "delay": 60, "error_type": "Timeout"}));
        event_of(&mut other).key = "k-2".into();
        let waits = waits(&[defers(110, 190), other]);
        let of = |wanted: WaitingFilter, from: Option<u64>, by: Option<u64>| {
            keys(&waits.selected(&wanted, DueRange { from: from.map(at), by: by.map(at) }))
        };
        let error = |glob: &str| WaitingFilter { error: Some(glob.into()), ..WaitingFilter::default() };
        assert_eq!(of(error("Time*"), None, None), ["k-2"]);
        assert_eq!(of(error("Target*"), None, None), ["k-1"]);
        assert_eq!(of(error("Target*"), None, Some(190)), ["k-1"]);
        assert_eq!(of(error("Target*"), None, Some(189)), [""; 0]);
        assert_eq!(of(error("Target*"), Some(190), None), ["k-1"]);
        assert_eq!(of(error("Target*"), Some(191), None), [""; 0]);
        assert_eq!(of(error("Time*"), Some(1), None), [""; 0], "a pause holds it, and nobody knows how long");
        assert_eq!(
            of(WaitingFilter { keys: vec!["k-1".into()], ..WaitingFilter::default() }, None, None),
            ["k-1"]
        );
        let functions = vec!["billing".parse().unwrap()];
        assert_eq!(of(WaitingFilter { functions, ..WaitingFilter::default() }, None, None), [""; 0]);
        assert_eq!(keys(&sorted(&waits, 1..9)), ["k-2"]);
        assert!(sorted(&waits, 7..9).is_empty());
    }

    #[test]
    fn a_message_without_a_line_for_too_long_is_forgotten() {
        let mut waits = waits(&[defers(110, 190)]);
        waits.forget_before(at(110));
        assert_eq!(waits.all().count(), 1);
        waits.forget_before(at(111));
        assert!(waits.all().next().is_none() && waits.errors().is_none());
    }

    #[test]
    fn frequent_errors_are_named_first() {
        assert_eq!(Waits::default().errors(), None);
        let mut waits = Waits::default();
        let errors = ["E-1", "Down", "Down", "Timeout", "Timeout", "Timeout", "E-2", "E-3"];
        for (n, error) in errors.into_iter().enumerate() {
            let mut line = defers(110, 112);
            let event = event_of(&mut line);
            (event.key, event.error_type) = (format!("k-{n}").into(), Some(error.into()));
            waits.take(&line);
        }
        assert_eq!(waits.errors().unwrap(), "Timeout (3), Down (2), E-1 (1), E-2 (1), E-3 (1)");
        let mut unknown = defers(110, 112);
        let event = event_of(&mut unknown);
        (event.key, event.error_type) = ("k-8".into(), None);
        waits.take(&unknown);
        assert_eq!(waits.errors().unwrap(), "Timeout (3), Down (2), E-1 (1), E-2 (1), E-3 (1), …");
    }

    #[test]
    fn too_many_errors_are_counted_together() {
        let mut waits = Waits::default();
        for n in 0..1_005 {
            let mut line = defers(110, 112);
            let event = event_of(&mut line);
            (event.key, event.error_type) = (format!("k-{n}").into(), Some(format!("E-{n}").into()));
            waits.take(&line);
        }
        let others = &waits.all_groups()[0];
        assert_eq!((others.target, others.error_type, others.count), (None, None, 5));
    }
}
