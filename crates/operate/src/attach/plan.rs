use crate::attach::allow_list::{self, ENVIRONMENT_BYTES, PARAMETER_BYTES};
use crate::attach::change::{Change, ListPlace};
use crate::attach::facts::{Attachment, Place, invoke_statements};
use crate::attach::kept;
use crate::attach::losses::Losses;
use crate::{Failure, InvokeSettings, Verdict};

/// How long Lambda itself keeps an event that it cannot deliver, in seconds: its shortest.
const EVENT_AGE: i32 = 60;

/// The changes that are to be made, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachPlan {
    /// The changes. There is nothing to do if there are none.
    pub changes: Vec<Change>,
    /// What the operator should know of them.
    pub notes: Vec<String>,
    /// What cannot be done yet, and when it can.
    pub left: Option<String>,
}

impl AttachPlan {
    /// Whether another plan makes the same changes; the time that detaching keeps may differ.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let timeless = |plan: &Self| {
            let mut changes = plan.changes.clone();
            for change in &mut changes {
                if let Change::Keep { tags, .. } = change {
                    tags.iter_mut()
                        .filter(|(key, _)| key == kept::DETACHED)
                        .for_each(|(_, time)| time.clear());
                }
            }
            changes
        };
        timeless(self) == timeless(other)
    }
}

impl Attachment {
    /// What it takes to attach the function. The order is safe: the handler can retry the function before the first
    /// failure reaches it.
    ///
    /// # Errors
    ///
    /// What stands in the way, and what to do about it. Nothing may be changed then.
    pub fn attach(&self) -> Result<AttachPlan, Failure> {
        let mut plan = AttachPlan::default();
        let settings = self.target.settings();
        let goal = InvokeSettings {
            retries: Some(0),
            event_age: Some(EVENT_AGE),
            on_failure: Some(self.queue_arn.clone()),
            on_success: settings.on_success.clone(),
        };
        if settings != goal {
            self.may_set_settings()?;
        }
        self.keep_settings(&mut plan);
        plan.changes.extend(self.allow_sending()?);
        plan.changes.extend(self.allow_retrying()?);
        if !self.target.recursion_allowed {
            plan.changes.push(Change::Recursion { function: self.target.name.clone(), allowed: true });
        }
        plan.changes.extend(self.watch());
        if settings != goal {
            let (function, qualifier) = (self.target.name.clone(), self.target.qualifier.clone());
            plan.changes.push(Change::Settings { function, qualifier, from: settings, to: goal });
        }
        let detached = kept::present(&self.target, [kept::DETACHED.to_owned()]);
        if !detached.is_empty() {
            plan.changes.push(Change::Forget { arn: self.target.arn.clone(), tags: detached });
        }
        if let Some(stack) = self.target.stack().filter(|_| !plan.changes.is_empty()) {
            plan.notes.push(format!(
                "stack {stack} made {}: write this into its template too, or a later deployment may undo it",
                self.target.name
            ));
        }
        Ok(plan)
    }

    /// The settings of a qualifier are those of before as long as its failures do not go to the retry queue. Only then
    /// are they kept, so that a second run keeps none of ours.
    fn keep_settings(&self, plan: &mut AttachPlan) {
        let target = &self.target;
        let mut tags = Vec::new();
        if !self.is_attached(target.qualifier.as_deref()) {
            tags.extend(kept::tags_of(target));
        }
        let is_first = !target.invoke_settings.keys().any(|it| self.is_attached(it.as_deref()));
        if !target.tags.contains_key(kept::RECURSION) && (is_first || !target.recursion_allowed) {
            tags.push((kept::RECURSION.to_owned(), kept::recursion(target.recursion_allowed).to_owned()));
        }
        tags.retain(|(key, value)| target.tags.get(key) != Some(value));
        let room =
            kept::TAGS.saturating_sub(target.tags.keys().filter(|key| !key.starts_with("aws:")).count());
        let new = tags.iter().filter(|(key, _)| !target.tags.contains_key(key)).count();
        let (fitting, rest): (Vec<_>, Vec<_>) =
            tags.into_iter().partition(|tag| new <= room && kept::fits(tag));
        plan.notes.extend(rest.iter().map(|(key, value)| {
            format!("{key} = {value} fits no tag of the function: note it down, for detach will not know it")
        }));
        if !fitting.is_empty() {
            plan.changes.push(Change::Keep { arn: target.arn.clone(), tags: fitting });
        }
    }

    /// Step 1 of docs/attach.md.
    fn allow_sending(&self) -> Result<Option<Change>, Failure> {
        match self.may_send {
            Verdict::Allowed => return Ok(None),
            Verdict::Denied => {
                return Err(Failure::Undone(format!(
                    "a policy denies {} to send to {}: take the denial away, for no other policy can outweigh it",
                    self.target.role_arn, self.queue_arn
                )));
            }
            Verdict::NotAllowed => {}
        }
        let (role, policy) = (self.target.role().to_owned(), self.send_policy_name());
        Ok(Some(Change::Allow { role, policy, statements: self.send_statements() }))
    }

    /// Steps 2 and 3.
    fn allow_retrying(&self) -> Result<Vec<Change>, Failure> {
        let (handler, arn) = (&self.handler, &self.target.arn);
        let is_listed = handler.allows(&self.target.invoked_arn());
        if is_listed && handler.may_invoke == Verdict::Allowed {
            return Ok(Vec::new());
        }
        if handler.may_invoke == Verdict::Denied {
            return Err(Failure::Undone(format!(
                "a policy denies the role {} of the handler to invoke {arn}: take the denial away, for no other policy \
                 can outweigh it",
                handler.role
            )));
        }
        match &handler.place {
            Place::Parameter { stack, value } if allow_list::with(value, arn) == *value => {
                Err(Failure::Undone(format!(
                    "stack {stack} names {arn} in TargetFunctions, but its handler may not retry it: the handler or its \
                     role was changed by hand; deploy the stack again"
                )))
            }
            Place::Parameter { stack, value } => {
                self.check_size(allow_list::with(value, arn).len())?;
                Ok(vec![self.list(ListPlace::Stack(stack.clone()), true)])
            }
            Place::Template { stack } => Err(Failure::Undone(format!(
                "stack {stack} has no parameter TargetFunctions, so only its template lets the handler retry {arn}. In a \
                 CDK app, write `retries.attach(fn)` where {name} is made, or else \
                 `retries.attach(lambda.Function.fromFunctionArn(this, '{name}', '{arn}'))`; deploy it, and repeat \
                 this command for what the app cannot do",
                name = self.target.name
            ))),
            Place::Environment => {
                let mut changes = Vec::new();
                if handler.may_invoke != Verdict::Allowed {
                    changes.push(Change::Allow {
                        role: handler.role.clone(),
                        policy: self.invoke_policy_name(),
                        statements: invoke_statements(&self.target),
                    });
                }
                if !is_listed {
                    self.check_size(0)?;
                    changes.push(self.list(ListPlace::Function(handler.name.clone()), true));
                }
                Ok(changes)
            }
        }
    }

    /// `parameter_bytes` is what a stack's parameter would have.
    fn check_size(&self, parameter_bytes: usize) -> Result<(), Failure> {
        let handler = &self.handler;
        let longer = allow_list::with(&handler.allow_list, &self.target.arn).len() - handler.allow_list.len();
        let environment_bytes = handler.environment_bytes + longer;
        if parameter_bytes <= PARAMETER_BYTES && environment_bytes <= ENVIRONMENT_BYTES {
            return Ok(());
        }
        Err(Failure::Undone(format!(
            "the allow-list has no room for {}: TargetFunctions would have {parameter_bytes} bytes of {PARAMETER_BYTES}, \
             the handler's environment {environment_bytes} of {ENVIRONMENT_BYTES}; name several functions by one \
             pattern, such as {}",
            self.target.arn,
            self.target.arn.replace(&self.target.name, "shop-*")
        )))
    }

    /// An alarm on what Lambda loses of the function, if the deployment has alarms and none is on that yet.
    fn watch(&self) -> Option<Change> {
        let Losses { alarm, ours, others, tell } = &self.losses;
        let tell = tell.clone().filter(|_| !ours && !others)?;
        Some(Change::Watch { function: self.target.name.clone(), alarm: alarm.clone(), tell })
    }

    /// One more function on the allow-list, or one fewer.
    pub(crate) fn list(&self, place: ListPlace, listed: bool) -> Change {
        Change::List { place, arn: self.target.arn.clone(), listed }
    }

    /// Whether the settings of asynchronous invocations are ours to change.
    pub(crate) fn may_set_settings(&self) -> Result<(), Failure> {
        match &self.owner {
            None => Ok(()),
            Some(stack) => Err(Failure::Undone(format!(
                "stack {stack} owns the settings of {}'s asynchronous invocations, and would undo a change: set the \
                 failure destination there (EventInvokeConfig in SAM, retries.attach(fn) in the CDK), or take it out \
                 there, and deploy that stack",
                self.target.name
            ))),
        }
    }
}
