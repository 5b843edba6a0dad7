use std::time::Duration;

use comeback_engine::{MOVED_ATTRIBUTE, Timestamp};

use super::message::Message;
use super::{Queue, QueueTimer, Receipt, Slot};
use crate::aws::agenda::Agenda;
use crate::aws::id::Id;

/// The longest delay of a message. Source: SQS quotas, "Message delay".
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(900);

/// What is sent.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) id: Id,
    pub(crate) body: String,
    /// `DelaySeconds`, so whole seconds: nobody receives the message before they are over.
    pub(crate) delay: Duration,
    /// In a box because hardly any message has some, and there may be millions of messages.
    pub(crate) attributes: Option<Box<Attributes>>,
    /// Comes back with the message, and never leaves the simulation.
    pub(crate) carried: T,
}

/// What comes back with a message beside its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The message attribute `Comeback`, a String.
    pub comeback: Option<Box<str>>,
    /// The system attribute `AWSTraceHeader`.
    pub trace_header: Option<Box<str>>,
}

impl Attributes {
    /// What SQS counts: a system attribute is free.
    pub(crate) fn size(&self) -> usize {
        self.comeback.as_ref().map_or(0, |text| MOVED_ATTRIBUTE.len() + "String".len() + text.len())
    }
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error(
        "InvalidParameterValue: Value {0} for parameter DelaySeconds is invalid. \
         Reason: DelaySeconds must be >= 0 and <= 900."
    )]
    DelayTooLong(u64),
}

impl<T> Queue<T> {
    /// `SendMessage`. Nothing needs to be planned that comes after `horizon`, the end of the run.
    pub(crate) fn send<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        horizon: Timestamp,
        agenda: &mut Agenda<H>,
        sent: Sent<T>,
    ) -> Result<Slot, SendError> {
        let delay = sent.delay;
        assert_eq!(delay.subsec_nanos(), 0, "BUG: DelaySeconds are whole");
        if delay > LONGEST_DELAY {
            return Err(SendError::DelayTooLong(delay.as_secs()));
        }
        let number = self.next_number();
        let slot = Slot(self.messages.insert(Message::new(now, number, sent)));
        let receipt = Receipt { slot, number };
        let mut plan = |at: Timestamp, timer| {
            if at <= horizon {
                agenda.plan(at, timer);
            }
        };
        if delay.is_zero() {
            self.visible.push_back(receipt);
        } else {
            self.delayed += 1;
            plan(now.saturating_add(delay), QueueTimer::Delay(receipt));
        }
        plan(now.saturating_add(self.settings.retention), QueueTimer::Retention(slot));
        Ok(slot)
    }
}
