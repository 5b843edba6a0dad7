//! The account of the command's tests: its functions, each with its role's policies and its alarms, and its queues. Each
//! call does to it what `tests/tests/operate/contract.rs` sees MiniStack do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_sqs::types::MessageAttributeValue;
use comeback_engine::Record;
use comeback_timelapse::{Depth, QueueUnderContract};

/// Functions and queues by name. `S` holds the settings of asynchronous invocations.
#[derive(Debug)]
pub(crate) struct Account<S> {
    functions: BTreeMap<&'static str, Function<S>>,
    queues: BTreeMap<&'static str, Queue>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function<S> {
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) variables: BTreeMap<String, String>,
    /// By qualifier; `None` is the function itself.
    pub(crate) invoke_settings: BTreeMap<Option<String>, S>,
    pub(crate) recursion_allowed: bool,
    /// The role's inline policies.
    pub(crate) policies: BTreeMap<String, String>,
    /// The topics that each alarm notifies.
    pub(crate) alarms: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Call<S> {
    TagResource(BTreeMap<String, String>),
    UntagResource(Vec<String>),
    UpdateFunctionConfiguration(BTreeMap<String, String>),
    PutFunctionEventInvokeConfig(Option<String>, S),
    DeleteFunctionEventInvokeConfig(Option<String>),
    PutFunctionRecursionConfig(bool),
    PutRolePolicy(String, String),
    DeleteRolePolicy(String),
    PutMetricAlarm(String, BTreeSet<String>),
    DeleteAlarms(String),
}

impl<S> Account<S> {
    pub(crate) fn new(
        functions: impl IntoIterator<Item = (&'static str, Function<S>)>,
        queues: impl IntoIterator<Item = (&'static str, Queue)>,
    ) -> Self {
        Self { functions: functions.into_iter().collect(), queues: queues.into_iter().collect() }
    }

    pub(crate) fn function(&mut self, name: &str) -> &mut Function<S> {
        self.functions.get_mut(name).unwrap_or_else(|| panic!("BUG: no function {name}"))
    }

    pub(crate) fn queue(&mut self, name: &str) -> &mut Queue {
        self.queues.get_mut(name).unwrap_or_else(|| panic!("BUG: no queue {name}"))
    }
}

impl<S> Function<S> {
    pub(crate) fn new() -> Self {
        Self {
            tags: BTreeMap::new(),
            variables: BTreeMap::new(),
            invoke_settings: BTreeMap::new(),
            recursion_allowed: false,
            policies: BTreeMap::new(),
            alarms: BTreeMap::new(),
        }
    }

    pub(crate) fn call(&mut self, call: Call<S>) {
        match call {
            Call::TagResource(tags) => self.tags.extend(tags),
            Call::UntagResource(keys) => self.tags.retain(|key, _| !keys.contains(key)),
            Call::UpdateFunctionConfiguration(variables) => self.variables = variables,
            Call::PutFunctionEventInvokeConfig(qualifier, settings) => {
                self.invoke_settings.insert(qualifier, settings);
            }
            Call::DeleteFunctionEventInvokeConfig(qualifier) => drop(self.invoke_settings.remove(&qualifier)),
            Call::PutFunctionRecursionConfig(allowed) => self.recursion_allowed = allowed,
            Call::PutRolePolicy(name, document) => drop(self.policies.insert(name, document)),
            Call::DeleteRolePolicy(name) => drop(self.policies.remove(&name)),
            Call::PutMetricAlarm(name, topics) => drop(self.alarms.insert(name, topics)),
            Call::DeleteAlarms(name) => drop(self.alarms.remove(&name)),
        }
    }
}

/// Message attributes by name.
pub(crate) type Attributes = Vec<(String, MessageAttributeValue)>;

/// The queue that simulations run on, with any attributes. It fulfils `tests/tests/stack/contract` too.
#[derive(Debug)]
pub(crate) struct Queue {
    messages: QueueUnderContract,
    /// By message id: the queue of simulations carries Comeback's own only.
    attributes: BTreeMap<String, Attributes>,
}

impl Queue {
    pub(crate) fn new(visibility_timeout: Duration) -> Self {
        Self { messages: QueueUnderContract::new(visibility_timeout), attributes: BTreeMap::new() }
    }

    /// `SendMessage`, alone or as an entry of a batch. Returns the message's id.
    pub(crate) fn send(&mut self, body: &str, attributes: Attributes) -> String {
        let id = self.messages.send(body);
        self.attributes.insert(id.clone(), attributes);
        id
    }

    /// `ReceiveMessage`.
    pub(crate) fn receive(&mut self, most: usize) -> Vec<(Record, Attributes)> {
        let with_attributes = |record: Record| {
            let attributes = self.attributes[&record.message_id].clone();
            (record, attributes)
        };
        self.messages.receive(most).into_iter().map(with_attributes).collect()
    }

    /// `ChangeMessageVisibility`, alone or as an entry of a batch; false if SQS refuses the handle.
    pub(crate) fn change_visibility(&mut self, receipt_handle: &str, timeout: Duration) -> bool {
        self.messages.change_visibility(receipt_handle, timeout).is_ok()
    }

    /// `DeleteMessage`, alone or as an entry of a batch.
    pub(crate) fn delete(&mut self, receipt_handle: &str) {
        self.messages.delete(receipt_handle);
    }

    /// `GetQueueAttributes`.
    pub(crate) fn depth(&mut self) -> Depth {
        self.messages.depth()
    }

    /// Waits until a hidden message comes back; false if none will.
    pub(crate) fn wait(&mut self) -> bool {
        self.messages.wait()
    }
}
