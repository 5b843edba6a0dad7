use crate::aws::mapping::BatchKey;
use crate::aws::queue::{QueueTimer, Receipt};
use crate::aws::target::{Ended, InvocationKey};
use crate::check::origin::Attempt;

use super::batch::Batch;

/// Something that will happen. If the world has moved on meanwhile, it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// The next event of the scenario reaches the target.
    Arrival,
    /// An invocation of the target ends.
    InvocationEnds(InvocationKey),
    /// A timer of the retry queue runs out.
    QueueTimer(QueueTimer),
    /// A poller of the event source mapping asks for messages.
    Poll,
    /// The retry handler makes its calls for a batch and answers.
    BatchEnds(BatchKey),
    /// The timeout ends a handler that has not answered.
    HandlerTimesOut(BatchKey),
    /// A fault: SQS hands a message out again, if this is still its latest receipt.
    AppearsEarly(Receipt),
    /// A fault: a message's retention ends.
    ExpiresEarly(EarlyExpiryKey),
}

/// Names a message in the world's list of those whose retention ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EarlyExpiryKey(pub(super) usize);

impl From<QueueTimer> for Happening {
    fn from(timer: QueueTimer) -> Self {
        Self::QueueTimer(timer)
    }
}

/// What has happened that somebody outside the world deals with.
#[derive(Debug)]
pub(crate) enum Happened {
    /// Nothing of the kind.
    Inside,
    /// An invocation of the target has ended.
    Invoked(Ended<Attempt>),
    /// The handler has a batch.
    BatchOpened(Box<Batch>),
}
