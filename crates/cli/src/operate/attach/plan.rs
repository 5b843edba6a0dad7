//! The changes that attach a function, and those that detach it.

use std::collections::BTreeSet;

use crate::account::{CustomerKey, Failure, Verdict};
use crate::operate::alarms::{self, LostAlarm};
use crate::operate::attach::attachment::{Attachment, Place};
use crate::operate::attach::change::{AttachPlan, Change};
use crate::operate::attach::grant::ROLE_CHARACTERS;
use crate::operate::attach::kept;
use crate::operate::attach::leaving::Leaving;
use crate::operate::deployment::{DeploymentName, Unlisted};
use crate::operate::function::InvokeSettings;
use crate::operate::handler_setting::{
    ENVIRONMENT_BYTES, PARAMETER_BYTES, SettingPlace, TARGET_FUNCTIONS, environment_bytes, list_has,
    list_with, list_without,
};

/// Lambda's shortest `MaximumEventAgeInSeconds`: how long it keeps an event that it cannot deliver.
const EVENT_AGE: i32 = 60;

impl Attachment {
    pub(crate) fn no_changes(&self) -> AttachPlan {
        let (target, is_gone) = (self.target.clone(), self.is_gone);
        let (changes, notes) = (Vec::new(), Vec::new());
        AttachPlan { target, is_gone, changes, notes, left: None, price_of_now: None, question: None }
    }

    /// Plans the changes that attach the function. The order is safe: the handler can retry the function before the first
    /// failure reaches it. A function that another deployment retries is taken from it only if it `may_move`.
    pub(crate) fn attach(&self, may_move: bool) -> Result<AttachPlan, Failure> {
        self.can_be_retried()?;
        let mut plan = self.no_changes();
        let other = self.elsewhere.get(&self.target.qualifier);
        if let Some(other) = other.filter(|_| !may_move) {
            return Err(self.is_attached_to(other));
        }
        let invoke_settings = self.target.settings();
        let goal = InvokeSettings {
            retries: Some(0),
            event_age: Some(EVENT_AGE),
            on_failure: Some(self.deployment.retry_queue.arn.clone()),
            on_success: invoke_settings.on_success.clone(),
        };
        if invoke_settings != goal {
            self.may_set_settings()?;
        }
        self.keep_settings(&mut plan);
        // Step 1 of docs/attach.md.
        match self.may_send {
            Verdict::Allowed => {}
            Verdict::NotAllowed => {
                plan.changes.push(Change::Allow(self.sending()));
                plan.notes.extend(self.key.iter().flatten().map(|key| {
                    let (role, key) = (self.target.role(), &key.arn);
                    format!(
                        "role {role} can use key {key} only if the key's own policy allows that or, as by \
                         default, leaves it to IAM; see docs/encryption.md"
                    )
                }));
            }
            Verdict::Denied => return Err(denied(&self.target.role_arn, &self.denied.join(", "))),
        }
        self.allow_retrying(&mut plan.changes)?;
        if !self.target.recursion_allowed {
            plan.changes.push(Change::Recursion(true));
        }
        if let Some(topics) = self.losses.topics_to_set() {
            let alarm = LostAlarm {
                name: self.losses.alarm.clone(),
                description: alarms::description(&self.deployment, &self.target.name),
                topics: topics.clone(),
            };
            plan.changes.push(Change::Watch { alarm, exists: self.losses.ours });
        }
        if invoke_settings != goal {
            plan.changes.push(Change::Settings(goal));
        }
        if let Some(other) = other {
            plan.changes.push(Change::Mark(kept::MOVED));
            plan.notes.push(format!(
                "{other} retries the events that wait there once more; their next failures come here. When \
                 none is left there, run: {}",
                self.deployment.command_of(other, format!("detach {}", self.name()))
            ));
        }
        self.forget([kept::DETACHED.to_owned()], &mut plan);
        self.say_what_dead_letters(&mut plan);
        if let Some(stack) = self.target.stack().filter(|_| !plan.changes.is_empty()) {
            plan.notes.push(format!(
                "stack {stack} manages {}: make the same change in its template, or its next deployment may \
                 undo this one",
                self.target.name
            ));
        }
        self.say_room_left(&mut plan);
        self.say_what_counts(&mut plan);
        Ok(plan)
    }

    /// Names the function's own dead-letter queue, which Lambda uses beside the destination.
    fn say_what_dead_letters(&self, plan: &mut AttachPlan) {
        if let Some(queue) = self.target.dead_letter.as_ref().filter(|_| !plan.changes.is_empty()) {
            let name = &self.target.name;
            plan.notes.push(format!(
                "{name} also has its own dead-letter queue, {queue}, and Lambda sends every failed attempt \
                 there too; to remove it: {}",
                self.deployment.aws(format!(
                    "lambda update-function-configuration --function-name {name} --dead-letter-config TargetArn="
                ))
            ));
        }
    }

    /// Names the entry of `POLICIES` that counts for the function, unless nothing changes.
    fn say_what_counts(&self, plan: &mut AttachPlan) {
        let Some(policies) = self.deployment.policies().ok().filter(|_| !plan.changes.is_empty()) else {
            return;
        };
        let name = self.name();
        plan.notes.extend(match policies.entry_of(&self.target.invoked_arn()) {
            Some(entry) => Some(format!("the entry {:?} of POLICIES applies to {name}", entry.to_string())),
            None if policies.entries().is_empty() => None,
            None => Some(format!("no entry of POLICIES matches {name}, so it has the stack's policy")),
        });
    }

    /// Says how much of Lambda's limit the plan leaves, if it uses any of it up.
    fn say_room_left(&self, plan: &mut AttachPlan) {
        let is_listed = |change: &Change| matches!(change, Change::List(..));
        if plan.changes.iter().any(is_listed) {
            let left = ENVIRONMENT_BYTES.saturating_sub(self.environment_bytes());
            plan.notes.push(format!(
                "after this, {left} of the {ENVIRONMENT_BYTES} bytes for the handler's environment variables \
                 are free"
            ));
        }
    }

    /// The size of the handler's variables once the function is on its allow-list.
    fn environment_bytes(&self) -> usize {
        let mut variables = self.deployment.variables.clone();
        let list = list_with(self.deployment.allow_list(), &self.target.arn);
        variables.insert(TARGET_FUNCTIONS.variable.into(), list);
        environment_bytes(&variables)
    }

    /// As an operator names it.
    fn name(&self) -> String {
        self.target.named(self.target.qualifier.as_deref())
    }

    fn is_attached_to(&self, other: &DeploymentName) -> Failure {
        let (name, ours) = (self.name(), self.deployment.name());
        let detach = self.deployment.command_of(other, format!("detach {name}"));
        Failure::Undone(format!(
            "{name} is attached to {other}, not to {ours}; to move it here, run the command again with --move \
             ({other} still retries the events that wait there), or detach it first: `{detach}`"
        ))
    }

    fn can_be_retried(&self) -> Result<(), Failure> {
        if self.is_gone || self.target.is_qualifier_gone {
            return Err(Failure::CouldNot(format!("{} cannot be attached: {}", self.name(), self.missing())));
        }
        if let Some(why) = self.target.unfit {
            return Err(Failure::Refused(format!("{} {why}", self.target.name)));
        }
        if let Err(refused) = self.deployment.policies() {
            let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
            return Err(Failure::Undone(format!(
                "handler {} does not start, so it would retry nothing: {}; `{}` names the fix",
                self.deployment.handler,
                refused.join("; "),
                self.deployment.command("doctor --only CB020")
            )));
        }
        match self.key.as_ref().map_err(Failure::clone)?.as_ref().and_then(CustomerKey::problem) {
            None => Ok(()),
            Some(problem) => Err(Failure::Undone(format!(
                "the retry queue's key is unusable, so Lambda would silently drop the function's failed \
                 events: {problem}; `{}` names the fix",
                self.deployment.command("doctor --only CB035")
            ))),
        }
    }

    /// Keeps the earlier settings of a qualifier, unless they are Comeback's: those of this deployment or of another.
    fn keep_settings(&self, plan: &mut AttachPlan) {
        let target = &self.target;
        let mut tags = Vec::new();
        if !self.is_attached() && !self.elsewhere.contains_key(&target.qualifier) {
            tags.extend(kept::tags_of(target));
        }
        let is_first = self.attached().next().is_none() && self.elsewhere.is_empty();
        if !target.tags.contains_key(kept::RECURSION) && (is_first || !target.recursion_allowed) {
            tags.push((kept::RECURSION.to_owned(), kept::recursion(target.recursion_allowed).to_owned()));
        }
        tags.retain(|(key, value)| target.tags.get(key) != Some(value));
        let room = self.room_for_tags(plan);
        let new = tags.iter().filter(|(key, _)| !target.tags.contains_key(key)).count();
        let (fitting, rest): (Vec<_>, Vec<_>) =
            tags.into_iter().partition(|tag| new <= room && kept::fits(tag));
        plan.notes.extend(rest.iter().map(|(key, value)| {
            format!(
                "{key} = {value} does not fit in a tag of the function, so detach cannot restore it; \
                     write it down"
            )
        }));
        if !fitting.is_empty() {
            plan.changes.push(Change::Keep(fitting));
        }
    }

    /// How many more tags the function may have after the plan's changes.
    fn room_for_tags(&self, plan: &AttachPlan) -> usize {
        let kept = plan.changes.iter().filter_map(|change| match change {
            Change::Keep(tags) => Some(tags.iter().map(|(key, _)| key)),
            _ => None,
        });
        let there: BTreeSet<&String> =
            self.target.tags.keys().filter(|key| !key.starts_with("aws:")).chain(kept.flatten()).collect();
        kept::TAGS.saturating_sub(there.len())
    }

    /// Steps 2 and 3.
    fn allow_retrying(&self, changes: &mut Vec<Change>) -> Result<(), Failure> {
        let arn = &self.target.arn;
        let is_listed = self.deployment.allows(&self.target.invoked_arn());
        if is_listed && self.may_invoke.is_allowed() {
            return Ok(());
        }
        if self.may_invoke == Verdict::Denied {
            let who = format!("the handler's role {}", self.deployment.role());
            return Err(denied(&who, &format!("lambda:InvokeFunction on {arn}")));
        }
        match &self.place {
            Place::Parameter { stack, value } => {
                let list = list_with(value, arn);
                if list != *value {
                    changes.push(Change::List(SettingPlace::Stack(stack.clone()), true));
                    self.check_size(list.len())?;
                } else if self.may_invoke.is_allowed() {
                    // Somebody changed the handler by hand. Deploying the stack again would change nothing.
                    self.list_in_handler(changes)?;
                } else {
                    let doctor = self.deployment.command(format!("doctor {} --only CB109", self.name()));
                    return Err(Failure::Undone(format!(
                        "stack {stack} names {arn} in TargetFunctions, but its handler may not invoke it, \
                         because somebody changed its role by hand; `{doctor}` names the fix; then run this \
                         command again"
                    )));
                }
            }
            Place::Template { stack } => {
                return Err(Failure::Undone(format!(
                    "stack {stack} has no parameter TargetFunctions, so only its template can let the handler \
                     retry {arn}. In a CDK app, call `retries.attach(fn)` where {name} is defined, or \
                     `retries.attach(lambda.Function.fromFunctionArn(this, '{name}', '{arn}'))`; deploy it, \
                     then run this command again for what the app cannot do",
                    name = self.target.name
                )));
            }
            Place::Environment => {
                if !self.may_invoke.is_allowed() {
                    self.check_role()?;
                    changes.push(Change::Allow(self.invoking()));
                }
                if !is_listed {
                    self.list_in_handler(changes)?;
                }
            }
        }
        Ok(())
    }

    /// Fails if IAM would refuse one more inline policy of the handler's role.
    fn check_role(&self) -> Result<(), Failure> {
        let characters = self.invoke_characters;
        if characters <= ROLE_CHARACTERS {
            return Ok(());
        }
        Err(Failure::Undone(format!(
            "the handler's role {} has no room for {}: its inline policies would take {characters} of \
             {ROLE_CHARACTERS} characters; allow several functions by one pattern, such as shop-*",
            self.deployment.role(),
            self.target.arn
        )))
    }

    fn list_in_handler(&self, changes: &mut Vec<Change>) -> Result<(), Failure> {
        changes.push(Change::List(SettingPlace::Function(self.deployment.handler.clone()), true));
        self.check_size(0)
    }

    fn check_size(&self, parameter_bytes: usize) -> Result<(), Failure> {
        let target = &self.target;
        let environment_bytes = self.environment_bytes();
        if parameter_bytes <= PARAMETER_BYTES && environment_bytes <= ENVIRONMENT_BYTES {
            return Ok(());
        }
        Err(Failure::Undone(format!(
            "the allow-list has no room for {}: TargetFunctions would take {parameter_bytes} of \
             {PARAMETER_BYTES} bytes, the handler's environment {environment_bytes} of {ENVIRONMENT_BYTES}; \
             allow several functions by one pattern, such as {}",
            target.arn,
            target.arn.replace(&target.name, "shop-*")
        )))
    }

    fn may_set_settings(&self) -> Result<(), Failure> {
        match &self.owner {
            None => Ok(()),
            Some(stack) => Err(Failure::Undone(format!(
                "stack {stack} owns the asynchronous invocation settings of {} and would undo a change; set \
                 the failure destination there (EventInvokeConfig in SAM, retries.attach(fn) in the CDK) or \
                 remove it there, then deploy that stack",
                self.target.name
            ))),
        }
    }

    /// Plans the changes that detach the function. The destination is removed at once. What retries the function's events
    /// is removed when they have left the retry queue, or at once if they are dead-lettered.
    pub(crate) fn detach(&self, leaving: &Leaving) -> Result<AttachPlan, Failure> {
        if self.is_gone {
            return Ok(self.clear_away());
        }
        let mut plan = self.no_changes();
        let target = &self.target;
        let is_attached = self.is_attached();
        if target.is_qualifier_gone {
            plan.notes.push(self.missing());
        }
        if is_attached {
            self.may_set_settings()?;
            let (mut settings, all_known) = kept::settings(target);
            if target.is_qualifier_gone {
                // Lambda refuses settings of an alias that is gone.
                settings = InvokeSettings::default();
            } else if !all_known {
                plan.notes.push(
                    "the function's tags lack some of its previous settings; those are set to Lambda's \
                     defaults"
                        .into(),
                );
            }
            let account = &self.deployment.handler_arn.account;
            plan.question = kept::destination_outside(&settings, account).map(|arn| {
                format!(
                    "failures of {} will go to {arn}, which may be outside account {account}: continue?",
                    self.name()
                )
            });
            plan.changes.push(Change::Settings(settings));
        }
        if !self.elsewhere.contains_key(&target.qualifier) {
            self.forget(kept::keys(target.qualifier.as_deref()), &mut plan);
        }
        let others: Vec<String> = self.other_qualifiers().map(|it| target.named(it)).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            plan.notes.push(format!("{others} stays attached, so the handler keeps retrying the function"));
            return Ok(plan);
        }
        let is_traced = self.send_policy && leaving.sharing.is_empty()
            || self.losses.ours
            || self.invoke_policy
            || self.removable().is_some()
            || self.last_tags().iter().any(|key| target.tags.contains_key(*key));
        if !is_attached && !is_traced {
            let name = self.name();
            plan.notes.extend(self.elsewhere.get(&target.qualifier).map(|other| {
                format!(
                    "it is attached to {other}; to detach it there: `{}`",
                    self.deployment.command_of(other, format!("detach {name}"))
                )
            }));
            return Ok(plan);
        }
        match leaving.wait(self) {
            Some(wait) => {
                self.keep_time(&mut plan);
                plan.left = Some(format!(
                    "the allow-list entry, the permissions and the recursion setting stay for events that may \
                     still wait: {wait}"
                ));
                plan.price_of_now = Some(self.what_now_does());
            }
            None => self.finish(leaving, &mut plan),
        }
        Ok(plan)
    }

    /// What `--now` does to the events that still wait.
    fn what_now_does(&self) -> String {
        let (name, list) = (&self.target.name, self.deployment.allow_list());
        let mut after = self.deployment.clone();
        if self.removable().is_some() {
            after.variables.insert("TARGET_FUNCTIONS".into(), list_without(list, &self.target.arn));
        }
        let policies = after.policies().ok();
        match policies.and_then(|policies| Unlisted::of(&policies, &self.target.invoked_arn())) {
            Some(Unlisted::DeadLettered) => {
                format!("waiting events of {name} will be dead-lettered as target_not_allowed")
            }
            Some(Unlisted::Kept) => format!(
                "the allow-list will be empty, so waiting events of {name} are kept until another function is \
                 attached, then dead-lettered as target_not_allowed"
            ),
            None => {
                format!("waiting events of {name} are still retried, because it is still on the allow-list")
            }
        }
    }

    /// The tag that keeps since when the function's failures go elsewhere. Another deployment needs the usual one itself.
    pub(crate) fn mark(&self) -> &'static str {
        if self.elsewhere.is_empty() { kept::DETACHED } else { kept::MOVED }
    }

    /// The tags that go last, unless another deployment needs them.
    fn last_tags(&self) -> &'static [&'static str] {
        if self.elsewhere.is_empty() {
            &[kept::RECURSION, kept::DETACHED, kept::MOVED]
        } else {
            &[kept::MOVED]
        }
    }

    /// Keeps when the destination was removed.
    fn keep_time(&self, plan: &mut AttachPlan) {
        if self.is_attached() || kept::time(&self.target.tags, self.mark()).is_none() {
            plan.changes.push(Change::Mark(self.mark()));
        }
    }

    /// Removes everything else. The tags go last: they tell a repeated run that something is left to remove.
    fn finish(&self, leaving: &Leaving, plan: &mut AttachPlan) {
        let target = &self.target;
        if leaving.at_once {
            plan.notes.push(self.what_now_does());
        }
        match kept::recursion_allowed(target) {
            // The other deployment needs it.
            _ if !self.elsewhere.is_empty() => {}
            Some(allowed) if allowed != target.recursion_allowed => {
                plan.changes.push(Change::Recursion(allowed));
            }
            None if target.recursion_allowed => plan.notes.push(format!(
                "RecursiveLoop of {} stays Allow, because no tag has the previous setting; to change it: {}",
                target.name,
                self.deployment.aws(format!(
                    "lambda put-function-recursion-config --function-name {} --recursive-loop Terminate",
                    target.name
                ))
            )),
            _ => {}
        }
        self.disallow(plan);
        if self.send_policy && !leaving.sharing.is_empty() {
            plan.notes.push(format!(
                "role {} keeps its permission to send, because these functions use it: {}",
                target.role(),
                leaving.sharing.join(", ")
            ));
        } else if self.send_policy {
            if let Some(until) = leaving.under_way_until(self) {
                self.keep_time(plan);
                plan.left = Some(format!(
                    "role {} keeps its permission to send until {until}, for running invocations",
                    target.role()
                ));
                return;
            }
            plan.changes.push(Change::Withdraw(self.sending()));
            plan.notes.extend(self.key.as_ref().err().map(|failure| {
                let (role, policy) = (target.role(), self.sending().policy);
                format!(
                    "policy {policy} of role {role} may still allow the retry queue's key, which is \
                         unreadable: {failure}"
                )
            }));
        }
        if self.losses.ours {
            plan.changes.push(Change::Unwatch(self.losses.alarm.clone()));
        }
        self.forget(self.last_tags().iter().map(|key| (*key).to_owned()), plan);
    }

    /// Takes the function off the allow-list, and lets the handler no longer invoke it.
    fn disallow(&self, plan: &mut AttachPlan) {
        let arn = &self.target.arn;
        plan.changes.extend(self.removable().map(|place| Change::List(place, false)));
        if self.invoke_policy {
            plan.changes.push(Change::Withdraw(self.invoking()));
        }
        let is_listed = list_has(self.deployment.allow_list(), arn);
        match &self.place {
            Place::Template { stack } if is_listed => {
                plan.notes.push(format!("stack {stack} still allows {arn}; remove it from its template"));
            }
            Place::Parameter { stack, value } if is_listed && !list_has(value, arn) => {
                plan.notes.push(format!(
                    "the handler still allows {arn}, but parameter TargetFunctions of stack {stack} does not \
                     name it; remove it from the template, or deploy the stack again if somebody changed the \
                     handler by hand"
                ));
            }
            _ => {}
        }
    }

    /// Plans the removal of what is left of a deleted function. Nothing can be under way, and nothing can be restored.
    fn clear_away(&self) -> AttachPlan {
        let mut plan = self.no_changes();
        plan.notes.push(self.missing());
        self.disallow(&mut plan);
        if self.losses.ours {
            plan.changes.push(Change::Unwatch(self.losses.alarm.clone()));
        }
        if !plan.changes.is_empty() {
            plan.notes.push(format!(
                "its waiting events will be dead-lettered; `{}` sends them to another function",
                self.deployment.command("dead redrive --retarget ARN")
            ));
            let delete =
                format!("iam delete-role-policy --role-name ROLE --policy-name {}", self.sending().policy);
            plan.notes.push(format!(
                "its former role may still send to the retry queue; if no other function uses that role: {}",
                self.deployment.aws(delete)
            ));
        }
        plan
    }

    fn missing(&self) -> String {
        if self.is_gone {
            return format!("Lambda has no function {}", self.target.name);
        }
        format!("Lambda has no alias or version {}", self.name())
    }

    fn forget(&self, keys: impl IntoIterator<Item = String>, plan: &mut AttachPlan) {
        let tag = |key: String| self.target.tags.get(&key).cloned().map(|value| (key, value));
        let tags: Vec<_> = keys.into_iter().filter_map(tag).collect();
        if !tags.is_empty() {
            plan.changes.push(Change::Forget(tags));
        }
    }

    /// Where the allow-list has an entry for this function alone, unless only a template can remove it.
    fn removable(&self) -> Option<SettingPlace> {
        let list = match &self.place {
            Place::Parameter { value, .. } => value,
            _ => self.deployment.allow_list(),
        };
        self.place.editable(&self.deployment).filter(|_| list_has(list, &self.target.arn))
    }
}

fn denied(who: &str, what: &str) -> Failure {
    Failure::Undone(format!(
        "a policy denies {who} {what}; remove the denial, which no other policy can override"
    ))
}
