//! A running deployment in a simulated account: Lambda, its functions and the shipped retry handler.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use comeback_delivery::{EntryAnswer, ErrorKind, ServiceError};
use comeback_engine::{
    Attribute, BatchEvent, DeadLetter, MOVED_ATTRIBUTE, Move, Policies, QUEUE_VISIBILITY_TIMEOUT, Record,
    Timestamp,
};
use comeback_timelapse::{Live, Surroundings};

use super::{AccountState, Sample, queue_arn, queue_url};
use crate::aws::{AttributeValue, EntryFailure, MetricStatistic, NewMessage, Received};

/// A running [`Sample`] deployment, which catches up with the account's clock before each call.
#[derive(Debug)]
pub(super) struct Running {
    live: RefCell<Live>,
    /// The environment variables of the running handler.
    variables: RefCell<BTreeMap<String, String>>,
}

impl Running {
    pub(super) fn new(live: Live) -> Self {
        Self { live: RefCell::new(live), variables: RefCell::default() }
    }

    pub(super) fn live(&self) -> &RefCell<Live> {
        &self.live
    }

    pub(super) fn run(&self, state: &mut AccountState, until: Timestamp) {
        let live = &mut *self.live.borrow_mut();
        self.follow_variables(live, state);
        take_invocations(live, state);
        live.run(until, state);
        state.looked_at = Some(until);
        raise_alarms(state, until);
    }

    fn follow_variables(&self, live: &mut Live, state: &AccountState) {
        let Some(handler) = state.functions.get(Sample::HANDLER) else { return };
        let variables = &handler.configuration.variables;
        if *self.variables.borrow() != *variables {
            let policies = Policies::from_variables(|name| variables.get(name).cloned());
            live.set_policies(policies.ok().map(Arc::new));
            self.variables.replace(variables.clone());
        }
    }
}

fn take_invocations(live: &mut Live, state: &mut AccountState) {
    for function in state.functions.values_mut() {
        for invocation in std::mem::take(&mut function.invocations) {
            live.invoke(&function.configuration.arn, invocation.payload, &invocation.request_id);
        }
    }
}

/// Sets each alarm that watches a queue's message count: `ALARM` while the queue has messages, otherwise `OK`.
fn raise_alarms(state: &mut AccountState, now: Timestamp) {
    let AccountState { alarms, queues, .. } = state;
    for alarm in alarms.values_mut() {
        let watched =
            alarm.metrics.iter().filter(|metric| metric.name.starts_with("ApproximateNumberOfMessages"));
        let names: Vec<_> = watched.filter_map(|metric| metric.dimensions.get("QueueName")).collect();
        if names.is_empty() {
            continue;
        }
        let is_raised = names.into_iter().any(|name| {
            queues.get_mut(name).is_some_and(|queue| {
                let depth = queue.depth(now);
                depth.visible + depth.in_flight > 0
            })
        });
        alarm.state = if is_raised { "ALARM" } else { "OK" }.to_owned();
    }
}

impl AccountState {
    pub(super) fn count(
        &mut self,
        now: Timestamp,
        namespace: &str,
        dimension: (&str, &str),
        name: &str,
        n: usize,
    ) {
        self.metrics.count(MetricStatistic { namespace, dimension, name, statistic: "Sum" }, now, n as f64);
    }

    fn sent(&mut self, now: Timestamp, queue: &str, delay: Duration, message: NewMessage) {
        self.named(queue).send(now, delay, message);
        self.count(now, "AWS/SQS", ("QueueName", queue), "NumberOfMessagesSent", 1);
    }
}

impl Surroundings for AccountState {
    fn receive(&mut self, now: Timestamp, most: usize) -> BatchEvent {
        self.looked_at = Some(now);
        let received =
            AccountState::receive(self, &queue_url(Sample::RETRY_QUEUE), most, QUEUE_VISIBILITY_TIMEOUT);
        let records = received.unwrap_or_default().into_iter().map(of_lambda);
        let queue_arn = Some(queue_arn(Sample::RETRY_QUEUE));
        BatchEvent { records: records.collect(), queue_arn, ..BatchEvent::default() }
    }

    fn delete(&mut self, now: Timestamp, receipt_handle: &str) {
        if self.named(Sample::RETRY_QUEUE).delete(now, receipt_handle).is_ok() {
            let queue = ("QueueName", Sample::RETRY_QUEUE);
            self.count(now, "AWS/SQS", queue, "NumberOfMessagesDeleted", 1);
        }
    }

    fn hide(&mut self, now: Timestamp, receipt_handle: &str, timeout: Duration) -> EntryAnswer {
        let hidden = self.named(Sample::RETRY_QUEUE).change_visibility(now, receipt_handle, timeout);
        hidden.map_err(|EntryFailure { code, text, .. }| ServiceError::new(ErrorKind::Refused, code, text))
    }

    fn send_failure(&mut self, now: Timestamp, record: String) {
        let message = NewMessage { body: record, ..NewMessage::default() };
        self.sent(now, Sample::RETRY_QUEUE, Duration::ZERO, message);
    }

    fn send_again(&mut self, now: Timestamp, copy: &Move<'_>) -> EntryAnswer {
        let body = copy.record.body.clone();
        let trace_header = copy.record.trace_header.clone();
        let message = NewMessage { body, attributes: attributes(&copy.attributes()), trace_header };
        self.sent(now, Sample::RETRY_QUEUE, copy.delay, message);
        Ok(())
    }

    fn send_dead_letter(&mut self, now: Timestamp, dead_letter: &DeadLetter) -> EntryAnswer {
        let (body, attributes) = (dead_letter.body.clone(), attributes(&dead_letter.attributes));
        let message = NewMessage { body, attributes, trace_header: None };
        self.sent(now, Sample::DEAD_LETTER_QUEUE, Duration::ZERO, message);
        Ok(())
    }

    fn has_visible(&mut self, now: Timestamp) -> bool {
        self.named(Sample::RETRY_QUEUE).depth(now).visible > 0
    }

    fn next_change(&self) -> Option<Timestamp> {
        self.queues.get(Sample::RETRY_QUEUE)?.next_change()
    }

    fn in_flight(&mut self, now: Timestamp) -> u64 {
        self.named(Sample::RETRY_QUEUE).depth(now).in_flight
    }

    fn pauses(&mut self, _: Timestamp) -> Option<String> {
        Some(self.parameters.get(Sample::PAUSES)?.versions.last()?.text.clone())
    }

    fn log(&mut self, at: Timestamp, function: &str, stream: &str, line: String) {
        let name = if function.is_empty() { Sample::HANDLER } else { function };
        self.log_groups.entry(format!("/aws/lambda/{name}")).or_default().write(at, stream, line);
    }

    fn handled(&mut self, now: Timestamp) {
        self.count(now, "AWS/Lambda", ("FunctionName", Sample::HANDLER), "Invocations", 1);
    }
}

/// A message as Lambda passes it to the handler, with its sender's attributes.
fn of_lambda(message: Received) -> Record {
    let Received { record, attributes } = message.restored();
    let of_sender = attributes.into_iter().filter(|(name, _)| name != MOVED_ATTRIBUTE);
    let attributes = of_sender.map(|(name, AttributeValue { data_type, value })| Attribute {
        name: name.into(),
        data_type: data_type.into(),
        value,
    });
    Record { attributes: attributes.collect(), ..record }
}

/// Converts the handler's message attributes to the simulated queue's type.
fn attributes(of_handler: &[Attribute]) -> BTreeMap<String, AttributeValue> {
    let attribute = |it: &Attribute| {
        let value = AttributeValue { data_type: it.data_type.to_string(), value: it.value.clone() };
        (it.name.to_string(), value)
    };
    of_handler.iter().map(attribute).collect()
}
