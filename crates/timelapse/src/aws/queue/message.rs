use std::fmt;
use std::time::Duration;

use comeback_engine::{MOVED_ATTRIBUTE, QUEUE_VISIBILITY_TIMEOUT, Record, Timestamp};

use crate::aws::target::Id;

/// Limit of messages in flight in a standard queue: received, and neither deleted nor visible again.
/// AWS says "approximately". Source: SQS quotas, "In-flight messages per queue (standard queue)".
pub const IN_FLIGHT_LIMIT: usize = 120_000;

/// How a queue is set up. The defaults are those of `template.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueSettings {
    /// How long a receive hides a message; 1,230 s, so that 1,000 receives outlast the retention.
    pub(crate) visibility_timeout: Duration,
    /// How long SQS stores a message after it was sent; 14 days, the longest possible.
    pub(crate) retention: Duration,
    /// `maxReceiveCount`: after this many receives SQS moves a message to the dead-letter queue; 1,000, the most
    /// possible.
    pub(crate) max_receive_count: u32,
    /// Messages that can be in flight. At the limit a long poll returns nothing.
    pub(crate) in_flight_limit: usize,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            visibility_timeout: QUEUE_VISIBILITY_TIMEOUT,
            retention: Duration::from_secs(14 * 24 * 3_600),
            max_receive_count: 1_000,
            in_flight_limit: IN_FLIGHT_LIMIT,
        }
    }
}

/// Why the queue removed a message by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Moved to the dead-letter queue, for `maxReceiveCount`.
    ReceivedTooOften,
    /// Deleted, because its retention ended.
    Expired,
}

/// A message that the queue removed by itself.
#[derive(Debug)]
pub(crate) struct Removed<T> {
    pub(crate) carried: T,
    pub(crate) removal: Removal,
}

/// What is sent.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) id: Id,
    pub(crate) body: String,
    /// `DelaySeconds`, whole: nobody receives the message before.
    pub(crate) delay: Duration,
    /// In a box because hardly any message has attributes, and there may be millions of messages.
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
    /// Size as SQS counts it: a system attribute is free.
    pub(crate) fn size(&self) -> usize {
        self.comeback.as_ref().map_or(0, |text| MOVED_ATTRIBUTE.len() + "String".len() + text.len())
    }
}

/// Where the queue stores a message. Once the message is gone, another may have its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(super) usize);

/// One receive of one message. A later receive makes it stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receipt {
    pub(super) slot: Slot,
    /// Unique in the queue, so that a handle never fits a later receive or another message.
    pub(super) number: u64,
}

impl Receipt {
    pub(crate) fn parse(handle: &str) -> Option<Self> {
        let (slot, number) = handle.split_once('.')?;
        Some(Self { slot: Slot(slot.parse().ok()?), number: number.parse().ok()? })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot.0, self.number)
    }
}

/// A message in a receiver's hands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) receipt: Receipt,
    pub(crate) id: Id,
}

/// Whether a receive can bring a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its delay is not over.
    Delayed,
    Visible,
    /// Received: hidden, or in a receiver's hands.
    InFlight,
}

#[derive(Debug)]
pub(super) struct Message<T> {
    pub(super) id: Id,
    pub(super) body: String,
    pub(super) attributes: Option<Box<Attributes>>,
    pub(super) carried: T,
    pub(super) sent_at: Timestamp,
    pub(super) first_receive: Timestamp,
    pub(super) last_receive: Timestamp,
    pub(super) receive_count: u32,
    /// Of the latest receive.
    pub(super) number: u64,
    pub(super) visible_at: Timestamp,
    pub(super) state: State,
}

impl<T> Message<T> {
    pub(super) fn new(now: Timestamp, number: u64, sent: Sent<T>) -> Self {
        let Sent { id, body, delay, attributes, carried } = sent;
        Self {
            id,
            body,
            attributes,
            carried,
            sent_at: now,
            first_receive: now,
            last_receive: now,
            receive_count: 0,
            number,
            visible_at: now.saturating_add(delay),
            state: if delay.is_zero() { State::Visible } else { State::Delayed },
        }
    }

    pub(super) fn take(&mut self, now: Timestamp, number: u64, visibility_timeout: Duration) {
        if self.receive_count == 0 {
            self.first_receive = now;
        }
        self.receive_count += 1;
        self.last_receive = now;
        self.number = number;
        self.visible_at = now.saturating_add(visibility_timeout);
        self.state = State::InFlight;
    }

    pub(super) fn received(&self, receipt: Receipt) -> Received {
        Received { receipt, id: self.id }
    }

    /// Writes what a receiver gets into `record`, reusing its buffers.
    pub(super) fn write(&self, receipt: Receipt, record: &mut Record) {
        record.message_id.clear();
        self.id.write(&mut record.message_id);
        record.receipt_handle.clear();
        fmt::Write::write_fmt(&mut record.receipt_handle, format_args!("{receipt}"))
            .expect("BUG: writing to a String");
        record.body.clear();
        record.body.push_str(&self.body);
        record.receive_count = self.receive_count;
        record.sent = self.sent_at;
        record.first_receive = self.first_receive;
        record.moved = None;
        record.trace_header = None;
    }
}

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

/// A record to write into.
pub(super) fn blank(now: Timestamp) -> Record {
    Record {
        message_id: String::new(),
        receipt_handle: String::new(),
        body: String::new(),
        receive_count: 0,
        sent: now,
        first_receive: now,
        moved: None,
        trace_header: None,
    }
}
