//! Plans the steps that attach a function.

use std::collections::BTreeSet;

use crate::attach::attachment::{Attachment, ListOwner};
use crate::attach::kept;
use crate::attach::step::{FunctionPlan, Step};
use crate::aws::{InvokeSettings, MOST_TAGS, ROLE_CHARACTERS};
use crate::command::CommandName;
use crate::deployment::DeploymentName;
use crate::deployment::queue::CustomerKey;
use crate::failure::{Failure, seen};
use crate::function::Target;
use crate::handler_setting::{
    ENVIRONMENT_BYTES, PARAMETER_BYTES, SettingPlace, TARGET_FUNCTIONS, environment_bytes, list_with,
};
use crate::rights::{in_words, missing};
use crate::text;
use crate::text::quoted;

/// `MaximumEventAgeInSeconds` of an attached function. 60 s is Lambda's minimum.
pub(crate) const EVENT_AGE: i32 = 60;

impl Attachment {
    /// Plans how to attach the function, so that the handler is ready before the first failed event arrives.
    ///
    /// Fails if the function is attached to another deployment, unless `may_move` is true.
    pub(crate) fn attach(&self, may_move: bool) -> Result<FunctionPlan, Failure> {
        self.can_be_retried()?;
        let mut plan = FunctionPlan::of(self);
        let other = self.other();
        if let Some(other) = other.filter(|_| !may_move) {
            return Err(self.is_attached_to(other));
        }
        let redirect = self.redirect();
        if redirect.is_some() {
            self.may_set_settings()?;
        }
        self.keep_settings(&mut plan);
        if let Some(allow) = self.allow_sending()? {
            plan.steps.push(allow);
            plan.notes.extend(self.key.iter().flatten().map(|key| {
                let (role, key) = (self.target.role(), &key.arn);
                text![format!(
                    "role {role} can use key {key} only if the key's own policy allows that or, as by default, \
                     leaves it to IAM; see docs/encryption.md"
                )]
            }));
        }
        let (allow, list) = (self.allow_invoking()?, self.list()?);
        plan.steps.extend(allow.filter(|allow| Some(allow) != list.as_ref()));
        plan.steps.extend(list);
        plan.steps.extend(self.allow_recursion());
        let alarm = self.losses.missing(&self.deployment, &self.target.name);
        plan.steps.extend(alarm.map(|alarm| Step::Watch { alarm, exists: self.losses.ours }));
        plan.steps.extend(redirect);
        if let Some(other) = other {
            plan.steps.push(Step::Mark(kept::MOVED));
            plan.note(text![
                format!(
                    "{other} retries the events that wait there once more; their next failures come here. When \
                     none is left there, run: "
                ),
                self.deployment.command_of(other, CommandName::Detach, [self.name()])
            ]);
        }
        plan.forget([kept::DETACHED.to_owned()]);
        if !plan.steps.is_empty() {
            self.note_consequences(&mut plan);
        }
        Ok(plan)
    }

    fn note_consequences(&self, plan: &mut FunctionPlan) {
        let name = &self.target.name;
        if let Some(queue) = &self.target.dead_letter {
            plan.note(text![
                format!(
                    "{name} also has its own dead-letter queue, {queue}, and Lambda sends every failed attempt \
                     there too; to remove it: "
                ),
                self.deployment.aws(format!(
                    "lambda update-function-configuration --function-name {name} --dead-letter-config TargetArn="
                ))
            ]);
        }
        if let Some(stack) = self.target.stack() {
            plan.note(format!(
                "stack {stack} manages {name}: make the same change in its template, or its next deployment may \
                 undo this one"
            ));
        }
        if plan.steps.iter().any(|step| matches!(step, Step::List(..))) {
            let left = ENVIRONMENT_BYTES.saturating_sub(self.environment_bytes());
            plan.note(format!(
                "after this, {left} of the {ENVIRONMENT_BYTES} bytes for the handler's environment variables \
                 are free"
            ));
        }
        let Ok(policies) = self.deployment.policies() else { return };
        let name = self.name();
        match policies.entry_of(&self.target.invoked_arn()) {
            Some(entry) => {
                plan.note(format!("the entry {:?} of POLICIES applies to {name}", entry.to_string()));
            }
            None if policies.entries().is_empty() => {}
            None => plan.note(format!("no entry of POLICIES matches {name}, so it has the stack's policy")),
        }
    }

    /// The total size, in bytes, of the handler's environment variables once the function is on the allow-list.
    fn environment_bytes(&self) -> usize {
        let mut variables = self.deployment.variables.clone();
        let list = list_with(self.deployment.allow_list(), &self.target.arn);
        variables.insert(TARGET_FUNCTIONS.into(), list);
        environment_bytes(&variables)
    }

    fn is_attached_to(&self, other: &DeploymentName) -> Failure {
        let (name, ours) = (self.name(), self.deployment.name());
        let detach = self.deployment.command_of(other, CommandName::Detach, [&name]);
        Failure::undone(text![
            format!(
                "{name} is attached to {other}, not to {ours}; to move it here, run the command again with --move \
                 ({other} still retries the events that wait there), or detach it first: "
            ),
            quoted(detach)
        ])
    }

    fn can_be_retried(&self) -> Result<(), Failure> {
        if self.is_gone || self.target.is_qualifier_gone {
            return Err(Failure::could_not(format!(
                "{} cannot be attached: {}",
                self.name(),
                self.missing()
            )));
        }
        if let Some(why) = self.target.unfit {
            return Err(Failure::refused(format!("{} {why}", self.target.name)));
        }
        if let Err(refused) = self.deployment.policies() {
            let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
            let (handler, refused) = (&self.deployment.handler, refused.join("; "));
            return Err(Failure::undone(text![
                format!("handler {handler} does not start, so it would retry nothing: {refused}; "),
                quoted(self.deployment.command(CommandName::Doctor, ["--only", "CB020"])),
                " names the fix"
            ]));
        }
        match seen(&self.key)?.as_ref().and_then(CustomerKey::problem) {
            None => Ok(()),
            Some(problem) => Err(Failure::undone(text![
                format!(
                    "the retry queue's key is unusable, so Lambda would silently drop the function's failed \
                     events: {problem}; "
                ),
                quoted(self.deployment.command(CommandName::Doctor, ["--only", "CB035"])),
                " names the fix"
            ])),
        }
    }

    /// Plans tags that store the function's own settings, so that `detach` can restore them. Settings that a
    /// Comeback deployment made are not stored.
    fn keep_settings(&self, plan: &mut FunctionPlan) {
        let target = &self.target;
        let mut tags = Vec::new();
        if !self.is_attached() && self.other().is_none() {
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
        for (key, value) in rest {
            plan.note(format!(
                "{key} = {value} does not fit in a tag of the function, so detach cannot restore it; write it down"
            ));
        }
        if !fitting.is_empty() {
            plan.steps.push(Step::Keep(fitting));
        }
    }

    /// The number of tags that the function can still take after the steps planned so far.
    fn room_for_tags(&self, plan: &FunctionPlan) -> usize {
        let kept = plan.steps.iter().filter_map(|step| match step {
            Step::Keep(tags) => Some(tags.iter().map(|(key, _)| key)),
            _ => None,
        });
        let there: BTreeSet<&String> =
            self.target.tags.keys().filter(|key| !key.starts_with("aws:")).chain(kept.flatten()).collect();
        MOST_TAGS.saturating_sub(there.len())
    }

    /// Step 1 of docs/attach.md: lets the function's role send to the retry queue.
    pub(crate) fn allow_sending(&self) -> Result<Option<Step>, Failure> {
        let rights = [&**seen(&self.send)?, seen(&self.use_key)?].concat();
        match missing(&rights) {
            Ok(missing) => Ok((!missing.is_empty()).then(|| Step::Allow(self.sending()))),
            Err(forbidden) => Err(denied(&self.target.role_arn, &in_words(&forbidden))),
        }
    }

    /// Step 2 of docs/attach.md: adds the function to the allow-list, unless it is on the list already.
    pub(crate) fn list(&self) -> Result<Option<Step>, Failure> {
        if self.deployment.allows(&self.target.invoked_arn()) {
            return Ok(None);
        }
        match &self.list_owner {
            ListOwner::Parameter { stack, value } if !self.is_entry_of(value) => {
                self.list_in_stack(stack, value)
            }
            ListOwner::Template { stack } => Err(self.is_left_to_template(stack)),
            // If the parameter names the function, somebody has removed it from the handler's list by hand. The next
            // deployment of the stack would not restore the entry, so the handler's list is edited instead.
            ListOwner::Parameter { .. } | ListOwner::Environment => {
                self.check_size(0)?;
                let place = SettingPlace::Function(self.deployment.handler.clone());
                Ok(Some(Step::List(place, true)))
            }
        }
    }

    /// Step 3 of docs/attach.md: lets the handler invoke the function. If a stack owns the handler, the step adds the
    /// function to the stack's parameter `TargetFunctions`, and the stack grants the permission.
    pub(crate) fn allow_invoking(&self) -> Result<Option<Step>, Failure> {
        let arn = &self.target.arn;
        match missing(seen(&self.invoke)?) {
            Ok(missing) if missing.is_empty() => return Ok(None),
            Ok(_) => {}
            Err(_) => {
                let who = format!("the handler's role {}", self.deployment.role());
                return Err(denied(&who, &format!("lambda:InvokeFunction on {arn}")));
            }
        }
        match &self.list_owner {
            ListOwner::Parameter { stack, value } if self.is_entry_of(value) => {
                let words = [&*self.name(), "--only", "CB109"];
                Err(Failure::undone(text![
                    format!(
                        "stack {stack} names {arn} in TargetFunctions, but its handler may not invoke it, because \
                         somebody changed its role by hand; "
                    ),
                    quoted(self.deployment.command(CommandName::Doctor, words)),
                    " names the fix; then run this command again"
                ]))
            }
            ListOwner::Parameter { stack, value } => self.list_in_stack(stack, value),
            ListOwner::Template { stack } => Err(self.is_left_to_template(stack)),
            ListOwner::Environment => {
                self.check_role()?;
                Ok(Some(Step::Allow(self.invoking())))
            }
        }
    }

    /// Step 4 of docs/attach.md: keeps Lambda's recursive loop detection from stopping the retries after 16 rounds.
    pub(crate) fn allow_recursion(&self) -> Option<Step> {
        (!self.target.recursion_allowed).then_some(Step::Recursion(true))
    }

    /// Step 5 of docs/attach.md: sends failed events to the retry queue and turns Lambda's own retries off.
    pub(crate) fn redirect(&self) -> Option<Step> {
        let before = self.target.settings();
        let goal = InvokeSettings {
            retries: Some(0),
            event_age: Some(EVENT_AGE),
            on_failure: Some(self.deployment.retry_queue.arn.clone()),
            on_success: before.on_success.clone(),
        };
        (goal != before).then_some(Step::Settings(goal))
    }

    /// Returns true if the allow-list `list` contains the function's ARN without a qualifier.
    fn is_entry_of(&self, list: &str) -> bool {
        list_with(list, &self.target.arn) == list
    }

    fn list_in_stack(&self, stack: &str, value: &str) -> Result<Option<Step>, Failure> {
        self.check_size(list_with(value, &self.target.arn).len())?;
        Ok(Some(Step::List(SettingPlace::Stack(stack.to_owned()), true)))
    }

    fn is_left_to_template(&self, stack: &str) -> Failure {
        let Target { name, arn, .. } = &self.target;
        Failure::undone(format!(
            "stack {stack} has no parameter TargetFunctions, so only its template can let the handler retry {arn}. \
             In a CDK app, call `retries.attach(fn)` where {name} is defined, or \
             `retries.attach(lambda.Function.fromFunctionArn(this, '{name}', '{arn}'))`; deploy it, then run this \
             command again for what the app cannot do"
        ))
    }

    /// Fails if the inline policies of the handler's role have no room for one more function.
    fn check_role(&self) -> Result<(), Failure> {
        let characters = self.invoke_characters;
        if characters <= ROLE_CHARACTERS {
            return Ok(());
        }
        Err(Failure::undone(format!(
            "the handler's role {} has no room for {}: its inline policies would take {characters} of \
             {ROLE_CHARACTERS} characters; allow several functions by one pattern, such as shop-*",
            self.deployment.role(),
            self.target.arn
        )))
    }

    fn check_size(&self, parameter_bytes: usize) -> Result<(), Failure> {
        let target = &self.target;
        let environment_bytes = self.environment_bytes();
        if parameter_bytes <= PARAMETER_BYTES && environment_bytes <= ENVIRONMENT_BYTES {
            return Ok(());
        }
        Err(Failure::undone(format!(
            "the allow-list has no room for {}: TargetFunctions would take {parameter_bytes} of \
             {PARAMETER_BYTES} bytes, the handler's environment {environment_bytes} of {ENVIRONMENT_BYTES}; \
             allow several functions by one pattern, such as {}",
            target.arn,
            target.arn.replace(&target.name, "shop-*")
        )))
    }

    pub(super) fn may_set_settings(&self) -> Result<(), Failure> {
        match &self.owner {
            None => Ok(()),
            Some(stack) => Err(Failure::undone(format!(
                "stack {stack} owns the asynchronous invocation settings of {} and would undo a change; set \
                 the failure destination there (EventInvokeConfig in SAM, retries.attach(fn) in the CDK) or \
                 remove it there, then deploy that stack",
                self.target.name
            ))),
        }
    }
}

fn denied(who: &str, what: &str) -> Failure {
    Failure::undone(format!(
        "a policy denies {who} {what}; remove the denial, which no other policy can override"
    ))
}
