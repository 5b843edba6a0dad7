//! The handler's log during a run, to compare it with the handler's reports and with the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use comeback_engine::{BatchReport, FailedEvent, LogFold, LoggedEvent, MessageState, Record, Timestamp};

use super::Broken;
use super::invariants::{Said, State, logged_waits_are_real, said_as_reported, true_log};
use crate::event::EventNumber;

/// Maximum number of events to check. A run may have millions, which is too many to check.
const MOST_EVENTS: usize = 10_000;

type Hasher = BuildHasherDefault<DefaultHasher>;

#[derive(Debug, Default)]
pub(crate) struct LogCheck {
    log: LogFold<Hasher>,
    /// The state of each message according to the handler's reports, by the message's [`id`].
    reported: BTreeMap<u64, State>,
    event_of: BTreeMap<Box<str>, EventNumber>,
    /// Events that the log may be wrong about, because the queue itself has removed their messages.
    excused: BTreeSet<EventNumber>,
    /// True if the run may change due times.
    may_change: bool,
}

impl LogCheck {
    /// Creates a check with an empty log; `may_change` is true if the run may change due times.
    pub(crate) fn new(may_change: bool) -> Self {
        Self { may_change, ..Self::default() }
    }

    /// Adds the lines of a report to the log, and checks what the log then says of each message.
    pub(crate) fn reported(
        &mut self,
        report: &BatchReport<'_>,
        event_of: impl Fn(&Record) -> EventNumber,
        now: Timestamp,
    ) -> Result<(), Broken> {
        let mut lines = report.log_lines(now).peekable();
        for outcome in &report.outcomes {
            let line = lines.next_if(|line| line.message_id == outcome.message_id());
            let event = event_of(outcome.record);
            let Some(failed) = outcome.event.as_ref().filter(|_| event.0 < MOST_EVENTS) else { continue };
            let before = self.reported_state(failed);
            line.iter().for_each(|line| self.log.take(line));
            let after = self.said(failed);
            true_log(event, outcome, [before, after], now, self.may_change)?;
            // The check has compared it with the report.
            if let Some(state) = after {
                self.reported.insert(id(failed), state);
            }
            self.event_of.entry(failed.origin_request_id.as_str().into()).or_insert(event);
        }
        Ok(())
    }

    fn reported_state(&self, failed: &FailedEvent<'_>) -> Said {
        self.reported.get(&id(failed)).copied()
    }

    fn said(&self, failed: &FailedEvent<'_>) -> Said {
        let state = self.log.state_of(&LoggedEvent::of(failed, None))?;
        Some(match state {
            MessageState::Waiting(message) => Some((message.at, message.waits_for)),
            MessageState::Settled => None,
        })
    }

    pub(crate) fn excuse(&mut self, event: EventNumber) {
        if event.0 < MOST_EVENTS {
            self.excused.insert(event);
        }
    }

    /// Checks what the log says of the messages on the queue, and that no others wait according to it. The records must
    /// already reflect the attribute `Comeback`.
    pub(crate) fn ended(self, queue: impl Iterator<Item = (EventNumber, Record)>) -> Result<(), Broken> {
        let mut on_queue = BTreeSet::new();
        for (event, record) in queue.filter(|(event, _)| event.0 < MOST_EVENTS) {
            let Ok(failed) = FailedEvent::read(&record) else { continue };
            said_as_reported(event, self.said(&failed), self.reported_state(&failed))?;
            on_queue.insert((
                Box::<str>::from(&*failed.origin_request_id),
                failed.retry,
                failed.first_failure,
            ));
        }
        for message in self.log.waiting() {
            let event = self.event_of.get(&message.key).copied();
            let is_on_queue = on_queue.contains(&(message.key.clone(), message.retry, message.first_failure));
            let excused = event.is_some_and(|event| self.excused.contains(&event));
            logged_waits_are_real(event, message, is_on_queue, excused)?;
        }
        Ok(())
    }
}

/// Returns a hash of what all deliveries and copies of one message share.
fn id(event: &FailedEvent<'_>) -> u64 {
    let FailedEvent { origin_request_id, function_arn, retry, first_failure, request_id, .. } = event;
    Hasher::default().hash_one((&**origin_request_id, &**function_arn, retry, first_failure, request_id))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::{BatchEvent, DueBy, Policies, Policy, Settings, WaitsFor};
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::super::Invariant;
    use super::*;
    use crate::aws::agenda::START;
    use crate::aws::draw_id;
    use crate::aws::queue::blank;
    use crate::aws::target::{DOWN, FailedInvocation, FailureRecords, TARGET_ARN};
    use crate::rehearsal::{Rehearsal, rehearse};

    const EVENT: EventNumber = EventNumber(0);

    fn batch() -> BatchEvent {
        let request_id = draw_id(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let failed = FailedInvocation { request_id, payload: "7", error: DOWN };
        let body = FailureRecords::of(TARGET_ARN).write(START, failed, String::new());
        let records = vec![Record { body, receive_count: 1, ..blank(START) }];
        BatchEvent { records, ..BatchEvent::default() }
    }

    fn deferred(batch: &BatchEvent) -> Rehearsal<'_> {
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let policies = Policies::from(Policy::new(settings).expect("a valid policy"));
        rehearse(batch, &policies, START)
    }

    #[test]
    fn log_that_says_a_lost_message_waits_is_untrue() {
        let batch = batch();
        let rehearsal = deferred(&batch);
        let checked = |queue: &[Record], excused: bool| {
            let mut log = LogCheck::new(false);
            assert_eq!(log.reported(&rehearsal.report, |_| EVENT, START), Ok(()));
            if excused {
                log.excuse(EVENT);
            }
            let queue = queue.iter().map(|record| (EVENT, record.clone()));
            log.ended(queue).map_err(|broken| broken.invariant)
        };
        assert_eq!(checked(&batch.records, false), Ok(()));
        assert_eq!(checked(&[], false), Err(Invariant::TrueLog));
        assert_eq!(checked(&[], true), Ok(()), "the queue has removed it");
    }

    #[test]
    fn log_that_lacks_a_waiting_message_is_untrue() {
        let record = batch().records.remove(0);
        let mut log = LogCheck::new(false);
        let id = id(&FailedEvent::read(&record).expect("a valid record"));
        log.reported.insert(id, Some((START, WaitsFor::Resume)));
        let broken = log.ended([(EVENT, record)].into_iter()).unwrap_err();
        assert_eq!((broken.invariant, broken.event), (Invariant::TrueLog, Some(EVENT)));
    }

    #[test]
    fn log_that_mixes_up_messages_is_untrue() {
        let batch = batch();
        let rehearsal = deferred(&batch);
        let mixed_up = || {
            let mut log = LogCheck::new(false);
            let later = START.saturating_add(Duration::from_secs(1));
            rehearsal.report.log_lines(later).for_each(|line| log.log.take(&line));
            log
        };
        let reported = mixed_up().reported(&rehearsal.report, |_| EVENT, START);
        let ended = mixed_up().ended([(EVENT, batch.records[0].clone())].into_iter());
        for checked in [reported, ended] {
            assert_eq!(checked.map_err(|broken| broken.invariant), Err(Invariant::TrueLog));
        }
    }

    #[test]
    fn log_that_differs_from_the_report_is_untrue() {
        let batch = batch();
        let rehearsal = deferred(&batch);
        let outcome = &rehearsal.report.outcomes[0];
        let waits = |at, due| Some(Some((at, WaitsFor::Due { due, by: DueBy::Policy })));
        let due = outcome.due().expect("it is deferred");
        let checked = |before, after| {
            true_log(EVENT, outcome, [before, after], START, false).map_err(|broken| broken.invariant)
        };
        let right = waits(START, due);
        let before = START.before(Duration::from_secs(1));
        assert_eq!([checked(None, right), checked(waits(before, due), right)], [Ok(()), Ok(())]);
        assert_eq!(checked(Some(None), Some(None)), Ok(()), "it stays settled");
        for wrong in [None, Some(None), waits(START, before), waits(before, due)] {
            assert_eq!(checked(None, wrong), Err(Invariant::TrueLog), "{wrong:?}");
        }
    }
}
