//! The world around the handler: SQS with its deliveries, Lambda with its invocations.

use comeback_engine::{Record, Timestamp};

use super::handler::Performed;
use crate::support::*;

/// The type of an error that is never retried.
pub(super) const FATAL: &str = "Fatal";
/// The retry queue's own visibility timeout, in milliseconds.
const QUEUE_VISIBILITY: u64 = 1_230_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Milliseconds since the epoch, as all times here.
    pub(super) now: u64,
    pub(super) queue: Vec<Message>,
    /// Messages as the handler was given them.
    pub(super) deliveries: Vec<Message>,
    pub(super) invocations: Vec<Invocation>,
    /// How often each event ended: as a success, as a dead-letter.
    pub(super) ends: Vec<(u8, u8)>,
    /// Messages so far, for their ids.
    sent: u8,
    pub(super) faults: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    id: u8,
    pub(super) event: usize,
    fatal: bool,
    body: String,
    sent: u64,
    first_receive: Option<u64>,
    pub(super) receive_count: u32,
    pub(super) visible: u64,
}

/// A retry that Lambda has accepted and not run yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Invocation {
    pub(super) event: usize,
    pub(super) function: String,
    pub(super) payload: String,
    /// When it was accepted, and the message it comes from was first received.
    pub(super) accepted: u64,
    pub(super) first_receive: u64,
    /// The failure it follows was of the kind that is never retried.
    pub(super) after_fatal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Succeeds,
    Fails,
    FailsForGood,
}

impl State {
    pub(super) fn is_settled(&self) -> bool {
        self.queue.is_empty() && self.deliveries.is_empty() && self.invocations.is_empty()
    }

    /// Each event has failed once, at the same moment.
    pub(super) fn after_failures_of(functions: &[&str], faults: u8) -> Self {
        let nothing = Self {
            now: SENT.as_millis(),
            queue: vec![],
            deliveries: vec![],
            invocations: vec![],
            ends: vec![(0, 0); functions.len()],
            sent: 0,
            faults,
        };
        functions.iter().enumerate().fold(nothing, |state, (event, function)| {
            state.send(event, &body(&payload_of(event)).replace(TARGET, function), false)
        })
    }

    fn send(mut self, event: usize, body: &str, fatal: bool) -> Self {
        let (id, sent) = (self.sent, self.now);
        let body = replaced(body, "2026-09-14T15:46:54.145Z", &Timestamp::from_millis(sent).to_string());
        let message =
            Message { id, event, fatal, body, sent, first_receive: None, receive_count: 0, visible: sent };
        self.queue.push(message);
        self.sent += 1;
        self
    }

    pub(super) fn receive(&mut self, place: usize) {
        let message = &mut self.queue[place];
        message.receive_count += 1;
        message.first_receive.get_or_insert(self.now);
        message.visible = self.now + QUEUE_VISIBILITY;
        self.deliveries.push(message.clone());
    }

    /// What a later receive made stale neither hides nor deletes the message.
    pub(super) fn perform(&mut self, delivered: &Message, performed: Performed) {
        let is_current = |message: &Message| {
            (message.id, message.receive_count) == (delivered.id, delivered.receive_count)
        };
        if let Some(secs) = performed.hidden {
            let hidden = self.queue.iter_mut().filter(|message| is_current(message));
            hidden.for_each(|message| message.visible = self.now + secs * 1_000);
        }
        if let Some((function, payload)) = performed.invoked {
            self.invocations.push(Invocation {
                event: delivered.event,
                function,
                payload,
                accepted: self.now,
                first_receive: delivered.first_receive.expect("BUG: it was received"),
                after_fatal: delivered.fatal,
            });
        }
        self.ends[delivered.event].1 += u8::from(performed.dead_lettered);
        if performed.settled {
            self.queue.retain(|message| !is_current(message));
        }
    }

    pub(super) fn run(mut self, invocation: &Invocation, end: End) -> Self {
        let record = body(&invocation.payload).replace(TARGET, &invocation.function);
        match end {
            End::Succeeds => {
                self.ends[invocation.event].0 += 1;
                self
            }
            End::Fails => self.send(invocation.event, &record, false),
            End::FailsForGood => self.send(invocation.event, &replaced(&record, "Timeout", FATAL), true),
        }
    }
}

impl Message {
    pub(super) fn record(&self) -> Record {
        Record {
            message_id: format!("m-{}", self.id),
            receipt_handle: format!("h-{}-{}", self.id, self.receive_count),
            body: self.body.clone(),
            receive_count: self.receive_count,
            sent: Timestamp::from_millis(self.sent),
            first_receive: Timestamp::from_millis(self.first_receive.expect("BUG: it was received")),
            moved: None,
            trace_header: None,
        }
    }
}

/// A payload that JSON parsers like to change.
pub(super) fn payload_of(event: usize) -> String {
    format!(r#"{{ "event": {event}, "n": 1E400 }}"#)
}
