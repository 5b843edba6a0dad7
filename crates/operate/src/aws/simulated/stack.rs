//! Simulated CloudFormation stacks.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::aws::simulated::State;
use crate::aws::{self, StackEvent, StackResource};

/// A function that changes the resources of a stack to match the stack's parameters.
pub type Template = fn(&mut State, &aws::Stack);

/// A CloudFormation stack with its resources and events.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The stack as CloudFormation describes it.
    pub stack: aws::Stack,
    /// The resources of the stack.
    pub resources: Vec<StackResource>,
    /// The events of the stack, the newest first.
    pub events: Vec<StackEvent>,
    /// The template, which each update applies.
    pub template: Template,
    /// The time that an update of the stack takes.
    pub updates_take: Duration,
    /// The resource at which the next update fails, and the reason; `None` if the next update succeeds.
    pub next_failure: Option<(String, String)>,
    update: Option<Update>,
}

/// An update that is in progress.
#[derive(Clone, Debug)]
struct Update {
    ends: Timestamp,
    before: BTreeMap<String, String>,
}

impl Stack {
    /// Creates a stack. Each update of the stack takes half a minute.
    pub fn new(stack: aws::Stack, resources: Vec<StackResource>, template: Template) -> Self {
        Self {
            stack,
            resources,
            events: Vec::new(),
            template,
            updates_take: Duration::from_secs(30),
            next_failure: None,
            update: None,
        }
    }

    /// Performs `UpdateStack`. Fails with CloudFormation's code and message.
    pub(super) fn update(&mut self, now: Timestamp, parameter: &str, value: &str) -> Result<(), String> {
        let Self { stack, .. } = self;
        let refused = |why: String| Err(format!("ValidationError: {why}"));
        if stack.status.ends_with("_IN_PROGRESS") {
            return refused(format!(
                "Stack:{} is in {} state and can not be updated.",
                stack.name, stack.status
            ));
        }
        match stack.parameters.get(parameter) {
            None => return refused(format!("Parameters: [{parameter}] do not exist in the template")),
            Some(before) if before == value => return refused("No updates are to be performed.".into()),
            Some(_) => {}
        }
        let before = stack.parameters.clone();
        stack.parameters.insert(parameter.to_owned(), value.to_owned());
        stack.updated = Some(now.as_millis() as i64);
        self.update = Some(Update { ends: now.saturating_add(self.updates_take), before });
        self.enter("UPDATE_IN_PROGRESS");
        Ok(())
    }

    fn enter(&mut self, status: &str) {
        self.stack.status = status.to_owned();
        let (logical_id, status) = (self.stack.name.clone(), status.to_owned());
        self.events.insert(0, StackEvent { logical_id, is_of_stack: true, status, reason: None });
    }

    /// Ends the update in progress if it is due by `now`. If the update succeeds, returns the template to apply and the
    /// updated stack.
    pub(super) fn settle(&mut self, now: Timestamp) -> Option<(Template, aws::Stack)> {
        let Update { before, .. } = self.update.take_if(|update| update.ends <= now)?;
        let Some((logical_id, reason)) = self.next_failure.take() else {
            self.enter("UPDATE_COMPLETE");
            return Some((self.template, self.stack.clone()));
        };
        let reason = Some(reason);
        self.events
            .insert(0, StackEvent { logical_id, is_of_stack: false, status: "UPDATE_FAILED".into(), reason });
        self.stack.parameters = before;
        self.enter("UPDATE_ROLLBACK_COMPLETE");
        None
    }
}
