//! The waiting events, computed from the handler's log, under the pauses and the allow-list in force.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::RandomState;
use std::ops::Range;

use comeback_engine::{
    Cause, DueBy, HOLD, LogFold, LogLine, MessageKind, Timestamp, WaitingMessage, WaitsFor,
};
use serde::{Serialize, Serializer};

use crate::numbers::grouped;
use crate::pauses::in_force::InForce;
use crate::waiting::wanted::Wanted;

/// The most errors that are named if none matches a glob.
const MOST_NAMED: usize = 5;

/// The events that wait according to some of the handler's lines.
#[derive(Debug, Default)]
pub struct Waits {
    log: LogFold<RandomState>,
    /// The situation of each of the log's kinds.
    situations: Vec<Situation>,
    /// The start of the lines. A message whose last line is older is left out: it left the queue, and the line about
    /// that is missing.
    since: Option<Timestamp>,
}

/// The events that a filter chooses.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    wanted: Wanted,
    /// True for each of the log's kinds that the filter matches.
    kinds: Vec<bool>,
    /// The latest due time of the events, if limited.
    by: Option<Timestamp>,
}

/// The pauses and the allow-list for a function.
#[derive(Clone, Copy, Debug, Default)]
struct Situation {
    /// The pauses in force; `None` if they are unknown.
    in_force: Option<InForce>,
    /// The handler dead-letters the function's events, because the allow-list lacks it.
    is_dead_lettered: bool,
}

/// The reason for a wait: the kind of the log's [`WaitsFor`], or the state that is in force instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The retry is not due yet.
    Backoff,
    /// The function asked for this wait.
    RetryAfter,
    /// The function is paused, or its retries come back spread over some time after a pause.
    Pause,
    /// The function was paused at the handler's last check, and no longer is.
    Resumed,
    /// Lambda may have accepted the re-invocation, and did not answer.
    UnansweredCall,
    /// The event could not be re-invoked or dead-lettered.
    FailedCall,
    /// The handler could not read the pauses, so any function may be paused.
    PausesUnknown,
    /// The function is not on the allow-list, so the handler will dead-letter the event.
    NotAllowed,
}

/// Converts the reason that the log gives.
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
    /// The reason, as a table shows it.
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
    /// Starts without lines. Lines that are taken keep their receipt handles, for a recall.
    pub fn keeping_handles() -> Self {
        Self { log: LogFold::default().keeping_handles(), ..Self::default() }
    }

    /// Returns true if receipt handles are kept.
    pub(super) fn keeps_handles(&self) -> bool {
        self.log.keeps_handles()
    }

    /// Takes a line of the handler's log.
    pub fn take(&mut self, line: &LogLine<'_>) {
        self.log.take(line);
    }

    /// Leaves out messages without a line since this time.
    pub fn forget_before(&mut self, since: Timestamp) {
        self.since = Some(since);
    }

    /// Applies the pauses in force, which may be newer than those in the log.
    pub fn apply_pauses(&mut self, in_force: impl Fn(&str) -> InForce) {
        self.change(|it, target| it.in_force = target.map(&in_force));
    }

    /// Applies the allow-list in force. `dead_letters` returns true for a function whose events the handler
    /// dead-letters, because the list lacks it.
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

    /// The events that a filter chooses; with `by`, only those due by then.
    pub fn chosen(&self, wanted: &Wanted, by: Option<Timestamp>) -> Chosen {
        let takes =
            |kind: &MessageKind| wanted.takes_kind(kind.target.as_deref(), kind.error_type.as_deref());
        Chosen { wanted: wanted.clone(), kinds: self.log.kinds().iter().map(takes).collect(), by }
    }

    /// The chosen events, in any order.
    pub fn each(&self, chosen: &Chosen) -> impl Iterator<Item = WaitingEvent<'_>> {
        self.waits(chosen).map(|(_, wait)| self.event(wait))
    }

    /// The groups of the chosen events, the largest first.
    pub fn groups(&self, chosen: &Chosen) -> Vec<Group<'_>> {
        let kinds = self.log.kinds().iter();
        let mut groups: Vec<_> = kinds
            .map(|kind| Group {
                target: kind.target.as_deref(),
                error_type: kind.error_type.as_deref(),
                ..Group::default()
            })
            .collect();
        self.waits(chosen).for_each(|(_, wait)| groups[wait.kind as usize].add(&self.event(wait)));
        groups.retain(|group| group.count > 0);
        groups.sort_by_key(|group| (Reverse(group.count), group.target, group.error_type));
        groups
    }

    /// The groups of all waiting events.
    pub fn all_groups(&self) -> Vec<Group<'_>> {
        self.groups(&self.chosen(&Wanted::default(), None))
    }

    /// All waiting events, in any order.
    pub fn all(&self) -> impl Iterator<Item = WaitingEvent<'_>> {
        self.messages().map(|wait| self.event(wait))
    }

    /// The messages of all waiting events, each with its function and error, in any order.
    pub fn all_messages(&self) -> impl Iterator<Item = (WaitingEvent<'_>, &WaitingMessage, &MessageKind)> {
        let kinds = self.log.kinds();
        self.messages().map(|message| (self.event(message), message, &kinds[message.kind as usize]))
    }

    /// The number of waiting events.
    pub fn count(&self) -> usize {
        self.messages().count()
    }

    fn messages(&self) -> impl Iterator<Item = &WaitingMessage> {
        self.log.waiting().filter(|message| self.since.is_none_or(|since| message.at >= since))
    }

    /// The most frequent errors of the waiting events: `TargetDown (3), Timeout (1)`; `None` if none waits.
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

    /// The functions of waiting events whose `RetryAfter` was ignored, each with its text and the reason.
    pub fn ignored(&self) -> BTreeMap<&str, &str> {
        let kinds = self.messages().map(|message| &self.log.kinds()[message.kind as usize]);
        kinds.filter_map(|kind| kind.target.as_deref().zip(kind.retry_after_ignored.as_deref())).collect()
    }

    /// The chosen events at these places, ordered by due time; those without a due time come last.
    pub fn first(&self, chosen: &Chosen, places: Range<usize>) -> Sorted<'_> {
        let mut first = Vec::with_capacity(self.log.waiting().len());
        first.extend(self.waits(chosen));
        let in_order = |(due, wait): &Due<'_>, (other_due, other): &Due<'_>| {
            let place = (due.is_none(), due, &wait.key, wait.retry);
            place.cmp(&(other_due.is_none(), other_due, &other.key, other.retry))
        };
        // Only the events that are shown have to be in order: sorting a hundred thousand takes a while.
        if places.end < first.len() {
            first.select_nth_unstable_by(places.end, in_order);
            first.truncate(places.end);
        }
        first.sort_unstable_by(in_order);
        first.drain(..places.start.min(first.len()));
        Sorted { waits: self, first }
    }

    /// The chosen messages, each with its due time.
    fn waits(&self, chosen: &Chosen) -> impl Iterator<Item = Due<'_>> {
        let Chosen { wanted, kinds, by } = chosen;
        let takes = |wait: &&WaitingMessage| kinds[wait.kind as usize] && wanted.takes_key(&wait.key);
        let all = self.messages().filter(takes).map(|wait| (self.now(wait).1, wait));
        all.filter(move |(due, _)| by.is_none_or(|by| due.is_some_and(|due| due <= by)))
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

    /// The reason for a message's wait, its due time, and the planned end of the pause that holds it.
    fn now(&self, message: &WaitingMessage) -> (Why, Option<Timestamp>, Option<Timestamp>) {
        let situation = self.situations.get(message.kind as usize).copied().unwrap_or_default();
        let why = Why::from(message.waits_for);
        let due = match message.waits_for {
            WaitsFor::Due { due, .. } => Some(due),
            WaitsFor::NextTry { at, .. } => at,
            WaitsFor::Resume => None,
        };
        if situation.is_dead_lettered {
            // No pause holds the event.
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

/// A message with its due time.
type Due<'w> = (Option<Timestamp>, &'w WaitingMessage);

/// Events in order of due time. Each is made on demand, so that a hundred thousand take little memory.
#[derive(Clone, Debug)]
pub struct Sorted<'w> {
    waits: &'w Waits,
    first: Vec<Due<'w>>,
}

impl<'w> Sorted<'w> {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns true if there are no events.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The events, in order of due time.
    pub fn iter(&self) -> impl Iterator<Item = WaitingEvent<'w>> {
        self.first.iter().map(|(_, wait)| self.waits.event(wait))
    }
}

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// An event that waits for its next retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingEvent<'w> {
    /// Its key.
    pub key: &'w str,
    /// The function's ARN; `None` if there were too many functions and errors to tell them apart.
    pub target: Option<&'w str>,
    /// The number of the next retry.
    pub retry: u64,
    /// The error of its failed invocation.
    pub error_type: Option<&'w str>,
    /// When it first failed.
    pub first_failure: Timestamp,
    /// The due time; `None` while the function is paused, or if the message could not be hidden. For a resumed
    /// function, or one that is not on the allow-list, this is the latest possible time.
    pub due: Option<Timestamp>,
    /// The reason for the wait.
    pub why: Why,
    /// The planned end of the pause that holds it.
    pub paused_until: Option<Timestamp>,
    /// The time of the handler's next check of its message.
    #[serde(skip)]
    pub next_check: Timestamp,
}

/// The events of one function that failed with the same error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Group<'w> {
    /// The function's ARN; `None` if there were too many functions and errors to tell them apart.
    pub target: Option<&'w str>,
    /// The error.
    pub error_type: Option<&'w str>,
    /// The number of events.
    pub count: u64,
    /// The first failure of the oldest event.
    pub oldest_first_failure: Option<Timestamp>,
    /// The first due time in the group.
    pub next_due: Option<Timestamp>,
    /// The last due time in the group.
    pub last_due: Option<Timestamp>,
    /// Events without a due time, because their function is paused.
    pub held: u64,
    /// Events that the handler will dead-letter, because the allow-list lacks their function.
    pub not_allowed: u64,
    /// The number of events by the reason for their wait.
    pub why: BTreeMap<Why, u64>,
}

impl Group<'_> {
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
        let first = waits.first(&waits.chosen(&Wanted::default(), None), 0..9);
        first.iter().map(|it| (it.why, it.due.map(Timestamp::as_secs))).collect()
    }

    #[test]
    fn each_line_says_why_its_message_waits() {
        let kept = |cause: &str| line(120, json!({"action": "keep", "cause": cause, "delay": 7}));
        for (line, expected) in [
            (defers(110, 900), (Why::Backoff, Some(900))),
            (defers_by(110, 900, "retry_after"), (Why::RetryAfter, Some(900))),
            (defers_by(110, 900, "pause"), (Why::Pause, Some(900))),
            // A request that is over does not count as a pause.
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
        assert!(waits(&[defers(110, 900)]).ignored().is_empty());
        let waits = waits(&[ignored]);
        assert_eq!(waits.ignored().into_iter().collect::<Vec<_>>(), [(target.as_str(), "\"soon\": why")]);
    }

    #[test]
    fn pauses_in_force_override_the_log() {
        let now = |line, in_force| {
            let mut waits = waits(&[line]);
            waits.apply_pauses(|_| in_force);
            let due = waits.each(&waits.chosen(&Wanted::default(), Some(at(5_000)))).count();
            let event = waits.first(&waits.chosen(&Wanted::default(), None), 0..1).iter().next().unwrap();
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
            let event = waits.each(&waits.chosen(&Wanted::default(), Some(at(due)))).next().unwrap();
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
        let group = |target, error_type, count: u64, first, due: Option<(u64, u64)>, held: u64| Group {
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
        };
        let orders = group("arn:orders", Some("TargetDown"), 3, 50, Some((120, 190)), 1);
        let billing = group("arn:billing", None, 1, 100, None, 1);
        assert_eq!(waits.all_groups(), [orders, billing]);
        let due = waits.groups(&waits.chosen(&Wanted::default(), Some(at(120))));
        assert_eq!(due, [group("arn:orders", Some("TargetDown"), 1, 50, Some((120, 120)), 0)]);
        let keys = |most| {
            waits
                .first(&waits.chosen(&Wanted::default(), None), 0..most)
                .iter()
                .map(|it| it.key.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(9), ["k-2", "k-1", "k-3", "k-4"]);
        assert_eq!(keys(1), ["k-2"]);
    }

    #[test]
    fn a_filter_chooses_by_function_error_and_key() {
        let mut other =
            line(110, json!({"action": "hold", "due": at(112), "delay": 60, "error_type": "Timeout"}));
        event_of(&mut other).key = "k-2".into();
        let waits = waits(&[defers(110, 190), other]);
        let keys = |wanted: Wanted, by| {
            let chosen = waits.chosen(&wanted, by);
            let keys: Vec<_> = waits.each(&chosen).map(|event| event.key).collect();
            let listed = waits.first(&chosen, 0..9);
            assert_eq!(keys.len(), listed.len());
            keys
        };
        let error = |glob: &str| Wanted { error: Some(glob.into()), ..Wanted::default() };
        assert_eq!(keys(error("Time*"), None), ["k-2"]);
        assert_eq!(keys(error("Target*"), None), ["k-1"]);
        assert_eq!(keys(error("Target*"), Some(at(190))), ["k-1"]);
        assert_eq!(keys(error("Target*"), Some(at(189))), [""; 0]);
        assert_eq!(keys(Wanted { keys: vec!["k-1".into()], ..Wanted::default() }, None), ["k-1"]);
        let functions = vec!["billing".parse().unwrap()];
        assert_eq!(keys(Wanted { functions, ..Wanted::default() }, None), [""; 0]);
        let second = waits.first(&waits.chosen(&Wanted::default(), None), 1..9);
        assert_eq!(second.iter().map(|event| event.key).collect::<Vec<_>>(), ["k-2"]);
        assert_eq!(waits.first(&waits.chosen(&Wanted::default(), None), 7..9).len(), 0);
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
