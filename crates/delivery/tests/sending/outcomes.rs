use std::collections::HashMap;
use std::future::pending;
use std::time::Duration;

use comeback_delivery::limits::Limits;
use comeback_delivery::{Delivered, EntryError, ErrorKind, Retries, Undelivered};
use proptest::prelude::*;

use crate::service::{Call, Entry, Fate, Service, complete, yields};

#[derive(Clone, Debug)]
pub(crate) struct Case {
    entries: Vec<Entry>,
    limits: Limits,
    script: Vec<Fate>,
    retries: usize,
    concurrency: usize,
    polls: usize,
}

fn kind() -> impl Strategy<Value = ErrorKind> {
    use ErrorKind::{Denied, Missing, Refused, Throttled, TooLarge, Transient, Unknown};
    prop::sample::select(vec![Throttled, Transient, Unknown, Refused, Denied, Missing, TooLarge])
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Ok),
        4 => kind().prop_map(Fate::Error),
        1 => Just(Fate::Cut),
        1 => kind().prop_map(Fate::Whole),
        1 => Just(Fate::Panic),
    ]
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let entry = (1..14usize, prop::option::weighted(0.4, 0..4u8));
    let limits = (1..6usize, 8..40usize, 6..12usize).prop_map(|(entries, bytes, entry_bytes)| Limits {
        entries,
        bytes,
        entry_bytes,
    });
    (
        prop::collection::vec(entry, 0..40),
        limits,
        prop::collection::vec(fate(), 1..200),
        0..4usize,
        1..5usize,
        0..4usize,
    )
        .prop_map(|(entries, limits, script, retries, concurrency, polls)| {
            let entries = (0..).zip(entries).map(|(id, (size, lane))| Entry { id, size, lane }).collect();
            Case { entries, limits, script, retries, concurrency, polls }
        })
}

type Outcome = Result<Delivered, Undelivered<Entry>>;

impl Case {
    pub(crate) fn run(&self, deadline: impl Future<Output = ()>) -> (Outcome, Vec<Call>) {
        let mut service = Service::new(self.script.clone());
        (service.limits, service.polls) = (self.limits, self.polls);
        let sender = service
            .sender()
            .retries(Retries::of(vec![Duration::from_millis(1); self.retries]))
            .concurrency(self.concurrency);
        let outcome = complete(sender.send_until(self.entries.clone(), deadline));
        let calls = service.calls.borrow().clone();
        (outcome, calls)
    }

    /// Checks the rules that every delivery must follow, however it ended.
    pub(crate) fn check(&self, outcome: Outcome, calls: &[Call]) -> Result<(), TestCaseError> {
        let mut known: HashMap<usize, Vec<Option<ErrorKind>>> = HashMap::new();
        // Number of calls that carried an entry without using up a retry, by entry.
        let mut free: HashMap<usize, usize> = HashMap::new();
        for call in calls {
            self.check_call(call)?;
            for (place, &id) in call.ids.iter().enumerate() {
                let answers = call.answers.as_ref().map(|answers| Fate::kind(answers[place], answers[0]));
                let is_throttled = answers == Some(Some(ErrorKind::Throttled));
                if call.was_halved() || is_throttled && call.took_some() && self.retries > 0 {
                    *free.entry(id).or_default() += 1;
                    continue;
                }
                // A dropped call counts as a call without an answer.
                known.entry(id).or_default().push(answers.unwrap_or(Some(ErrorKind::Transient)));
            }
        }
        for (id, answers) in &known {
            let (_, earlier) = answers.split_last().expect("it was sent");
            let again = earlier.iter().all(|kind| kind.is_some_and(ErrorKind::is_retriable));
            prop_assert!(again, "{id} was sent again after {earlier:?}");
            prop_assert!(answers.len() <= 1 + self.retries, "{id} was sent {} times", answers.len());
        }
        self.check_lanes(calls)?;
        let delivered = |id: usize| known.get(&id).is_some_and(|answers| answers.contains(&None));
        let count = self.entries.iter().filter(|entry| delivered(entry.id)).count();
        let again: Vec<bool> = {
            let mut sent = vec![false; self.entries.len()];
            let mut again = |id: &usize| std::mem::replace(&mut sent[*id], true);
            calls.iter().map(|call| call.ids.iter().filter(|id| again(id)).count() > 0).collect()
        };
        let retries = again.into_iter().filter(|again| *again).count() as u64;
        match outcome {
            Ok(outcome) => {
                prop_assert_eq!(
                    outcome,
                    Delivered { receipts: vec![(); count], calls: calls.len() as u64, retries }
                );
                prop_assert_eq!(count, self.entries.len());
            }
            Err(undelivered) => {
                prop_assert_eq!((undelivered.delivered.len(), undelivered.retries), (count, retries));
                prop_assert_eq!(undelivered.calls, calls.len() as u64);
                let left: Vec<Entry> = undelivered.entries.iter().map(|left| left.entry).collect();
                let expected: Vec<Entry> =
                    self.entries.iter().filter(|entry| !delivered(entry.id)).copied().collect();
                prop_assert_eq!(left, expected);
                for left in &undelivered.entries {
                    prop_assert_eq!(left.index, left.entry.id);
                    let answers = known.get(&left.index).map_or(&[] as &[_], Vec::as_slice);
                    let free = free.get(&left.index).copied().unwrap_or_default();
                    prop_assert_eq!(left.calls as usize, answers.len() + free);
                    self.check_cause(&left.entry, &left.cause, answers, calls)?;
                }
                let oks = undelivered.by_entry().into_iter().map(|outcome| outcome.is_ok());
                prop_assert!(oks.eq(self.entries.iter().map(|entry| delivered(entry.id))));
            }
        }
        Ok(())
    }

    fn check_call(&self, call: &Call) -> Result<(), TestCaseError> {
        prop_assert!((1..=self.limits.entries).contains(&call.ids.len()), "{call:?}");
        let sizes = call.ids.iter().map(|&id| self.entries[id].size);
        prop_assert!(sizes.clone().sum::<usize>() <= self.limits.bytes, "{call:?}");
        prop_assert!(sizes.max() <= Some(self.limits.entry_bytes), "{call:?}");
        Ok(())
    }

    /// Checks that entries in a lane are sent one at a time and in order, and that no entry behind an undelivered one
    /// is sent.
    fn check_lanes(&self, calls: &[Call]) -> Result<(), TestCaseError> {
        for lane in 0..4 {
            let mut last: Option<(usize, &Call)> = None;
            for call in calls {
                let ids: Vec<usize> =
                    call.ids.iter().copied().filter(|&id| self.entries[id].lane == Some(lane)).collect();
                let &[id] = ids.as_slice() else {
                    prop_assert!(ids.is_empty(), "{call:?}");
                    continue;
                };
                if let Some((before, earlier)) = last {
                    prop_assert!(before <= id, "{before} before {id}");
                    // A dropped call counts as finished.
                    prop_assert!(earlier.answers.is_none() || earlier.ended < call.began);
                    if before < id {
                        let place = earlier.ids.iter().position(|&id| id == before).expect("its own call");
                        let answers = earlier.answers.as_ref().expect("a call that went through");
                        prop_assert_eq!(Fate::kind(answers[place], answers[0]), None);
                    }
                }
                last = Some((id, call));
            }
        }
        Ok(())
    }

    fn check_cause(
        &self,
        entry: &Entry,
        cause: &EntryError,
        answers: &[Option<ErrorKind>],
        calls: &[Call],
    ) -> Result<(), TestCaseError> {
        let last = answers.last().copied().flatten();
        match cause {
            EntryError::TooLarge { size, limit } => {
                prop_assert_eq!(
                    (*size, *limit),
                    (entry.size, self.limits.entry_bytes.min(self.limits.bytes))
                );
                prop_assert!(size > limit && answers.is_empty());
            }
            EntryError::Behind => prop_assert!(entry.lane.is_some() && answers.is_empty()),
            EntryError::Refused(error) => {
                prop_assert!(!error.kind.is_retriable());
                prop_assert_eq!(Some(error.kind), last);
            }
            EntryError::Exhausted(_) => prop_assert_eq!(answers.len(), 1 + self.retries),
            EntryError::Stopped(_) => {}
            EntryError::Unanswered => {
                let is_dropped = |call: &Call| call.answers.is_none() && call.ids.contains(&entry.id);
                prop_assert!(calls.iter().any(is_dropped));
            }
            EntryError::Halted(error) => {
                let whole = calls.iter().filter_map(|call| match call.answers.as_ref()?[0]? {
                    Fate::Whole(kind) => Some(kind),
                    _ => call.is_throttled_whole().then_some(ErrorKind::Throttled),
                });
                let ends = matches!(error.kind, ErrorKind::Denied | ErrorKind::Missing);
                let failed = whole.filter(|kind| *kind == error.kind || !ends && kind.is_retriable()).count();
                prop_assert!(failed >= if ends { 1 } else { 6 }, "{error} after {failed} calls");
                prop_assert!(last.is_none_or(ErrorKind::is_retriable));
            }
            other => prop_assert!(false, "{other:?}"),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn every_entry_is_delivered_or_handed_back(case in case()) {
        let (outcome, calls) = case.run(pending());
        if let Err(undelivered) = &outcome {
            for left in &undelivered.entries {
                prop_assert!(!matches!(left.cause, EntryError::Unanswered | EntryError::Stopped(_)), "{left:?}");
                if let EntryError::Exhausted(error) = &left.cause {
                    prop_assert!(error.kind.is_retriable());
                }
            }
        }
        case.check(outcome, &calls)?;
        let at_once = |moment| calls.iter().filter(|call| (call.began..call.ended).contains(&moment)).count();
        let most = calls.iter().map(|call| at_once(call.began)).max();
        prop_assert!(most <= Some(case.concurrency), "{most:?} calls at once");
    }

    #[test]
    fn deadline_at_any_poll_loses_nothing(case in case(), polls in 0..60usize) {
        let (outcome, calls) = case.run(yields(polls));
        case.check(outcome, &calls)?;
    }
}
