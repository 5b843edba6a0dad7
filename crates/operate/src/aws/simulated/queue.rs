//! A simulated standard SQS queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::{QUEUE_VISIBILITY_TIMEOUT, RETENTION, Record, SQS_MESSAGE_BYTES, Timestamp};
use comeback_timelapse::{IN_FLIGHT_LIMIT, OperatedDeployment};
use serde_json::Value;

use crate::aws::simulated::calls::entry;
use crate::aws::{EntryFailure, EntryFailureKind, MOST_OF_A_RECEIVE, NewMessage, Received};
use crate::deployment::queue::Depth;

/// The maximum visibility timeout, counted from the receive. Source: SQS quotas, "Message visibility timeout".
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 3_600);

/// A standard SQS queue and its messages, which are received in the order they became visible.
#[derive(Clone, Debug)]
pub struct SimulatedQueue {
    /// The queue's ARN.
    pub arn: String,
    /// The queue attributes that were set, keyed by SQS's attribute names.
    pub attributes: BTreeMap<String, String>,
    /// The maximum number of messages in flight.
    pub in_flight_limit: usize,
    messages: BTreeMap<u64, Stored>,
    visible: VecDeque<u64>,
    /// The time when each delayed or hidden message becomes visible.
    hidden: BTreeSet<(Timestamp, u64)>,
    /// The time when each message's retention period ends.
    ends: BTreeSet<(Timestamp, u64)>,
    in_flight: usize,
    sent: u64,
    receives: u64,
    /// The simulated run that keeps the messages; `None` if this queue keeps the messages itself.
    pub(super) run: Option<Rc<dyn OperatedDeployment>>,
}

/// A message in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The message's id.
    pub id: String,
    /// The message as it was sent.
    pub message: NewMessage,
    /// The time when the message was sent.
    pub sent: Timestamp,
    /// The number of times that the message has been received.
    pub receives: u32,
    /// The time when the message becomes visible, or `None` if it is already visible.
    pub visible_at: Option<Timestamp>,
    first_receive: Timestamp,
    last_receive: Timestamp,
    /// The sequence number of the last receive, which is part of the receipt handle.
    receive: u64,
}

impl SimulatedQueue {
    /// Creates an empty queue, with the settings of the deployment's template.
    pub fn new(arn: impl Into<String>) -> Self {
        let attributes = [
            ("MaximumMessageSize", SQS_MESSAGE_BYTES as u64),
            ("MessageRetentionPeriod", RETENTION.as_secs()),
            ("VisibilityTimeout", QUEUE_VISIBILITY_TIMEOUT.as_secs()),
        ];
        Self {
            arn: arn.into(),
            attributes: attributes.map(|(name, value)| (name.to_owned(), value.to_string())).into(),
            in_flight_limit: IN_FLIGHT_LIMIT,
            messages: BTreeMap::new(),
            visible: VecDeque::new(),
            hidden: BTreeSet::new(),
            ends: BTreeSet::new(),
            in_flight: 0,
            sent: 0,
            receives: 0,
            run: None,
        }
    }

    /// The queue's name, which is the last part of the ARN.
    pub fn name(&self) -> &str {
        self.arn.rsplit(':').next().unwrap_or_default()
    }

    /// Simulates `SendMessage` and returns the message's id; `delay` counts from `sent`, which may be in the past.
    pub fn send(&mut self, sent: Timestamp, delay: Duration, message: NewMessage) -> String {
        let id = self.next_id();
        self.put(
            Stored {
                id: id.clone(),
                message,
                sent,
                receives: 0,
                visible_at: None,
                first_receive: sent,
                last_receive: sent,
                receive: 0,
            },
            delay,
        );
        id
    }

    fn next_id(&self) -> String {
        // The FNV-1a hash of the ARN makes the message ids in two queues different.
        let hash = self
            .arn
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        format!("{hash:08x}-0000-4000-8000-{:012x}", self.sent + 1)
    }

    fn put(&mut self, mut message: Stored, delay: Duration) {
        self.sent += 1;
        let key = self.sent;
        self.ends.insert((message.sent.saturating_add(self.retention()), key));
        if delay.is_zero() {
            self.visible.push_back(key);
        } else {
            let at = message.sent.saturating_add(delay);
            message.visible_at = Some(at);
            self.hidden.insert((at, key));
        }
        self.messages.insert(key, message);
    }

    /// Adds a message that another queue has moved to this queue after too many receives.
    pub(super) fn take_in(&mut self, message: Stored) {
        self.put(Stored { visible_at: None, receives: 0, ..message }, Duration::ZERO);
    }

    /// Returns the received messages, and those that must move to the dead-letter queue.
    pub(super) fn receive(
        &mut self,
        now: Timestamp,
        most: usize,
        visibility: Duration,
    ) -> (Vec<Received>, Vec<Stored>) {
        self.settle(now);
        let most = most.min(MOST_OF_A_RECEIVE).min(self.in_flight_limit.saturating_sub(self.in_flight));
        let redrive = self.redrive();
        let (mut received, mut moved) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        while received.len() < most {
            let Some(key) = self.visible.pop_front() else { break };
            if !self.messages.contains_key(&key) {
                continue;
            }
            if !seen.insert(key) {
                self.visible.push_front(key);
                break;
            }
            if redrive.as_ref().is_some_and(|(_, most)| self.messages[&key].receives >= *most) {
                moved.extend(self.remove(key));
                continue;
            }
            received.push(self.hand_out(now, key, visibility));
        }
        (received, moved)
    }

    fn hand_out(&mut self, now: Timestamp, key: u64, visibility: Duration) -> Received {
        self.receives += 1;
        let handle = format!("{}/{key}.{}", self.name(), self.receives);
        let receive = self.receives;
        let message = self.messages.get_mut(&key).expect("BUG: the message is there");
        if message.receives == 0 {
            message.first_receive = now;
        }
        message.receives += 1;
        message.receive = receive;
        message.last_receive = now;
        if visibility.is_zero() {
            self.visible.push_back(key);
        } else {
            let at = now.saturating_add(visibility);
            message.visible_at = Some(at);
            self.hidden.insert((at, key));
            self.in_flight += 1;
        }
        self.messages[&key].received(handle)
    }

    /// Simulates `DeleteMessage`, which does nothing if the message is gone or if the handle is from an earlier
    /// receive.
    ///
    /// # Errors
    ///
    /// Fails if the handle is invalid.
    pub fn delete(&mut self, now: Timestamp, handle: &str) -> Result<(), EntryFailure> {
        self.settle(now);
        let (key, receive) = self.parsed(handle)?;
        if self.messages.get(&key).is_some_and(|message| message.receive == receive) {
            self.remove(key);
        }
        Ok(())
    }

    /// Simulates `ChangeMessageVisibility`: hides a message for `timeout`, counted from now. A handle from an earlier
    /// receive works too.
    ///
    /// # Errors
    ///
    /// Fails if the handle is invalid, if the message is gone or visible, or if `timeout` ends over twelve hours after
    /// the last receive.
    pub fn change_visibility(
        &mut self,
        now: Timestamp,
        handle: &str,
        timeout: Duration,
    ) -> Result<(), EntryFailure> {
        if let Some(run) = &self.run {
            return run.recall(handle, timeout).map_err(|error| {
                let (code, text) = error.split_once(": ").unwrap_or(("", &error));
                entry(EntryFailureKind::Refused, code, text)
            });
        }
        self.settle(now);
        let refused = |text: &str| entry(EntryFailureKind::Refused, "InvalidParameterValue", text);
        let (key, _) = self.parsed(handle)?;
        let Some(message) = self.messages.get_mut(&key) else {
            return Err(refused(&format!(
                "Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not \
                 available for visibility timeout change."
            )));
        };
        // AWS documents this error. In practice, SQS has also been seen to report success and do nothing.
        if !message.is_in_flight() {
            let code = "AWS.SimpleQueueService.MessageNotInflight";
            return Err(entry(EntryFailureKind::Refused, code, "The message is visible again."));
        }
        if now.since(message.last_receive) + timeout > LONGEST_VISIBILITY {
            return Err(refused(
                "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]",
            ));
        }
        let at = now.saturating_add(timeout);
        let before = message.visible_at.replace(at);
        self.hidden.remove(&(before.expect("BUG: it is hidden until some time"), key));
        self.hidden.insert((at, key));
        self.settle(now);
        Ok(())
    }

    /// Simulates `GetQueueAttributes`: returns the attributes that were set, the ARN and the message counts.
    pub fn all_attributes(&mut self, now: Timestamp) -> BTreeMap<String, String> {
        let Depth { visible, in_flight, delayed } = self.depth(now);
        let counts = [("", visible), ("NotVisible", in_flight), ("Delayed", delayed)];
        let counts =
            counts.map(|(suffix, count)| (format!("ApproximateNumberOfMessages{suffix}"), count.to_string()));
        let mut all = self.attributes.clone();
        all.extend(counts);
        all.insert("QueueArn".into(), self.arn.clone());
        all
    }

    /// The numbers of visible, in-flight and delayed messages in the queue.
    pub fn depth(&mut self, now: Timestamp) -> Depth {
        let count = |count: usize| count as u64;
        if let Some(run) = &self.run {
            let comeback_timelapse::Depth { visible, in_flight, delayed } = run.depth();
            let [visible, in_flight, delayed] = [visible, in_flight, delayed].map(count);
            return Depth { visible, in_flight, delayed };
        }
        self.settle(now);
        let (in_flight, hidden) = (self.in_flight, self.hidden.len());
        Depth {
            visible: count(self.messages.len() - hidden),
            in_flight: count(in_flight),
            delayed: count(hidden - in_flight),
        }
    }

    /// All messages, in the order they were sent.
    pub fn stored(&mut self, now: Timestamp) -> impl Iterator<Item = &Stored> {
        self.settle(now);
        self.messages.values()
    }

    /// The next time when a message becomes visible or its retention period ends; `None` if there are no messages.
    pub fn next_change(&self) -> Option<Timestamp> {
        let [appears, ends] = [&self.hidden, &self.ends].map(|times| times.first().map(|(at, _)| *at));
        [appears, ends].into_iter().flatten().min()
    }

    /// Brings the queue up to `now`: deletes messages at the end of their retention period, and makes messages visible
    /// at the end of their delay or visibility timeout.
    fn settle(&mut self, now: Timestamp) {
        while let Some(&(at, key)) = self.ends.first().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, key));
            self.remove(key);
        }
        while let Some(&(at, key)) = self.hidden.first().filter(|(at, _)| *at <= now) {
            self.hidden.remove(&(at, key));
            let message = self.messages.get_mut(&key).expect("BUG: what is hidden is there");
            self.in_flight -= usize::from(message.is_in_flight());
            message.visible_at = None;
            self.visible.push_back(key);
        }
    }

    fn remove(&mut self, key: u64) -> Option<Stored> {
        let message = self.messages.remove(&key)?;
        self.ends.remove(&(message.sent.saturating_add(self.retention()), key));
        if let Some(at) = message.visible_at {
            self.hidden.remove(&(at, key));
        }
        self.in_flight -= usize::from(message.is_in_flight());
        Some(message)
    }

    fn parsed(&self, handle: &str) -> Result<(u64, u64), EntryFailure> {
        let numbers = || {
            let (key, receive) = handle.strip_prefix(self.name())?.strip_prefix('/')?.split_once('.')?;
            Some((key.parse().ok()?, receive.parse().ok()?))
        };
        numbers().ok_or_else(|| {
            let text = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
            entry(EntryFailureKind::Refused, "ReceiptHandleIsInvalid", &text)
        })
    }

    fn retention(&self) -> Duration {
        let seconds = self.attributes.get("MessageRetentionPeriod").and_then(|text| text.parse().ok());
        seconds.map_or(RETENTION, Duration::from_secs)
    }

    /// The ARN of the dead-letter queue, and the maximum number of receives before a message is moved there.
    pub(super) fn redrive(&self) -> Option<(String, u32)> {
        let policy: Value = serde_json::from_str(self.attributes.get("RedrivePolicy")?).ok()?;
        let most = &policy["maxReceiveCount"];
        let most = most.as_u64().or_else(|| most.as_str()?.parse().ok())?;
        Some((policy["deadLetterTargetArn"].as_str()?.to_owned(), u32::try_from(most).ok()?))
    }
}

impl Stored {
    /// Returns true if the message was received and is still hidden.
    fn is_in_flight(&self) -> bool {
        self.visible_at.is_some() && self.receives > 0
    }

    fn received(&self, receipt_handle: String) -> Received {
        let record = Record {
            message_id: self.id.clone(),
            receipt_handle,
            body: self.message.body.clone(),
            receive_count: self.receives,
            sent: self.sent,
            first_receive: self.first_receive,
            moved: None,
            trace_header: self.message.trace_header.clone(),
            attributes: Vec::new(),
        };
        Received { record, attributes: self.message.attributes.clone() }
    }
}
