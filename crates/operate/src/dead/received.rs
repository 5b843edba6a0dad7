//! Reads a received message as a copy of a moved message or as a dead-letter.

use std::collections::BTreeMap;

use comeback_engine::{MOVED_ATTRIBUTE, ReceivedDeadLetter};

use crate::aws::{AttributeValue, Received};

impl Received {
    /// Restores a moved message's state from its attribute `Comeback`.
    #[must_use]
    pub(crate) fn restored(mut self) -> Self {
        if let Some(moved) = text(&self.attributes, MOVED_ATTRIBUTE) {
            // As in the handler, a copy with a garbled attribute counts as a new message.
            let _ = self.record.restore(moved);
        }
        self
    }

    /// The message id that SQS assigned.
    pub fn id(&self) -> &str {
        &self.record.message_id
    }

    /// Parses the message as a dead-letter.
    pub fn dead_letter(&self) -> ReceivedDeadLetter<'_> {
        ReceivedDeadLetter::read(&self.record, |name| text(&self.attributes, name))
    }
}

fn text<'a>(attributes: &'a BTreeMap<String, AttributeValue>, name: &str) -> Option<&'a str> {
    let attribute = attributes.get(name).filter(|attribute| !attribute.is_binary())?;
    Some(&attribute.value)
}
