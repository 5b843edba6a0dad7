//! A function's own policy when it moves to another deployment.

use comeback_engine::{policies_named, policy_about};

use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::change::AttachPlan;
use crate::operate::deployment::DeploymentName;

impl Attachment {
    /// The settings of the policy that the function brings from the deployment that retried it, `other`; `None` if it brings
    /// none. There the entry stays, because events that wait there follow it, until `detach` takes it away.
    pub(crate) fn moved_policy(
        &self,
        other: &DeploymentName,
        has_settings: bool,
        plan: &mut AttachPlan,
    ) -> Option<String> {
        let entry = policy_about(&self.policies_elsewhere, &self.target.invoked_arn())?;
        let names = [&self.target.name, &self.target.arn];
        let is_own = names.into_iter().any(|name| policies_named(entry, name).next().is_some());
        let settings_of = |entry: &str| entry.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        let settings = settings_of(entry);
        let why_not = if has_settings {
            "the options of this command replace it".to_owned()
        } else if let Some(here) = self.entry() {
            if settings_of(here) == settings {
                return None;
            }
            format!("{} has {here:?} for it", self.deployment.name())
        } else if !is_own {
            "other functions may follow it too; give the function a policy of its own with the options of this command"
                .to_owned()
        } else if self.policies.is_none() || self.place.editable(&self.deployment).is_none() {
            format!("only the template of {} can give it one", self.deployment.name())
        } else {
            plan.notes.push(format!(
                "{other} keeps {entry:?} for the events still waiting there: detach it there, too"
            ));
            return Some(settings);
        };
        plan.notes.push(format!("its policy of {other}, {entry:?}, is not carried over: {why_not}"));
        None
    }
}
