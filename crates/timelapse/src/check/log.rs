//! Checks that the handler's log agrees with the messages in the queue at the end of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use comeback_engine::{
    BatchReport, FailedEvent, Location, LogFold, LoggedEvent, MessageState, Outcome, Record, Timestamp,
    WaitsFor, What,
};

use super::{Broken, Invariant};
use crate::event::EventNumber;

/// Maximum number of events to check. A run may have millions, which is too many to check.
const MOST_EVENTS: usize = 10_000;
/// Allowed difference between two due times for one wait, because two clocks may each be off by 5 s.
const CLOCKS_DIFFER: Duration = Duration::from_secs(10);

type Hasher = BuildHasherDefault<DefaultHasher>;

#[derive(Debug, Default)]
pub(crate) struct LogCheck {
    log: LogFold<Hasher>,
    reported: BTreeMap<u64, Reported>,
    event_of: BTreeMap<Box<str>, EventNumber>,
    /// Events that are not checked, because the queue itself has removed their messages.
    excused: BTreeSet<EventNumber>,
    /// True if the run may change due times. The log may then lack the latest due time of a message that was moved
    /// again.
    can_change: bool,
    broken: Option<Broken>,
}

/// The handler's last report about a message and its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    Settled,
    Waits { at: Timestamp, waits_for: WaitsFor },
}

impl LogCheck {
    /// Creates a check with an empty log; `can_change` is true if the run may change due times.
    pub(crate) fn new(can_change: bool) -> Self {
        Self { can_change, ..Self::default() }
    }

    pub(crate) fn reported(
        &mut self,
        report: &BatchReport<'_>,
        event_of: impl Fn(&str) -> EventNumber,
        now: Timestamp,
    ) {
        for line in report.log_lines(now) {
            if event_of(&line.message_id).0 < MOST_EVENTS {
                self.log.take(&line);
            }
        }
        for outcome in &report.outcomes {
            let event = event_of(outcome.message_id());
            if let Some(failed) = outcome.event.as_ref().filter(|_| event.0 < MOST_EVENTS) {
                self.note(outcome, failed, event, now);
            }
        }
    }

    fn note(&mut self, outcome: &Outcome<'_>, failed: &FailedEvent<'_>, event: EventNumber, now: Timestamp) {
        let id = id(failed);
        let before = self.reported.get(&id).copied();
        let Some(waits_for) = waits_for(outcome, now) else {
            self.reported.insert(id, Reported::Settled);
            return;
        };
        match before {
            Some(Reported::Settled) => {}
            // The handler that first moved the message crashed and wrote no line.
            None if outcome.only_moves_on() => {}
            Some(Reported::Waits { waits_for: said, .. }) if outcome.only_moves_on() => {
                let holds = self.can_change || agree(said, waits_for);
                let checked = Invariant::TrueLog.check(event, holds, || {
                    format!("the log says {said:?}, but its copy waits for {waits_for:?}")
                });
                self.broken = self.broken.take().or(checked.err());
            }
            // If two lines have the same time, either line may be the last.
            Some(Reported::Waits { at, waits_for: said }) if at == now && said > waits_for => {}
            _ => {
                self.event_of.entry(failed.origin_request_id.as_str().into()).or_insert(event);
                self.reported.insert(id, Reported::Waits { at: now, waits_for });
            }
        }
    }

    pub(crate) fn excuse(&mut self, event: EventNumber) {
        if event.0 < MOST_EVENTS {
            self.excused.insert(event);
        }
    }

    /// Checks that the log agrees with the queue. The records must already reflect the attribute `Comeback`.
    pub(crate) fn true_log(self, queue: impl Iterator<Item = (EventNumber, Record)>) -> Result<(), Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let mut on_queue = BTreeSet::new();
        let is_checked = |event: &EventNumber| event.0 < MOST_EVENTS && !self.excused.contains(event);
        for (event, record) in queue.filter(|(event, _)| is_checked(event)) {
            let Ok(failed) = FailedEvent::read(&record) else { continue };
            self.check_message(event, &failed)?;
            on_queue.insert((
                Box::<str>::from(&*failed.origin_request_id),
                failed.retry,
                failed.first_failure,
            ));
        }
        for message in self.log.waiting() {
            let event = self.event_of.get(&message.key).copied();
            let is_on_queue = on_queue.contains(&(message.key.clone(), message.retry, message.first_failure));
            let holds = is_on_queue || event.is_some_and(|event| !is_checked(&event));
            Invariant::TrueLog.check(event, holds, || {
                format!("the log says that it waits, but it is not on the queue: {message:?}")
            })?;
        }
        Ok(())
    }

    fn check_message(&self, event: EventNumber, failed: &FailedEvent<'_>) -> Result<(), Broken> {
        let reported = self.reported.get(&id(failed)).copied();
        let said = self.log.state_of(&LoggedEvent::of(failed, None));
        let is_true = match (reported, said) {
            (None, None) | (Some(Reported::Settled), Some(MessageState::Settled)) => true,
            (Some(Reported::Waits { at, waits_for }), Some(MessageState::Waiting(message))) => {
                (at, waits_for) == (message.at, message.waits_for)
            }
            _ => false,
        };
        Invariant::TrueLog.check(event, is_true, || {
            format!("the log says {said:?}, the handler's last report was {reported:?}")
        })
    }
}

/// Returns what the message is waiting for; `None` if it was re-invoked or dead-lettered.
fn waits_for(outcome: &Outcome<'_>, now: Timestamp) -> Option<WaitsFor> {
    match outcome.what {
        What::Defer { due, due_by: by, .. } => Some(WaitsFor::Due { due, by }),
        What::Hold { .. } => Some(WaitsFor::Resume),
        What::Keep { cause, not_before, .. } => {
            let hidden_until = || Some(now.saturating_add(outcome.visibility_timeout()?));
            let at = if outcome.location == Location::Moved { not_before } else { hidden_until() };
            Some(WaitsFor::NextTry { cause, at })
        }
        What::Reinvoke { .. } | What::DeadLetter { .. } => None,
    }
}

fn agree(said: WaitsFor, now: WaitsFor) -> bool {
    match (said, now) {
        (WaitsFor::Due { due: said, .. }, WaitsFor::Due { due, .. }) => {
            due.since(said).max(said.since(due)) <= CLOCKS_DIFFER
        }
        // At least one report is about a hold or a failed call. Afterwards, the message waits for its due time.
        _ => true,
    }
}

/// Returns a hash of the identifiers that all log lines about one message share.
fn id(event: &FailedEvent<'_>) -> u64 {
    let FailedEvent { origin_request_id, function_arn, retry, first_failure, request_id, .. } = event;
    Hasher::default().hash_one((&**origin_request_id, &**function_arn, retry, first_failure, request_id))
}

#[cfg(test)]
mod tests {
    use comeback_engine::{BatchEvent, Policies, Policy, Settings};
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;
    use crate::aws::agenda::START;
    use crate::aws::draw_id;
    use crate::aws::queue::blank;
    use crate::aws::target::{DOWN, FailedInvocation, FailureRecords, TARGET_ARN};
    use crate::rehearsal::rehearse;

    const EVENT: EventNumber = EventNumber(0);

    fn record() -> Record {
        let request_id = draw_id(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let failed = FailedInvocation { request_id, payload: "7", error: DOWN };
        let body = FailureRecords::of(TARGET_ARN).write(START, failed, String::new());
        Record { body, receive_count: 1, ..blank(START) }
    }

    #[test]
    fn log_that_says_a_lost_message_waits_is_untrue() {
        let batch = BatchEvent { records: vec![record()], ..BatchEvent::default() };
        let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() };
        let policies = Policies::from(Policy::new(settings).expect("a valid policy"));
        let rehearsal = rehearse(&batch, &policies, START);
        let checked = |queue: Option<Record>, excused: bool| {
            let mut log = LogCheck::new(false);
            log.reported(&rehearsal.report, |_| EVENT, START);
            if excused {
                log.excuse(EVENT);
            }
            log.true_log(queue.into_iter().map(|record| (EVENT, record))).map_err(|broken| broken.invariant)
        };
        assert_eq!(checked(Some(record()), false), Ok(()));
        assert_eq!(checked(None, false), Err(Invariant::TrueLog));
        assert_eq!(checked(None, true), Ok(()), "the queue has removed it");
    }

    #[test]
    fn log_that_lacks_a_waiting_message_is_untrue() {
        let mut log = LogCheck::new(false);
        let waits = Reported::Waits { at: START, waits_for: WaitsFor::Resume };
        let record = record();
        let id = id(&FailedEvent::read(&record).unwrap());
        log.reported.insert(id, waits);
        let broken = log.true_log([(EVENT, record)].into_iter()).unwrap_err();
        assert_eq!((broken.invariant, broken.event), (Invariant::TrueLog, Some(EVENT)));
    }
}
