//! What it takes to attach a function, and to detach it.

use crate::operate::account::{Failure, Verdict};
use crate::operate::alarms::Losses;
use crate::operate::attach::allow_list::{ENVIRONMENT_BYTES, ListPlace, PARAMETER_BYTES};
use crate::operate::attach::attachment::{Attachment, Place, invoke_statements};
use crate::operate::attach::change::{AttachPlan, Change};
use crate::operate::attach::leaving::Leaving;
use crate::operate::attach::{allow_list, kept};
use crate::operate::function::InvokeSettings;

/// How long Lambda itself keeps an event that it cannot deliver, in seconds: its shortest.
const EVENT_AGE: i32 = 60;

impl Attachment {
    /// What it takes to attach the function. The order is safe: the handler can retry the function before the first
    /// failure reaches it.
    pub(crate) fn attach(&self) -> Result<AttachPlan, Failure> {
        let mut plan = AttachPlan::default();
        let settings = self.target.settings();
        let goal = InvokeSettings {
            retries: Some(0),
            event_age: Some(EVENT_AGE),
            on_failure: Some(self.queue.arn.clone()),
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

    /// Keeps the settings of a qualifier only while its failures go elsewhere: afterwards they are ours.
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
            format!("{key} = {value} does not fit in a tag of the function: write it down, detach cannot restore it")
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
                    "a policy denies {} to send to {}: remove the denial: no other policy can outweigh it",
                    self.target.role_arn, self.queue.arn
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
                "a policy denies the role {} of the handler to invoke {arn}: remove the denial: no other policy \
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

impl Attachment {
    /// What it takes to detach the function. The destination goes first. What the function's waiting events need goes
    /// once they have left the retry queue, or at once if they may be given up.
    pub(crate) fn detach(&self, leaving: &Leaving) -> Result<AttachPlan, Failure> {
        let mut plan = AttachPlan::default();
        let target = &self.target;
        let is_attached = self.is_attached(target.qualifier.as_deref());
        if is_attached {
            self.may_set_settings()?;
            self.restore_settings(&mut plan);
        }
        self.forget(kept::keys(target.qualifier.as_deref()), &mut plan);
        let others: Vec<String> = self.others().map(|it| self.named(it)).collect();
        if !others.is_empty() {
            plan.notes.push(format!(
                "{} stays attached: the handler goes on retrying the function",
                others.join(", ")
            ));
            return Ok(plan);
        }
        if !is_attached && !self.has_traces() {
            return Ok(plan);
        }
        match leaving.wait(is_attached, kept::detached(&target.tags)) {
            Some(wait) => {
                self.mark(leaving, is_attached, &mut plan);
                plan.left = Some(format!(
                    "the allow-list, the permissions and the recursion setting stay, for events that may still wait: {wait}"
                ));
            }
            None => self.finish(leaving, is_attached, &mut plan),
        }
        Ok(plan)
    }

    /// Whether something of an attachment is there that `detach` can take away.
    pub(crate) fn has_traces(&self) -> bool {
        let tags = [kept::DETACHED, kept::RECURSION];
        self.send_policy
            || self.losses.ours
            || self.handler.invoke_policy
            || self.removable().is_some()
            || tags.iter().any(|key| self.target.tags.contains_key(*key))
    }

    fn restore_settings(&self, plan: &mut AttachPlan) {
        let (to, all_known) = kept::settings(&self.target);
        if !all_known {
            plan.notes.push(
                "the function's tags do not have all of its earlier settings: the others become Lambda's defaults".into(),
            );
        }
        plan.changes.push(Change::Settings {
            function: self.target.name.clone(),
            qualifier: self.target.qualifier.clone(),
            from: self.target.settings(),
            to,
        });
    }

    /// Keeps when the destination was taken away.
    fn mark(&self, leaving: &Leaving, is_attached: bool, plan: &mut AttachPlan) {
        if is_attached || kept::detached(&self.target.tags).is_none() {
            let tags = vec![(kept::DETACHED.to_owned(), leaving.now.to_string())];
            plan.changes.push(Change::Keep { arn: self.target.arn.clone(), tags });
        }
    }

    /// The tags go last: while they are there, a repeated run knows that something is left to finish.
    fn finish(&self, leaving: &Leaving, is_attached: bool, plan: &mut AttachPlan) {
        let target = &self.target;
        if leaving.at_once {
            plan.notes.push(format!(
                "events of {} that still wait go to the dead-letter queue as target_not_allowed",
                target.name
            ));
        }
        match kept::recursion_allowed(target) {
            Some(allowed) if allowed != target.recursion_allowed => {
                plan.changes.push(Change::Recursion { function: target.name.clone(), allowed });
            }
            None if target.recursion_allowed => plan.notes.push(format!(
                "recursive loops of {0} stay allowed, because no tag has the earlier setting; to stop them: aws \
                 lambda put-function-recursion-config --function-name {0} --recursive-loop Terminate",
                target.name
            )),
            _ => {}
        }
        plan.changes.extend(self.removable().map(|place| self.list(place, false)));
        if self.handler.invoke_policy {
            let role = self.handler.role.clone();
            let (policy, statements) = (self.invoke_policy_name(), invoke_statements(target));
            plan.changes.push(Change::Withdraw { role, policy, statements });
        }
        if let (Place::Template { stack }, true) =
            (&self.handler.place, allow_list::has(&self.handler.allow_list, &target.arn))
        {
            plan.notes
                .push(format!("stack {stack} still allows {}: take it out of its template", target.arn));
        }
        let under_way = leaving.under_way_until(is_attached, kept::detached(&target.tags));
        if let Some(until) = under_way.filter(|_| self.send_policy && leaving.sharing.is_empty()) {
            self.mark(leaving, is_attached, plan);
            plan.left = Some(format!(
                "role {} keeps its permission to send until {until}, for invocations that are under way",
                target.role()
            ));
            return;
        }
        if self.send_policy && leaving.sharing.is_empty() {
            let role = target.role().to_owned();
            let (policy, statements) = (self.send_policy_name(), self.send_statements());
            plan.changes.push(Change::Withdraw { role, policy, statements });
        } else if self.send_policy {
            plan.notes.push(format!(
                "role {} keeps its permission to send, for these functions: {}",
                target.role(),
                leaving.sharing.join(", ")
            ));
        }
        if self.losses.ours {
            let (function, alarm) = (target.name.clone(), self.losses.alarm.clone());
            plan.changes.push(Change::Unwatch { function, alarm });
        }
        self.forget([kept::RECURSION, kept::DETACHED].map(ToOwned::to_owned), plan);
    }

    fn forget(&self, keys: impl IntoIterator<Item = String>, plan: &mut AttachPlan) {
        let tags = kept::present(&self.target, keys);
        if !tags.is_empty() {
            plan.changes.push(Change::Forget { arn: self.target.arn.clone(), tags });
        }
    }

    /// Where the function is on the allow-list by an entry of its own, if it can be removed there.
    fn removable(&self) -> Option<ListPlace> {
        let handler = &self.handler;
        let (list, place) = match &handler.place {
            Place::Parameter { stack, value } => (value, ListPlace::Stack(stack.clone())),
            Place::Environment => (&handler.allow_list, ListPlace::Function(handler.name.clone())),
            Place::Template { .. } => return None,
        };
        allow_list::has(list, &self.target.arn).then_some(place)
    }

    fn named(&self, qualifier: Option<&str>) -> String {
        qualifier.iter().fold(self.target.name.clone(), |name, qualifier| format!("{name}:{qualifier}"))
    }
}
