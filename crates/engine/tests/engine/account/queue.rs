//! A model of an SQS standard queue, for the model checker.

use std::time::Duration;

use comeback_engine::{Record, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Queue<T> {
    visibility_timeout: Duration,
    messages: Vec<Message<T>>,
    /// The number of messages sent so far, which is also the next message's id.
    sent: u8,
}

/// A message in the simulated queue. An earlier receipt handle can still hide the message, but not delete it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message<T> {
    id: u8,
    body: String,
    sent: Timestamp,
    pub(crate) first_receive: Option<Timestamp>,
    pub(crate) receive_count: u32,
    pub(crate) visible: Timestamp,
    /// Data that the test attaches to the message.
    pub(crate) carried: T,
}

impl<T: Clone> Queue<T> {
    pub(crate) fn new(visibility_timeout: Duration) -> Self {
        Self { visibility_timeout, messages: Vec::new(), sent: 0 }
    }

    pub(crate) fn send(&mut self, now: Timestamp, body: String, carried: T) -> String {
        let (id, sent) = (self.sent, now);
        let message =
            Message { id, body, sent, first_receive: None, receive_count: 0, visible: sent, carried };
        let message_id = message.message_id();
        self.messages.push(message);
        self.sent += 1;
        message_id
    }

    /// Receives the message at this index, even if it is hidden.
    pub(crate) fn receive(&mut self, now: Timestamp, place: usize) -> Message<T> {
        let message = &mut self.messages[place];
        message.receive_count += 1;
        message.first_receive.get_or_insert(now);
        message.visible = now.saturating_add(self.visibility_timeout);
        message.clone()
    }

    /// Hides the message with this receipt handle, and returns false if the message is no longer in the queue.
    pub(crate) fn hide(&mut self, now: Timestamp, handle: &str, timeout: Duration) -> bool {
        let received = self.messages.iter_mut().find(|message| message.was_received_with(handle));
        received.map(|message| message.visible = now.saturating_add(timeout)).is_some()
    }

    pub(crate) fn delete(&mut self, handle: &str) {
        self.messages.retain(|message| message.receipt_handle() != handle);
    }

    pub(crate) fn messages(&self) -> &[Message<T>] {
        &self.messages
    }

    /// Returns the earliest time at which a message is visible, which may be in the past.
    pub(crate) fn next_visible(&self) -> Option<Timestamp> {
        self.messages.iter().map(|message| message.visible).min()
    }
}

impl<T> Message<T> {
    pub(crate) fn record(&self) -> Record {
        Record {
            message_id: self.message_id(),
            receipt_handle: self.receipt_handle(),
            body: self.body.clone(),
            receive_count: self.receive_count,
            sent: self.sent,
            first_receive: self.first_receive.expect("BUG: it was received"),
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        }
    }

    fn message_id(&self) -> String {
        format!("m-{}", self.id)
    }

    fn was_received_with(&self, handle: &str) -> bool {
        handle.rsplit_once('-').is_some_and(|(message, _)| message == format!("h-{}", self.id))
    }

    fn receipt_handle(&self) -> String {
        format!("h-{}-{}", self.id, self.receive_count)
    }
}
