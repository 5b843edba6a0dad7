//! Which events wait, by the handler's lines about their messages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use comeback_engine::{HOLD, Timestamp, UNANSWERED};
use indicatif::HumanCount;
use serde::{Serialize, Serializer};

use crate::operate::log::HandlerLine;
use crate::operate::pauses::in_force::InForce;

/// A message's due time is computed from the handler's clock at first, and from SQS's later. They differ by less.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);
/// A function may write anything as an error's type. Past this many functions and errors, events are counted together.
const MOST_KINDS: usize = 1_000;
/// Errors named where none matches a glob.
const MOST_NAMED: usize = 5;

/// The events that wait after some of the handler's lines, which it takes in any order.
///
/// Each failure of an event comes as a message of its own. All lines about that message name the same key, retry, first
/// failure and failed invocation, and no other message's lines do. The message waits unless one of its lines settles it: it
/// was re-invoked or dead-lettered, and that worked. The settling line may be older than the others, because a handler
/// writes its lines when its batch ends, and another handler may have received the message meanwhile.
///
/// It keeps about 200 bytes for each message that waits, and 20 for each that was settled.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    hasher: RandomState,
    /// By a hash of what their lines share. A `HashMap` copies itself into ever larger tables, and the allocator does not give
    /// the old ones back before the command ends.
    waiting: BTreeMap<u64, Wait>,
    settled: HashSet<u64>,
    kinds: Kinds,
}

/// One message that waits.
#[derive(Clone, Debug, PartialEq)]
struct Wait {
    key: Box<str>,
    kind: usize,
    retry: u64,
    first_failure: Option<Timestamp>,
    due: Option<Timestamp>,
    why: Why,
    /// The time of the line that says so.
    at: Timestamp,
    /// How long its message was hidden then, in seconds.
    hidden: u32,
}

/// What an event waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    Backoff,
    /// Its function asked for this wait.
    RetryAfter,
    /// Its function is paused, or its retries come back spread over some time after a pause.
    Pause,
    /// Its function was paused when the handler last looked, and no longer is.
    Resumed,
    /// Lambda may have accepted the re-invocation, and did not answer.
    UnansweredCall,
    /// It could not be re-invoked or dead-lettered.
    FailedCall,
    /// The handler could not read the pauses, so any function may be paused.
    PausesUnknown,
    /// Its function is not on the allow-list, so the handler will dead-letter it.
    NotAllowed,
}

impl Why {
    pub(crate) const fn in_words(self) -> &'static str {
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
    /// Takes a line of the handler's log. A line without a key is about no event.
    pub(crate) fn take(&mut self, line: &HandlerLine) {
        if line.key.is_empty() {
            return;
        }
        let id =
            self.hasher.hash_one((&line.key, &line.target, line.retry, line.first_failure, &line.request_id));
        let is_settled = matches!(&*line.action, "reinvoke" | "dead_letter") && line.problem.is_none();
        if is_settled {
            self.waiting.remove(&id);
            self.settled.insert(id);
        }
        if self.settled.contains(&id) {
            return;
        }
        let before = self.waiting.get(&id);
        if before.is_some_and(|before| before.at > line.at()) {
            return;
        }
        let Some((why, due)) = reason(line, before) else { return };
        let kind = match before {
            Some(before) => before.kind,
            None => self.kinds.of(&self.hasher, line),
        };
        let (key, first_failure) = (line.key.as_str().into(), line.first_failure);
        let hidden = line.delay.and_then(|delay| u32::try_from(delay).ok()).unwrap_or_default();
        let wait = Wait { key, kind, retry: line.retry, first_failure, due, why, at: line.at(), hidden };
        self.waiting.insert(id, wait);
    }

    /// Takes the pauses in force, which may be younger than what the log says.
    pub(crate) fn heed(&mut self, in_force: impl Fn(&str) -> InForce) {
        for kind in &mut self.kinds.all {
            kind.in_force = kind.target.as_deref().map(&in_force);
        }
    }

    /// Takes the allow-list in force: whether the handler dead-letters a function's events because the list lacks it.
    pub(crate) fn heed_allow_list(&mut self, gives_up: impl Fn(&str) -> bool) {
        for kind in &mut self.kinds.all {
            kind.is_given_up = kind.target.as_deref().is_some_and(&gives_up);
        }
    }

    /// The events that wait and are due by then, or all of them, in no certain order. An event without a due time is due by
    /// no time.
    pub(crate) fn due_by(&self, by: Option<Timestamp>) -> impl Iterator<Item = WaitingEvent<'_>> {
        self.waits_due_by(by).map(|(_, wait)| self.event(wait))
    }

    /// The most frequent errors of the events that wait: `TargetDown (3), Timeout (1)`; `None` if none waits.
    pub(crate) fn errors(&self) -> Option<String> {
        let mut counts = BTreeMap::<_, u64>::new();
        for event in self.due_by(None) {
            *counts.entry(event.error_type.unwrap_or("unknown")).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        let named = counts.iter().take(MOST_NAMED);
        let mut named: Vec<_> =
            named.map(|(error, count)| format!("{error} ({})", HumanCount(*count))).collect();
        named.extend((counts.len() > MOST_NAMED).then(|| "…".to_owned()));
        (!named.is_empty()).then(|| named.join(", "))
    }

    /// The first of them to be due, `most` at most. Those without a due time come last.
    pub(crate) fn first_due_by(&self, by: Option<Timestamp>, most: usize) -> Sorted<'_> {
        let mut first = Vec::with_capacity(self.waiting.len());
        first.extend(self.waits_due_by(by));
        first.sort_unstable_by_key(|(due, wait)| (due.is_none(), *due, &wait.key, wait.retry));
        first.truncate(most);
        Sorted { waits: self, first }
    }

    /// Each with its due time.
    fn waits_due_by(&self, by: Option<Timestamp>) -> impl Iterator<Item = (Option<Timestamp>, &Wait)> {
        let all = self.waiting.values().map(|wait| (wait.now(&self.kinds.all[wait.kind]).1, wait));
        all.filter(move |(due, _)| by.is_none_or(|by| due.is_some_and(|due| due <= by)))
    }

    fn event<'w>(&'w self, wait: &'w Wait) -> WaitingEvent<'w> {
        let Wait { key, kind, retry, first_failure, .. } = wait;
        let kind = &self.kinds.all[*kind];
        let Kind { target, error_type, .. } = kind;
        let (why, due, paused_until) = wait.now(kind);
        WaitingEvent {
            key,
            target: target.as_deref(),
            retry: *retry,
            error_type: error_type.as_deref(),
            first_failure: *first_failure,
            due,
            why,
            paused_until,
            next_look: wait.next_look(),
        }
    }
}

/// Events in their order. Each is made when it is looked at, so that a hundred thousand take little memory.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<'w> {
    waits: &'w Waits,
    first: Vec<(Option<Timestamp>, &'w Wait)>,
}

impl<'w> Sorted<'w> {
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = WaitingEvent<'w>> {
        self.first.iter().map(|(_, wait)| self.waits.event(wait))
    }
}

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Wait {
    fn next_look(&self) -> Timestamp {
        self.at.saturating_add(Duration::from_secs(self.hidden.into()))
    }

    /// Why it waits, when it is due, and until when a pause holds it, with the allow-list and the pauses in force.
    fn now(&self, kind: &Kind) -> (Why, Option<Timestamp>, Option<Timestamp>) {
        if kind.is_given_up {
            // No pause holds it.
            return (Why::NotAllowed, Some(self.due.unwrap_or_else(|| self.next_look())), None);
        }
        let is_held = (self.why, self.due) == (Why::Pause, None);
        match kind.in_force {
            Some(pause @ InForce::Paused { until }) if pause.holds(self.due) => (Why::Pause, None, until),
            Some(InForce::NotPaused { back_by }) if is_held => {
                let back_by = back_by.unwrap_or_else(|| self.at.saturating_add(HOLD));
                (Why::Resumed, Some(back_by), None)
            }
            _ => (self.why, self.due, None),
        }
    }
}

/// Why a message waits after a line, and when its retry is due; `None` if the line does not say that it waits. `before` is
/// what an earlier line said.
fn reason(line: &HandlerLine, before: Option<&Wait>) -> Option<(Why, Option<Timestamp>)> {
    let is_kept_until = || {
        let hidden = line.delay.map(|delay| line.at().saturating_add(Duration::from_secs(delay)));
        line.not_before.or(hidden)
    };
    Some(match (&*line.action, line.due_by.as_deref()) {
        ("defer", Some("pause")) => (Why::Pause, line.due),
        ("defer", Some("retry_after")) => (Why::RetryAfter, line.due),
        ("defer", Some(_)) => (Why::Backoff, line.due),
        ("defer", None) if was_moved_by_a_pause(line, before) => (Why::Pause, line.due),
        ("defer", None) if line.retry_after.is_some() => (Why::RetryAfter, line.due),
        ("defer", None) => (Why::Backoff, line.due),
        ("hold", _) => (Why::Pause, None),
        ("keep", _) => (Why::PausesUnknown, is_kept_until()),
        ("reinvoke", _) if line.remedy.as_deref() == Some(UNANSWERED) => {
            (Why::UnansweredCall, is_kept_until())
        }
        ("reinvoke" | "dead_letter", _) => (Why::FailedCall, is_kept_until()),
        _ => return None,
    })
}

/// Of an older handler, whose lines do not say what gave the due time. A message draws the same delay on each receive. So if
/// its retry was due before, or is due later now, then a pause that is over has moved it.
fn was_moved_by_a_pause(line: &HandlerLine, before: Option<&Wait>) -> bool {
    match before {
        None => false,
        Some(Wait { why: Why::Backoff | Why::RetryAfter, due, .. }) => {
            due.is_some_and(|due| line.due > Some(due.saturating_add(CLOCKS_DIFFER)))
        }
        Some(_) => true,
    }
}

/// The functions and errors of events that wait, each pair once.
#[derive(Debug, Default)]
struct Kinds {
    index: HashMap<u64, usize>,
    all: Vec<Kind>,
}

/// A function and an error; neither, if there were too many of them.
#[derive(Debug, Default)]
struct Kind {
    target: Option<String>,
    error_type: Option<String>,
    /// `None` if the pauses in force are not known.
    in_force: Option<InForce>,
    /// The handler dead-letters its events, because the allow-list lacks the function.
    is_given_up: bool,
}

impl Kinds {
    fn of(&mut self, hasher: &RandomState, line: &HandlerLine) -> usize {
        let HandlerLine { target, error_type, .. } = line;
        let id = hasher.hash_one((target, error_type));
        if let Some(index) = self.index.get(&id) {
            return *index;
        }
        let last = self.all.len();
        match last {
            0..MOST_KINDS => {
                let (target, error_type) = (Some(target.clone()), error_type.clone());
                self.index.insert(id, last);
                self.all.push(Kind { target, error_type, ..Kind::default() });
            }
            MOST_KINDS => self.all.push(Kind::default()),
            _ => return MOST_KINDS,
        }
        last
    }
}

/// An event that waits for its next retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WaitingEvent<'w> {
    pub(crate) key: &'w str,
    /// The function's ARN; `None` if there were too many functions and errors to tell them apart.
    pub(crate) target: Option<&'w str>,
    /// The number of the next retry.
    pub(crate) retry: u64,
    pub(crate) error_type: Option<&'w str>,
    pub(crate) first_failure: Option<Timestamp>,
    /// `None` while its function is paused, or if its message could not be hidden. Of a resumed function, or one off the
    /// allow-list, the latest moment.
    pub(crate) due: Option<Timestamp>,
    pub(crate) why: Why,
    /// The planned end of the pause that holds it.
    pub(crate) paused_until: Option<Timestamp>,
    /// When the handler looks at its message again.
    #[serde(skip)]
    pub(crate) next_look: Timestamp,
}

/// The events of one function that failed with one error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Group<'w> {
    pub(crate) target: Option<&'w str>,
    pub(crate) error_type: Option<&'w str>,
    pub(crate) count: u64,
    pub(crate) oldest_first_failure: Option<Timestamp>,
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) last_due: Option<Timestamp>,
    /// Those that have no due time, because their function is paused.
    pub(crate) held: u64,
    /// Those that the handler will dead-letter, because the allow-list lacks their function.
    pub(crate) not_allowed: u64,
}

impl<'w> Group<'w> {
    /// The groups of some events, the largest first.
    pub(crate) fn all(events: impl Iterator<Item = WaitingEvent<'w>>) -> Vec<Self> {
        let mut groups = BTreeMap::new();
        for event in events {
            let WaitingEvent { target, error_type, .. } = event;
            groups.entry((target, error_type)).or_insert_with(|| Self::new(target, error_type)).add(&event);
        }
        let mut groups: Vec<Self> = groups.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.count));
        groups
    }

    fn new(target: Option<&'w str>, error_type: Option<&'w str>) -> Self {
        let (oldest_first_failure, next_due, last_due) = (None, None, None);
        let (held, not_allowed) = (0, 0);
        Self { target, error_type, count: 0, oldest_first_failure, next_due, last_due, held, not_allowed }
    }

    fn add(&mut self, event: &WaitingEvent<'_>) {
        let earlier = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
        self.count += 1;
        self.oldest_first_failure = earlier(self.oldest_first_failure, event.first_failure);
        self.next_due = earlier(self.next_due, event.due);
        self.last_due = self.last_due.max(event.due);
        self.held += u64::from(event.why == Why::Pause && event.due.is_none());
        self.not_allowed += u64::from(event.why == Why::NotAllowed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(second)
    }

    /// A line about the first message of event `k-1`.
    fn line(second: u64, fields: Value) -> HandlerLine {
        let mut line = json!({
            "timestamp": at(second).to_string(), "key": "k-1", "target": "arn:orders", "retry": 1,
            "request_id": "r-0", "error_type": "TargetDown", "first_failure": at(100).to_string(),
        });
        let known = line.as_object_mut().unwrap();
        known.extend(fields.as_object().unwrap().clone());
        HandlerLine::read(&line.to_string()).unwrap()
    }

    fn defers(second: u64, due: u64) -> HandlerLine {
        line(second, json!({"action": "defer", "due": at(due).to_string()}))
    }

    fn waits(lines: &[HandlerLine]) -> Waits {
        let mut waits = Waits::default();
        lines.iter().for_each(|line| waits.take(line));
        waits
    }

    fn why(lines: &[HandlerLine]) -> Vec<(Why, Option<u64>)> {
        let waits = waits(lines);
        let first = waits.first_due_by(None, 9);
        first.iter().map(|it| (it.why, it.due.map(Timestamp::as_secs))).collect()
    }

    #[test]
    fn an_event_waits_until_a_line_settles_its_message() {
        let ends = [json!({"action": "reinvoke"}), json!({"action": "dead_letter", "reason": "max_age"})];
        for end in ends.map(|end| line(112, end)) {
            assert_eq!(why(&[defers(110, 112)]), [(Why::Backoff, Some(112))]);
            assert_eq!(why(&[defers(110, 112), end.clone()]), []);
            // The batch with the deferral ended later than the one with the re-invocation.
            assert_eq!(why(&[end, defers(115, 112)]), []);
        }
    }

    #[test]
    fn a_failed_retry_is_a_message_of_its_own() {
        let again = json!({"action": "defer", "retry": 2, "request_id": "r-1", "due": at(130).to_string()});
        let lines = [defers(110, 112), line(112, json!({"action": "reinvoke"})), line(120, again)];
        assert_eq!(why(&lines), [(Why::Backoff, Some(130))]);
        let redriven =
            json!({"action": "defer", "first_failure": at(500).to_string(), "due": at(502).to_string()});
        let lines = [defers(110, 112), line(112, json!({"action": "dead_letter"})), line(501, redriven)];
        assert_eq!(why(&lines), [(Why::Backoff, Some(502))]);
        // Its copies, after an unanswered call, fail with request ids of their own.
        let copy = line(121, json!({"action": "defer", "request_id": "r-9", "due": at(125).to_string()}));
        assert_eq!(why(&[defers(110, 112), copy]).len(), 2);
    }

    #[test]
    fn the_latest_line_says_what_a_message_waits_for() {
        let unanswered =
            json!({"action": "reinvoke", "problem": "no answer", "remedy": UNANSWERED, "delay": 4_000});
        let refused = json!({"action": "reinvoke", "problem": "throttled", "delay": 7});
        let moved = json!({"action": "reinvoke", "problem": "throttled", "delay": 7, "not_before": at(900).to_string()});
        let unsent = json!({"action": "dead_letter", "problem": "denied", "delay": 7});
        let unhidden = json!({"action": "reinvoke", "problem": "throttled"});
        let retry_after =
            json!({"action": "defer", "due": at(910).to_string(), "retry_after": at(900).to_string()});
        for (last, expected) in [
            (retry_after, (Why::RetryAfter, Some(910))),
            (unanswered, (Why::UnansweredCall, Some(4_200))),
            (refused, (Why::FailedCall, Some(207))),
            (moved, (Why::FailedCall, Some(900))),
            (unsent, (Why::FailedCall, Some(207))),
            (unhidden, (Why::FailedCall, None)),
            (json!({"action": "hold", "due": at(112).to_string(), "delay": 1_344}), (Why::Pause, None)),
            (json!({"action": "keep", "delay": 7}), (Why::PausesUnknown, Some(207))),
        ] {
            let lines = [line(200, last), defers(110, 909)];
            assert_eq!(why(&lines), [expected], "the order does not count");
        }
    }

    #[test]
    fn a_line_says_what_gave_the_due_time() {
        let by = |due_by: &str| {
            line(130, json!({"action": "defer", "due": at(900).to_string(), "due_by": due_by}))
        };
        for (due_by, expected) in [
            ("pause", Why::Pause),
            ("retry_after", Why::RetryAfter),
            // A longer policy, or the end of an order, is no pause.
            ("policy", Why::Backoff),
            ("retry_now", Why::Backoff),
            ("what a later version may say", Why::Backoff),
        ] {
            assert_eq!(why(&[defers(110, 120), by(due_by)]), [(expected, Some(900))], "{due_by}");
        }
    }

    #[test]
    fn a_retry_that_a_pause_has_moved_says_so() {
        let holds = line(120, json!({"action": "hold"}));
        assert_eq!(why(&[holds.clone(), defers(130, 140)]), [(Why::Pause, Some(140))]);
        assert_eq!(why(&[holds, defers(130, 140), defers(135, 140)]), [(Why::Pause, Some(140))]);
        assert_eq!(why(&[defers(110, 120), defers(115, 140)]), [(Why::Pause, Some(140))]);
        assert_eq!(why(&[defers(110, 120), defers(115, 119)]), [(Why::Backoff, Some(119))]);
    }

    #[test]
    fn the_pauses_in_force_are_younger_than_the_log() {
        let now = |lines: &[HandlerLine], in_force| {
            let mut waits = waits(lines);
            waits.heed(|_| in_force);
            let due = waits.due_by(Some(at(5_000))).count();
            let event = waits.first_due_by(None, 1).iter().next().unwrap();
            let seconds = |moment: Option<Timestamp>| moment.map(Timestamp::as_secs);
            (event.why, seconds(event.due), seconds(event.paused_until), due)
        };
        let holds = || line(120, json!({"action": "hold"}));
        let until = |until: Option<u64>| InForce::Paused { until: until.map(at) };
        let back_by = |back_by: Option<u64>| InForce::NotPaused { back_by: back_by.map(at) };
        for (lines, in_force, expected) in [
            (defers(110, 600), until(Some(4_000)), (Why::Pause, None, Some(4_000), 0)),
            (defers(110, 600), until(None), (Why::Pause, None, None, 0)),
            (defers(110, 600), until(Some(500)), (Why::Backoff, Some(600), None, 1)),
            (defers(110, 600), back_by(Some(900)), (Why::Backoff, Some(600), None, 1)),
            (holds(), until(None), (Why::Pause, None, None, 0)),
            (holds(), back_by(Some(900)), (Why::Resumed, Some(900), None, 1)),
            (holds(), back_by(None), (Why::Resumed, Some(120 + 1_344), None, 1)),
        ] {
            assert_eq!(now(&[lines], in_force), expected, "{in_force:?}");
        }
    }

    #[test]
    fn an_event_off_the_allow_list_waits_to_be_dead_lettered() {
        let held = line(120, json!({"action": "hold", "delay": 1_344}));
        for (line, due) in [(defers(110, 600), 600), (held, 120 + 1_344)] {
            let mut waits = waits(&[line]);
            waits.heed(|_| InForce::Paused { until: None });
            waits.heed_allow_list(|target| target != "arn:orders");
            assert_eq!(waits.due_by(None).next().unwrap().why, Why::Pause);
            waits.heed_allow_list(|target| target == "arn:orders");
            let event = waits.due_by(Some(at(due))).next().unwrap();
            assert_eq!((event.why, event.due), (Why::NotAllowed, Some(at(due))));
            let [group] = &Group::all(waits.due_by(None))[..] else { panic!("one group") };
            assert_eq!((group.held, group.not_allowed), (0, 1));
        }
        assert_eq!(serde_json::to_value(Why::NotAllowed).unwrap(), "not_allowed");
    }

    #[test]
    fn events_are_grouped_by_function_and_error() {
        let other = |key: &str, fields: Value| {
            let mut other = line(110, fields);
            other.key = key.into();
            other
        };
        let lines = [
            defers(110, 190),
            other(
                "k-2",
                json!({"action": "defer", "due": at(120).to_string(), "first_failure": at(50).to_string()}),
            ),
            other("k-3", json!({"action": "hold"})),
            other("k-4", json!({"action": "hold", "target": "arn:billing", "error_type": null})),
        ];
        let waits = waits(&lines);
        let group = |target, error_type, count, first, due: Option<(u64, u64)>, held| Group {
            target: Some(target),
            error_type,
            count,
            oldest_first_failure: Some(at(first)),
            next_due: due.map(|(next, _)| at(next)),
            last_due: due.map(|(_, last)| at(last)),
            held,
            not_allowed: 0,
        };
        let orders = group("arn:orders", Some("TargetDown"), 3, 50, Some((120, 190)), 1);
        let billing = group("arn:billing", None, 1, 100, None, 1);
        assert_eq!(Group::all(waits.due_by(None)), [orders, billing]);
        let due = Group::all(waits.due_by(Some(at(120))));
        assert_eq!(due, [group("arn:orders", Some("TargetDown"), 1, 50, Some((120, 120)), 0)]);
        let keys =
            |most| waits.first_due_by(None, most).iter().map(|it| it.key.to_owned()).collect::<Vec<_>>();
        assert_eq!(keys(9), ["k-2", "k-1", "k-3", "k-4"]);
        assert_eq!(keys(1), ["k-2"]);
    }

    #[test]
    fn frequent_errors_are_named_first() {
        assert_eq!(Waits::default().errors(), None);
        let mut waits = Waits::default();
        let errors = ["E-1", "Down", "Down", "Timeout", "Timeout", "Timeout", "E-2", "E-3"];
        for (n, error) in errors.into_iter().enumerate() {
            let mut line = defers(110, 112);
            (line.key, line.error_type) = (format!("k-{n}"), Some(error.into()));
            waits.take(&line);
        }
        assert_eq!(waits.errors().unwrap(), "Timeout (3), Down (2), E-1 (1), E-2 (1), E-3 (1)");
        let mut unknown = defers(110, 112);
        (unknown.key, unknown.error_type) = ("k-8".into(), None);
        waits.take(&unknown);
        assert_eq!(waits.errors().unwrap(), "Timeout (3), Down (2), E-1 (1), E-2 (1), E-3 (1), …");
    }

    #[test]
    fn what_has_left_takes_no_room() {
        let mut waits = Waits::default();
        for n in 0..100_000 {
            let mut line =
                if n % 2 == 0 { defers(110, 112) } else { line(112, json!({"action": "reinvoke"})) };
            line.key = format!("k-{}", n / 2);
            line.error_type = Some(format!("E-{n}"));
            waits.take(&line);
        }
        assert_eq!((waits.due_by(None).count(), waits.settled.len()), (0, 50_000));
        assert_eq!(waits.kinds.all.len(), MOST_KINDS + 1);
        assert!(size_of::<Wait>() <= 80, "{}", size_of::<Wait>());
    }

    #[test]
    fn too_many_errors_are_counted_together() {
        let mut waits = Waits::default();
        for n in 0..MOST_KINDS + 5 {
            let mut line = defers(110, 112);
            (line.key, line.error_type) = (format!("k-{n}"), Some(format!("E-{n}")));
            waits.take(&line);
        }
        let others = &Group::all(waits.due_by(None))[0];
        assert_eq!((others.target, others.error_type, others.count), (None, None, 5));
    }
}
