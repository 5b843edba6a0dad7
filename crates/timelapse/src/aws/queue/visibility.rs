use std::time::Duration;

use comeback_engine::Timestamp;

use super::message::State;
use super::{Queue, QueueTimer, Receipt};
use crate::aws::agenda::Agenda;

/// The longest visibility timeout, and the longest time from a receive to a message's return.
/// Source: SQS quotas, "Message visibility timeout".
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);

/// Why a visibility timeout was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VisibilityError {
    #[error("InvalidParameterValue: VisibilityTimeout {0} must be between 0 and 43200")]
    OutOfRange(u64),
    #[error("InvalidParameterValue: total VisibilityTimeout is beyond the limit of 43200 s from the receive")]
    BeyondTwelveHours,
    #[error("ReceiptHandleIsInvalid: a later receive, or the message's deletion, made the handle stale")]
    StaleHandle,
    #[error("MessageNotInflight: the message is visible again")]
    NotInFlight,
}

impl<T> Queue<T> {
    /// `ChangeMessageVisibility`: hides a message for `timeout` from now on.
    pub(crate) fn change_visibility<H: Ord + From<QueueTimer>>(
        &mut self,
        now: Timestamp,
        agenda: &mut Agenda<H>,
        handle: &str,
        timeout: Duration,
    ) -> Result<(), VisibilityError> {
        if timeout > LONGEST_VISIBILITY {
            return Err(VisibilityError::OutOfRange(timeout.as_secs()));
        }
        let receipt = Receipt::parse(handle).ok_or(VisibilityError::StaleHandle)?;
        let message = self.latest(receipt).ok_or(VisibilityError::StaleHandle)?;
        if message.state != State::InFlight {
            return Err(VisibilityError::NotInFlight);
        }
        if now.since(message.last_receive) + timeout > LONGEST_VISIBILITY {
            return Err(VisibilityError::BeyondTwelveHours);
        }
        message.visible_at = now.saturating_add(timeout);
        agenda.plan(message.visible_at, QueueTimer::Visibility(receipt));
        Ok(())
    }

    /// A message is visible, for the first time or again, unless another timeout was set since.
    pub(super) fn appear(&mut self, now: Timestamp, receipt: Receipt) {
        let Some(message) = self.latest(receipt) else { return };
        if message.state != State::Visible && message.visible_at <= now {
            let left = std::mem::replace(&mut message.state, State::Visible);
            self.leave(left);
            self.visible.push_back(receipt);
        }
    }
}
