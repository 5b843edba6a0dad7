//! Plans the steps that detach a function.

use crate::attach::attachment::{Attachment, ListOwner};
use crate::attach::kept;
use crate::attach::leaving::Leaving;
use crate::attach::step::{FunctionPlan, Step};
use crate::aws::InvokeSettings;
use crate::command::CommandName;
use crate::deployment::Unlisted;
use crate::failure::Failure;
use crate::handler_setting::{SettingPlace, list_has, list_without};
use crate::text;
use crate::text::quoted;

impl Attachment {
    /// Plans how to detach the function. Its earlier destination is restored first. Unless the operator used `--now`,
    /// everything else stays until the function's events have left the retry queue.
    pub(crate) fn detach(&self, leaving: &Leaving) -> Result<FunctionPlan, Failure> {
        if self.is_gone {
            return Ok(self.clear_away());
        }
        let mut plan = FunctionPlan::of(self);
        let target = &self.target;
        let is_attached = self.is_attached();
        if target.is_qualifier_gone {
            plan.note(self.missing());
        }
        if is_attached {
            self.may_set_settings()?;
            let (mut settings, all_known) = kept::settings(target);
            if target.is_qualifier_gone {
                // Lambda refuses new settings for a deleted alias, so the old settings are deleted instead.
                settings = InvokeSettings::default();
            } else if !all_known {
                plan.note(
                    "the function's tags lack some of its previous settings; those are set to Lambda's defaults",
                );
            }
            let account = &self.deployment.handler_arn.account;
            plan.warning = kept::destination_outside(&settings, account).map(|arn| {
                format!(
                    "failures of {} will go to {arn}, which may be outside account {account}",
                    self.name()
                )
            });
            plan.steps.push(Step::Settings(settings));
        }
        if self.other().is_none() {
            plan.forget(kept::keys(target.qualifier.as_deref()));
        }
        let others: Vec<String> = self.other_qualifiers().map(|it| target.named(it)).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            plan.note(format!("{others} stays attached, so the handler keeps retrying the function"));
            return Ok(plan);
        }
        let is_traced = self.send_policy && leaving.sharing.is_empty()
            || self.losses.ours
            || self.invoke_policy
            || self.removable().is_some()
            || self.last_tags().iter().any(|key| target.tags.contains_key(*key));
        if !is_attached && !is_traced {
            plan.notes.extend(self.other().map(|other| {
                let detach = self.deployment.command_of(other, CommandName::Detach, [self.name()]);
                text![format!("it is attached to {other}; to detach it there: "), quoted(detach)]
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
                plan.effect_of_now = Some(self.effect_of_now());
            }
            None => self.finish(leaving, &mut plan),
        }
        Ok(plan)
    }

    fn effect_of_now(&self) -> String {
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

    /// The key of the tag that records when this deployment stopped receiving the function's failures: normally
    /// `kept::DETACHED`. If another deployment retries the function's events, that tag belongs to the other
    /// deployment, and the key is `kept::MOVED`.
    pub(crate) fn mark(&self) -> &'static str {
        if self.elsewhere.is_empty() { kept::DETACHED } else { kept::MOVED }
    }

    /// The keys of the tags to remove last. Tags that another deployment needs are left out.
    fn last_tags(&self) -> &'static [&'static str] {
        if self.elsewhere.is_empty() {
            &[kept::RECURSION, kept::DETACHED, kept::MOVED]
        } else {
            &[kept::MOVED]
        }
    }

    /// Plans a tag with the time of the detachment, unless an earlier run of `detach` has set it.
    fn keep_time(&self, plan: &mut FunctionPlan) {
        if self.is_attached() || kept::time(&self.target.tags, self.mark()).is_none() {
            plan.steps.push(Step::Mark(self.mark()));
        }
    }

    /// Plans the steps that undo everything except the change of destination. Tags are removed last, so that a later
    /// run still has them if this run fails midway.
    fn finish(&self, leaving: &Leaving, plan: &mut FunctionPlan) {
        let target = &self.target;
        if leaving.at_once {
            plan.note(self.effect_of_now());
        }
        match kept::recursion_allowed(target) {
            // Another deployment retries the function and needs the recursion setting.
            _ if !self.elsewhere.is_empty() => {}
            Some(allowed) if allowed != target.recursion_allowed => {
                plan.steps.push(Step::Recursion(allowed));
            }
            None if target.recursion_allowed => plan.note(text![
                format!(
                    "RecursiveLoop of {} stays Allow, because no tag has the previous setting; to change it: ",
                    target.name
                ),
                self.deployment.aws(format!(
                    "lambda put-function-recursion-config --function-name {} --recursive-loop Terminate",
                    target.name
                ))
            ]),
            _ => {}
        }
        self.disallow(plan);
        if self.send_policy && !leaving.sharing.is_empty() {
            plan.note(format!(
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
            plan.steps.push(Step::Withdraw(self.sending()));
            if let Err(failure) = &self.key {
                let (role, policy) = (target.role(), self.sending().policy);
                plan.note(format!(
                    "policy {policy} of role {role} may still allow the retry queue's key, which is unreadable: \
                     {failure}"
                ));
            }
        }
        if self.losses.ours {
            plan.steps.push(Step::Unwatch(self.losses.alarm.clone()));
        }
        plan.forget(self.last_tags().iter().map(|key| (*key).to_owned()));
    }

    fn disallow(&self, plan: &mut FunctionPlan) {
        let arn = &self.target.arn;
        plan.steps.extend(self.removable().map(|place| Step::List(place, false)));
        if self.invoke_policy {
            plan.steps.push(Step::Withdraw(self.invoking()));
        }
        let is_listed = list_has(self.deployment.allow_list(), arn);
        match &self.list_owner {
            ListOwner::Template { stack } if is_listed => {
                plan.note(format!("stack {stack} still allows {arn}; remove it from its template"));
            }
            ListOwner::Parameter { stack, value } if is_listed && !list_has(value, arn) => {
                plan.note(format!(
                    "the handler still allows {arn}, but parameter TargetFunctions of stack {stack} does not \
                     name it; remove it from the template, or deploy the stack again if somebody changed the \
                     handler by hand"
                ));
            }
            _ => {}
        }
    }

    /// Plans the removal of what a deleted function left in the deployment.
    fn clear_away(&self) -> FunctionPlan {
        let mut plan = FunctionPlan::of(self);
        plan.note(self.missing());
        self.disallow(&mut plan);
        if self.losses.ours {
            plan.steps.push(Step::Unwatch(self.losses.alarm.clone()));
        }
        if !plan.steps.is_empty() {
            let redrive = self.deployment.command(CommandName::Redrive, ["--retarget", "ARN"]);
            plan.note(text![
                "its waiting events will be dead-lettered; ",
                quoted(redrive),
                " sends them to another function"
            ]);
            let delete =
                format!("iam delete-role-policy --role-name ROLE --policy-name {}", self.sending().policy);
            plan.note(text![
                "its former role may still send to the retry queue; if no other function uses that role: ",
                self.deployment.aws(delete)
            ]);
        }
        plan
    }

    /// The place where `detach` can remove the function's own entry from the allow-list; `None` if there is no such
    /// place.
    fn removable(&self) -> Option<SettingPlace> {
        let deployment = &self.deployment;
        let (list, place) = match &self.list_owner {
            ListOwner::Parameter { stack, value } => (&**value, SettingPlace::Stack(stack.clone())),
            ListOwner::Environment => {
                (deployment.allow_list(), SettingPlace::Function(deployment.handler.clone()))
            }
            ListOwner::Template { .. } => return None,
        };
        list_has(list, &self.target.arn).then_some(place)
    }
}
