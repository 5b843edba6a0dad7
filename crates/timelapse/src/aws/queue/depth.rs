use super::Queue;

/// How many messages a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// `ApproximateNumberOfMessages`: a receive could bring them if there were no in-flight limit.
    pub visible: usize,
    /// `ApproximateNumberOfMessagesNotVisible`: received, and neither deleted nor visible again.
    pub in_flight: usize,
    /// `ApproximateNumberOfMessagesDelayed`: sent with a delay that is not over.
    pub delayed: usize,
}

impl<T> Queue<T> {
    /// Whether a receive would bring anything (or remove what was received too often).
    pub(crate) fn has_visible(&self) -> bool {
        !self.visible.is_empty() && self.in_flight < self.settings.in_flight_limit
    }

    /// Messages, visible or not.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Messages in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Messages that were sent with a delay which is not over: neither visible nor in flight.
    pub(crate) fn delayed(&self) -> usize {
        self.delayed
    }

    /// Messages a receive could bring if there were no in-flight limit.
    pub(crate) fn visible(&self) -> usize {
        self.len() - self.in_flight - self.delayed
    }

    pub(crate) fn depth(&self) -> Depth {
        Depth { visible: self.visible(), in_flight: self.in_flight(), delayed: self.delayed() }
    }
}
