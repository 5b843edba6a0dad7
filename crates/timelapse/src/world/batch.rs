//! The batches that the handler works on, and the handler's environments.

use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{BatchEvent, Environment, MOVED_ATTRIBUTE, Policies, Record, Timestamp};

use crate::aws::agenda::START;
use crate::aws::queue::{QueuedAttributes, ReceiptHandle};
use crate::check::history::Carried;
use crate::check::pauses::Reads;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::scenario::Scenario;

/// Time after which Lambda ends an idle handler environment: an assumption, like `LIFE`, because AWS documents neither.
pub(crate) const IDLE: Duration = Duration::from_secs(600);
pub(crate) const LIFE: Duration = Duration::from_secs(7_200);

#[derive(Debug)]
pub(crate) struct Polled {
    pub(super) receipt: ReceiptHandle,
    pub(super) carried: Carried,
    pub(super) attributes: Option<Box<QueuedAttributes>>,
}

/// The world's data about a batch.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) started: Timestamp,
    /// Start of the batch on the handler's clock, which may be wrong because of a fault.
    pub(crate) clock: Timestamp,
    /// The messages of the batch, in the same order as the records of the Lambda event.
    pub(super) messages: Vec<Polled>,
    /// The crash planned for this batch. Its field `calls` counts the calls left before the crash.
    pub(crate) death: Option<Death>,
}

/// The parts of a batch that the handler uses while its calls change the world.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The Lambda event with complete messages, before faults remove fields.
    pub(crate) event: BatchEvent,
    /// The Lambda event that the handler gets if a fault has removed fields from it; otherwise `None`.
    pub(crate) struck: Option<BatchEvent>,
    pub(crate) environment: SimulatedEnvironment,
}

/// A planned crash of the handler: after `calls` calls, or as soon as [it has moved
/// messages](Fault::HandlerDiedAfterMove).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) fault: Fault,
    pub(crate) calls: u64,
    /// Time from the handler's start to its calls; `None` for the usual run time.
    pub(crate) calls_at: Option<Duration>,
}

impl Batch {
    pub(super) fn bytes(&self, records: &[Record]) -> usize {
        // SQS does not bill the bytes of a system attribute.
        let attributes = self.messages.iter().filter_map(|it| it.attributes.as_ref()?.comeback.as_ref());
        let attributes = attributes.map(|text| MOVED_ATTRIBUTE.len() + "String".len() + text.len());
        records.iter().map(|record| record.body.len()).sum::<usize>() + attributes.sum::<usize>()
    }

    /// Restores the records of moved messages from the stored attributes, as the handler does.
    pub(super) fn restore(&self, records: &mut [Record]) {
        for (record, message) in records.iter_mut().zip(&self.messages) {
            let Some(attributes) = &message.attributes else { continue };
            record.trace_header = attributes.trace_header.as_deref().map(Into::into);
            if let Some(attribute) = &attributes.comeback {
                // The handler ignores a garbled attribute.
                let _ = record.restore(attribute);
            }
        }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = EventNumber> {
        self.messages.iter().map(|message| message.carried.event())
    }

    pub(super) fn position(&self, record: &Record) -> usize {
        let receipt = ReceiptHandle::parse(&record.receipt_handle);
        let position = self.messages.iter().position(|message| Some(message.receipt) == receipt);
        position.expect("BUG: a call about a message of another batch")
    }

    pub(super) fn event(&self, position: usize) -> EventNumber {
        self.messages[position].carried.event()
    }

    pub(super) fn event_of(&self, record: &Record) -> EventNumber {
        self.event(self.position(record))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SimulatedEnvironment {
    pub(crate) handler: Environment,
    pub(super) reads: Reads,
    /// Number of policy changes that had taken effect when the environment was created.
    pub(super) policies: usize,
    born: Timestamp,
    idle_since: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Environments {
    /// The idle environments, most recently used last.
    idle: Vec<SimulatedEnvironment>,
    /// For each set of policies, oldest first: the time from which it applies, and an environment to copy.
    new: Vec<(Timestamp, Environment)>,
    reads: Reads,
}

impl Environments {
    pub(super) fn new(policies: &Policies, scenario: &Scenario, reads: Reads) -> Self {
        let new = |(from, policies): (Timestamp, &Policies)| {
            let handler = Environment::new(Arc::new(policies.clone()));
            (from, if scenario.operators.is_some() { handler.reading_pauses() } else { handler })
        };
        let changes = scenario.changes.iter();
        let changes = changes.map(|change| (START.saturating_add(change.at), &change.policies));
        let new = once((START, policies)).chain(changes).map(new).collect();
        Self { idle: Vec::new(), new, reads }
    }

    /// Returns an environment for the next batch: an idle one with the current policies, or a new one.
    pub(super) fn take(&mut self, now: Timestamp) -> SimulatedEnvironment {
        let policies = self.current(now);
        let lives = |it: &SimulatedEnvironment| {
            it.policies == policies && now.since(it.idle_since) <= IDLE && now.since(it.born) <= LIFE
        };
        self.idle.retain(lives);
        self.idle.pop().unwrap_or_else(|| {
            let (handler, reads) = (self.new[policies].1.clone(), self.reads.clone());
            SimulatedEnvironment { handler, reads, policies, born: now, idle_since: now }
        })
    }

    pub(super) fn policies(&self, now: Timestamp) -> &Arc<Policies> {
        self.new[self.current(now)].1.policies()
    }

    fn current(&self, now: Timestamp) -> usize {
        self.new.iter().rposition(|(from, _)| *from <= now).unwrap_or_default()
    }

    /// Makes an environment available for a later batch. The environment must not have crashed.
    pub(super) fn give_back(&mut self, now: Timestamp, environment: SimulatedEnvironment) {
        self.idle.push(SimulatedEnvironment { idle_since: now, ..environment });
    }
}
