//! A batch on its way through the handler, and the environments of the handler.

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

/// Time after which Lambda ends an idle environment. AWS documents neither this time nor the age at which Lambda
/// replaces an environment, so both are assumptions.
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
    /// Time on the handler's clock when it started on the batch.
    pub(crate) clock: Timestamp,
    /// The Lambda event before faults: all of its messages are complete.
    pub(crate) event: BatchEvent,
    /// The Lambda event that the handler gets, if a fault has removed fields from messages; otherwise `None`.
    pub(crate) struck: Option<BatchEvent>,
    /// Further data of each message, in the order of the event.
    pub(crate) messages: Vec<Polled>,
    pub(super) attributes: Vec<Option<Attributes>>,
    /// The handler's environment, which is busy until the batch ends.
    pub(crate) environment: SimulatedEnvironment,
    pub(crate) death: Option<Death>,
}

/// A crash of the handler, caused by a fault. The handler crashes after this many calls, or as soon as [it has moved
/// messages](Fault::HandlerDiedAfterMove).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) fault: Fault,
    pub(crate) calls: u64,
    /// Time from the handler's start to its calls; `None` stands for the handler's usual run time.
    pub(crate) calls_at: Option<Duration>,
}

impl Batch {
    pub(super) fn bytes(&self) -> usize {
        // SQS does not bill the bytes of a system attribute.
        let attributes =
            self.attributes.iter().flatten().filter_map(|attributes| attributes.comeback.as_ref());
        let attributes = attributes.map(|text| MOVED_ATTRIBUTE.len() + "String".len() + text.len());
        self.event.records.iter().map(|record| record.body.len()).sum::<usize>() + attributes.sum::<usize>()
    }

    /// Applies the stored attributes to moved messages, as the handler does.
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

/// The parts of the current batch that the handler's calls need.
#[derive(Debug)]
pub(crate) struct AtHand {
    pub(super) messages: Vec<Polled>,
    pub(super) started: Timestamp,
    pub(super) clock: Timestamp,
    /// The planned crash; `None` if none is planned. Its `calls` is the number of calls left until the crash.
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
    /// Number of policy changes that the environment's policies include.
    pub(super) policies: usize,
    born: Timestamp,
    idle_since: Timestamp,
}

/// The idle environments of the handler. Lambda makes and ends them.
#[derive(Debug)]
pub(crate) struct Environments {
    /// Idle environments, the most recently used last.
    idle: Vec<SimulatedEnvironment>,
    /// Templates for new environments, one for each set of policies, with the moment from which Lambda uses the
    /// template. The latest comes last.
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
            (from, if scenario.operators.is_some() { handler.reading_pauses() } else { handler })
        };
        let changes = changes.iter().map(|change| (START.saturating_add(change.at), &change.policies));
        let new = once((START, policies)).chain(changes).map(new).collect();
        Self { idle: Vec::new(), new, reads }
    }

    /// Acts for Lambda: takes an idle environment for a batch, or makes a new one. No environment is reused once the
    /// function's environment variables have changed.
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

    /// Returns the policies of environments that Lambda makes now.
    pub(super) fn policies(&self, now: Timestamp) -> &Arc<Policies> {
        let new = self.new.iter().rfind(|(from, _)| *from <= now).or(self.new.first());
        new.expect("BUG: no policies").1.policies()
    }

    /// Takes an environment back when its batch has ended. A crashed environment is never given back.
    pub(super) fn give_back(&mut self, now: Timestamp, environment: SimulatedEnvironment) {
        self.idle.push(SimulatedEnvironment { idle_since: now, ..environment });
    }
}
