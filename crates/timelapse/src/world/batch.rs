//! A batch on its way through the handler, and the environments that handle batches.

use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{BatchEvent, Environment, MOVED_ATTRIBUTE, Policies, Record, Timestamp};

use crate::aws::agenda::START;
use crate::aws::queue::{Attributes, ReceiptHandle, Received};
use crate::check::books::Carried;
use crate::check::oracle::Reads;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::scenario::{PolicyChange, Scenario};

/// Lambda ends an idle environment and replaces an old one. AWS does not document when: these are assumptions.
pub(crate) const IDLE: Duration = Duration::from_secs(600);
pub(crate) const LIFE: Duration = Duration::from_secs(7_200);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    pub(crate) received: Received,
    pub(crate) carried: Carried,
}

#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) started: Timestamp,
    /// The handler's clock at that moment.
    pub(crate) clock: Timestamp,
    /// The event as it should be, with all messages.
    pub(crate) event: BatchEvent,
    /// The event as the handler gets it, if messages in it lack a field.
    pub(crate) struck: Option<BatchEvent>,
    /// Further data of each message, in the same order.
    pub(crate) messages: Vec<Polled>,
    pub(super) attributes: Vec<Option<Attributes>>,
    /// The handler's environment, until its batch ends.
    pub(crate) environment: SimulatedEnvironment,
    pub(crate) death: Option<Death>,
}

/// A fault ends the handler once it has made this many calls, or at once when [it has moved
/// messages](Fault::HandlerDiedAfterMove).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) fault: Fault,
    pub(crate) calls: u64,
    /// Time from its start to its calls, if not its usual run time.
    pub(crate) calls_at: Option<Duration>,
}

impl Batch {
    pub(super) fn bytes(&self) -> usize {
        // A system attribute is free.
        let attributes =
            self.attributes.iter().flatten().filter_map(|attributes| attributes.comeback.as_ref());
        let attributes = attributes.map(|text| MOVED_ATTRIBUTE.len() + "String".len() + text.len());
        self.event.records.iter().map(|record| record.body.len()).sum::<usize>() + attributes.sum::<usize>()
    }

    /// Restores moved messages to their original form, as a handler that knows about moves does.
    pub(super) fn restore(&mut self) {
        for (record, attributes) in self.event.records.iter_mut().zip(&self.attributes) {
            let Some(attributes) = attributes else { continue };
            record.trace_header = attributes.trace_header.as_deref().map(Into::into);
            if let Some(attribute) = &attributes.comeback {
                // A garbled attribute is ignored.
                let _ = record.restore(attribute);
            }
        }
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = EventNumber> {
        self.messages.iter().map(|message| message.carried.origin.attempt.event)
    }

    pub(crate) fn event_of(&self, message_id: &str) -> EventNumber {
        let index = self.event.records.iter().position(|record| record.message_id == message_id);
        let index = index.expect("BUG: a message of another batch");
        self.messages[index].carried.origin.attempt.event
    }
}

/// The parts of the current batch that the handler's calls use.
#[derive(Debug)]
pub(crate) struct AtHand {
    pub(super) messages: Vec<Polled>,
    pub(super) started: Timestamp,
    pub(super) clock: Timestamp,
    /// Its `calls` are those left.
    pub(crate) death: Option<Death>,
}

impl AtHand {
    pub(super) fn position(&self, record: &Record) -> usize {
        let receipt = ReceiptHandle::parse(&record.receipt_handle);
        let position = self.messages.iter().position(|message| Some(message.received.receipt) == receipt);
        position.expect("BUG: a call about a message of another batch")
    }

    pub(super) fn event(&self, position: usize) -> EventNumber {
        self.messages[position].carried.origin.attempt.event
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SimulatedEnvironment {
    pub(crate) handler: Environment,
    pub(super) reads: Reads,
    /// Number of policy changes that its policies include.
    pub(super) policies: usize,
    born: Timestamp,
    idle_since: Timestamp,
}

/// The environments that wait for a batch. Lambda makes and ends them.
#[derive(Debug)]
pub(crate) struct Environments {
    /// Most recently used last.
    idle: Vec<SimulatedEnvironment>,
    /// A template for new environments under each policy, from that moment on. Latest last.
    new: Vec<(Timestamp, Environment)>,
    reads: Reads,
}

impl Environments {
    pub(super) fn new(
        policies: &Policies,
        changes: &[PolicyChange],
        scenario: &Scenario,
        reads: Reads,
    ) -> Self {
        let new = |(from, policies): (Timestamp, &Policies)| {
            let handler = Environment::new(Arc::new(policies.clone()));
            (from, if scenario.reads_pauses() { handler.reading_pauses() } else { handler })
        };
        let changes = changes.iter().map(|change| (START.saturating_add(change.at), &change.policies));
        let new = once((START, policies)).chain(changes).map(new).collect();
        Self { idle: Vec::new(), new, reads }
    }

    /// Takes an environment for a batch, or makes one, as Lambda does. None is kept when the function's variables
    /// change.
    pub(super) fn take(&mut self, now: Timestamp) -> SimulatedEnvironment {
        let policies = self.new.iter().rposition(|(from, _)| *from <= now).unwrap_or_default();
        let lives = |it: &SimulatedEnvironment| {
            it.policies == policies && now.since(it.idle_since) <= IDLE && now.since(it.born) <= LIFE
        };
        self.idle.retain(lives);
        self.idle.pop().unwrap_or_else(|| {
            let (handler, reads) = (self.new[policies].1.clone(), self.reads.clone());
            SimulatedEnvironment { handler, reads, policies, born: now, idle_since: now }
        })
    }

    /// The policies of the environments that Lambda makes now.
    pub(super) fn policies(&self, now: Timestamp) -> &Policies {
        let new = self.new.iter().rfind(|(from, _)| *from <= now).or(self.new.first());
        new.expect("BUG: no policies").1.policies()
    }

    /// Takes an environment back when its batch has ended. One that died is never given back.
    pub(super) fn give_back(&mut self, now: Timestamp, environment: SimulatedEnvironment) {
        self.idle.push(SimulatedEnvironment { idle_since: now, ..environment });
    }
}
