use crate::Failure;
use crate::attach::allow_list;
use crate::attach::change::{Change, ListPlace};
use crate::attach::facts::{Attachment, Place, invoke_statements};
use crate::attach::kept;
use crate::attach::leaving::Leaving;
use crate::attach::plan::AttachPlan;

impl Attachment {
    /// What it takes to detach the function. The destination goes first. What the function's waiting events need goes
    /// once they have left the retry queue, or at once if they may be given up.
    ///
    /// # Errors
    ///
    /// What stands in the way, and what to do about it. Nothing may be changed then.
    pub fn detach(&self, leaving: &Leaving) -> Result<AttachPlan, Failure> {
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
    #[must_use]
    pub fn has_traces(&self) -> bool {
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
                "the settings of before are not all in the function's tags: the others become Lambda's defaults".into(),
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

    /// The tags go last: as long as they are there, a repeated run knows that there is something to finish.
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
                "recursive loops of {0} stay allowed, for no tag says what was there before; if that is not meant: aws \
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
