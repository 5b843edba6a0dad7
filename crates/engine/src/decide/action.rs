use std::time::Duration;

use comeback_envelope::Envelope;

use crate::message::event::FailedEvent;
use crate::{Reason, Timestamp};

/// What happens to a message next, and to which event.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// Hide the message for a while and keep it.
    Defer {
        /// The event.
        event: FailedEvent<'a>,
        /// When its retry is due.
        due: Timestamp,
        /// Whole seconds, 1 to 43,170.
        visibility_timeout: Duration,
    },
    /// Keep the message while its function is paused, though its retry is due. No retry is consumed.
    Hold {
        /// The event.
        event: FailedEvent<'a>,
        /// When its retry was due.
        due: Timestamp,
        /// Whole seconds, 1 to 1,344, after which it is looked at again.
        visibility_timeout: Duration,
    },
    /// Call the target again.
    Reinvoke {
        /// The event.
        event: FailedEvent<'a>,
        /// When its retry was due.
        due: Timestamp,
        /// What the target is called with.
        envelope: Envelope<'a>,
    },
    /// Give the event up.
    DeadLetter {
        /// The event; `None` if the message could not be understood.
        event: Option<FailedEvent<'a>>,
        /// Why.
        reason: Reason,
    },
}

impl Action<'_> {
    /// The event; `None` if the message could not be understood.
    pub const fn event(&self) -> Option<&FailedEvent<'_>> {
        match self {
            Self::Defer { event, .. } | Self::Hold { event, .. } | Self::Reinvoke { event, .. } => {
                Some(event)
            }
            Self::DeadLetter { event, .. } => event.as_ref(),
        }
    }

    /// When the retry is due; `None` if there will be none.
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Defer { due, .. } | Self::Hold { due, .. } | Self::Reinvoke { due, .. } => Some(*due),
            Self::DeadLetter { .. } => None,
        }
    }
}
