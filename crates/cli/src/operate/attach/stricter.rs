//! What a function's new policy does to its events that wait.

use comeback_engine::{Policies, Policy};

use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::change::AttachPlan;
use crate::text::durations;

impl Attachment {
    /// Says which waiting events a change of `POLICIES` dead-letters, if it does.
    pub(crate) fn say_what_is_given_up(&self, before: &Policies, after: &Policies, plan: &mut AttachPlan) {
        let arn = self.target.invoked_arn();
        let given_up = given_up(before.of(&arn), after.of(&arn));
        if !given_up.is_empty() && self.deployment.allows(&arn) {
            plan.notes.push(format!(
                "at its next look, the handler dead-letters each waiting event of {} that {}",
                self.target.named(self.target.qualifier.as_deref()),
                given_up.join(", or ")
            ));
        }
    }
}

/// The events that one policy retries, and the next one dead-letters.
fn given_up(before: &Policy, after: &Policy) -> Vec<String> {
    let mut given_up = Vec::new();
    if after.max_age() < before.max_age() {
        given_up.push(format!(
            "is older than MAX_AGE ({} → {}; a younger one gets a last retry before it)",
            durations::text(before.max_age()),
            durations::text(after.max_age())
        ));
    }
    if after.max_retries() < before.max_retries() {
        given_up.push(format!(
            "was retried MAX_RETRIES times or more ({} → {})",
            before.max_retries(),
            after.max_retries()
        ));
    }
    let known: Vec<String> = before.non_retryable_errors().collect();
    let new: Vec<String> = after.non_retryable_errors().filter(|glob| !known.contains(glob)).collect();
    if !new.is_empty() {
        given_up.push(format!("failed with {} (new in NON_RETRYABLE_ERRORS)", new.join(" or ")));
    }
    if after.directives() && !before.directives() {
        given_up.push("failed with NonRetryable (DIRECTIVES was off)".into());
    }
    given_up
}

#[cfg(test)]
mod tests {
    use crate::operate::attach::model::{all, attachment, set_policies};

    #[test]
    fn each_way_to_be_given_up_by_a_stricter_policy_is_said() {
        let mut it = all(&attachment(), &attachment().attach(false, None).unwrap());
        set_policies(&mut it, "* MAX_AGE=3d NON_RETRYABLE_ERRORS=A DIRECTIVES=off".into());
        let said = |settings: &str| it.attach(false, Some(settings)).unwrap().notes[0].clone();
        assert_eq!(
            said("MAX_AGE=2h MAX_RETRIES=3 NON_RETRYABLE_ERRORS=A,B*,C"),
            "at its next look, the handler dead-letters each waiting event of orders that is older than MAX_AGE (3d → 2h; a \
             younger one gets a last retry before it), or was retried MAX_RETRIES times or more (185 → 3), or failed with B* or C (new \
             in NON_RETRYABLE_ERRORS), or failed with NonRetryable (DIRECTIVES was off)"
        );
        let retries = said("MAX_AGE=3d MAX_RETRIES=184 DIRECTIVES=off");
        assert!(
            retries.ends_with("of orders that was retried MAX_RETRIES times or more (185 → 184)"),
            "{retries}"
        );
        let errors = said("MAX_AGE=4d NON_RETRYABLE_ERRORS=B DIRECTIVES=off");
        assert!(errors.ends_with("of orders that failed with B (new in NON_RETRYABLE_ERRORS)"), "{errors}");
        let milder = it.attach(false, Some("MAX_AGE=4d MAX_RETRIES=186 DIRECTIVES=off")).unwrap().notes;
        assert_eq!(milder.len(), 1, "{milder:?}");
    }
}
