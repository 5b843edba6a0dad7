use comeback_envelope::open;
use serde_json::value::RawValue;

use super::bounds::Claim;
use super::invariants::{Broken, Invariant};
use crate::event::EventNumber;

/// Holds payloads to those of the events, byte for byte.
#[derive(Debug)]
pub(crate) struct Payloads {
    size: usize,
    /// A text buffer.
    expected: String,
}

impl Payloads {
    /// Those of the events, which have at least this many bytes.
    pub(crate) fn of_size(size: usize) -> Self {
        Self { size, expected: String::new() }
    }

    /// Opens the envelope of a re-invocation as a target does. Gives the event whose payload it has, and
    /// what the envelope claims.
    pub(crate) fn open(&mut self, invoked_with: &str) -> Result<(EventNumber, Claim), Broken> {
        let broken = |event, detail: &str| Broken::new(Invariant::PayloadVerbatim, event, detail);
        let raw: &RawValue =
            serde_json::from_str(invoked_with).map_err(|_| broken(None, "the target got no JSON"))?;
        let opened = open(raw).map_err(|malformed| {
            broken(None, &format!("the target got a malformed envelope: {malformed}"))
        })?;
        let text = opened.payload.get();
        let event =
            EventNumber::of_payload(text).ok_or_else(|| broken(None, "the target got no event's payload"))?;
        if !self.is_of(event, text) {
            return Err(broken(Some(event), &format!("the target got {text}")));
        }
        let metadata = opened.metadata.ok_or_else(|| broken(Some(event), "the target got no envelope"))?;
        let (attempt, initial_timestamp) = (metadata.attempt, metadata.initial_timestamp);
        Ok((event, Claim { attempt, initial_timestamp }))
    }

    /// A dead-letter of this event has this payload.
    pub(crate) fn dead_letter(&mut self, event: EventNumber, payload: &str) -> Result<(), Broken> {
        if self.is_of(event, payload) {
            return Ok(());
        }
        Err(Broken::new(Invariant::PayloadVerbatim, event, format!("its dead-letter has {payload}")))
    }

    fn is_of(&mut self, event: EventNumber, payload: &str) -> bool {
        event.write_payload(self.size, &mut self.expected);
        payload == self.expected
    }
}
