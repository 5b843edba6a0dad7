//! Simulated CloudFormation stacks.

use std::time::Duration;

use comeback_engine::Timestamp;

use crate::aws::{self, StackEvent, StackResource};

/// The duration of a stack update.
const UPDATES_TAKE: Duration = Duration::from_secs(30);

/// A CloudFormation stack with its resources and its events.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The stack as CloudFormation describes it.
    pub stack: aws::Stack,
    /// The stack's resources.
    pub resources: Vec<StackResource>,
    /// The stack's events, newest first.
    pub events: Vec<StackEvent>,
    /// The time when the update in progress ends; `None` if no update is in progress.
    update_ends: Option<Timestamp>,
}

impl Stack {
    /// Creates a stack.
    pub fn new(stack: aws::Stack, resources: Vec<StackResource>) -> Self {
        Self { stack, resources, events: Vec::new(), update_ends: None }
    }

    /// Simulates `UpdateStack`: starts an update of one parameter, or fails with CloudFormation's error code and
    /// message.
    pub(super) fn update(&mut self, now: Timestamp, parameter: &str, value: &str) -> Result<(), String> {
        let Self { stack, .. } = self;
        let refused = |why: String| Err(format!("ValidationError: {why}"));
        if stack.status.ends_with("_IN_PROGRESS") {
            return refused(format!(
                "Stack:{} is in {} state and can not be updated.",
                stack.name, stack.status
            ));
        }
        // `SdkAws` sends only the parameters that the stack has, so a change to any other is not an update.
        match stack.parameters.get_mut(parameter) {
            Some(before) if before != value => value.clone_into(before),
            _ => return refused("No updates are to be performed.".into()),
        }
        stack.updated = Some(now.as_millis() as i64);
        self.update_ends = Some(now.saturating_add(UPDATES_TAKE));
        self.enter("UPDATE_IN_PROGRESS");
        Ok(())
    }

    fn enter(&mut self, status: &str) {
        self.stack.status = status.to_owned();
        let (logical_id, status) = (self.stack.name.clone(), status.to_owned());
        self.events.insert(0, StackEvent { logical_id, is_of_stack: true, status, reason: None });
    }

    /// If an update has ended by `now`, marks it as complete and returns the updated stack.
    pub(super) fn settle(&mut self, now: Timestamp) -> Option<aws::Stack> {
        self.update_ends.take_if(|ends| *ends <= now)?;
        self.enter("UPDATE_COMPLETE");
        Some(self.stack.clone())
    }
}
