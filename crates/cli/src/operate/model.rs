//! A function as AWS keeps it, with its role's policies and its alarms, for tests of what commands plan. Each call does to
//! it what `tests/tests/operate/contract.rs` sees MiniStack do.

use std::collections::{BTreeMap, BTreeSet};

/// `S` holds the settings of asynchronous invocations.
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
