use crate::Verdict;
use crate::doctor::diagnosis::{Diagnosis, Judged, Outcome, ok, with_remedy};
use crate::doctor::facts::rights::Right;
use crate::doctor::fix;

/// What a role must be allowed, and what it means if it is not.
pub(super) struct Needed<'f> {
    pub(super) check: &'static str,
    pub(super) role: &'f str,
    pub(super) rights: &'f [Right],
    /// The outcome if no policy of the role allows it.
    pub(super) without: Outcome,
    pub(super) means: &'f str,
    /// What may allow it as well, and is not looked at; then nothing is broken for sure.
    pub(super) or_else: Option<&'static str>,
}

impl Needed<'_> {
    pub(super) fn judged(&self) -> Judged {
        let mut refused = Vec::new();
        let mut is_denied = false;
        for right in self.rights {
            let verdict = right.answer.clone()?;
            is_denied |= verdict == Verdict::Denied;
            if !verdict.is_allowed() {
                refused.push(right);
            }
        }
        Ok(if refused.is_empty() {
            ok(actions(self.rights.iter()).join(", "))
        } else if is_denied {
            let found = format!("a policy denies {} to {}", said(&refused), self.role);
            let fix = format!(
                "take the Deny out of the policy: aws iam list-role-policies --role-name {role}; \
                 aws iam list-attached-role-policies --role-name {role}",
                role = self.role
            );
            with_remedy(self.without, found, self.means, fix)
        } else {
            self.not_allowed(&refused)
        })
    }

    fn not_allowed(&self, refused: &[&Right]) -> Diagnosis {
        let mut resources: Vec<&str> = refused.iter().map(|right| right.resource.as_str()).collect();
        resources.dedup();
        let fix = fix::permission(self.role, self.check, &actions(refused.iter().copied()), &resources);
        let found = format!("no policy of {} allows {}", self.role, said(refused));
        match self.or_else {
            Some(other) => {
                let found = format!("{found}; {other} may");
                with_remedy(Outcome::Warning, found, format!("if it does not: {}", self.means), fix)
            }
            None => with_remedy(self.without, found, self.means, fix),
        }
    }
}

fn said(refused: &[&Right]) -> String {
    let each: Vec<String> =
        refused.iter().map(|right| format!("{} on {}", right.action, right.resource)).collect();
    each.join(", ")
}

fn actions<'r>(rights: impl Iterator<Item = &'r Right>) -> Vec<&'static str> {
    let mut actions: Vec<&'static str> = rights.map(|right| right.action).collect();
    actions.dedup();
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample::assert_found;

    fn judged(verdicts: &[Verdict], or_else: Option<&'static str>) -> Judged {
        let right = |verdict: &Verdict| Right {
            action: "sqs:SendMessage",
            resource: "arn:aws:sqs:::retries".into(),
            answer: Ok(*verdict),
        };
        let rights: Vec<Right> = verdicts.iter().map(right).collect();
        let means = "events are lost";
        let check = "CB999";
        Needed { check, role: "role", rights: &rights, without: Outcome::Broken, means, or_else }.judged()
    }

    #[test]
    fn all_must_be_allowed() {
        assert_found(judged(&[Verdict::Allowed; 2], None), Outcome::Ok, "sqs:SendMessage");
        let found = "no policy of role allows sqs:SendMessage on arn:aws:sqs:::retries";
        assert_found(judged(&[Verdict::Allowed, Verdict::NotAllowed], None), Outcome::Broken, found);
    }

    #[test]
    fn a_missing_right_is_given_by_a_policy() {
        let remedy = judged(&[Verdict::NotAllowed], None).unwrap().remedy.unwrap();
        assert!(
            remedy.fix.starts_with("aws iam put-role-policy --role-name role --policy-name comeback-CB999")
        );
        assert!(remedy.fix.contains(r#""Resource":["arn:aws:sqs:::retries"]"#), "{}", remedy.fix);
    }

    #[test]
    fn what_may_be_allowed_elsewhere_is_a_warning() {
        let other = Some("the key's own policy");
        assert_found(judged(&[Verdict::NotAllowed], other), Outcome::Warning, "; the key's own policy may");
        assert_found(
            judged(&[Verdict::Denied], other),
            Outcome::Broken,
            "a policy denies sqs:SendMessage on",
        );
    }

    #[test]
    fn no_further_policy_can_give_what_one_denies() {
        let remedy = judged(&[Verdict::Denied], None).unwrap().remedy.unwrap();
        assert!(remedy.fix.starts_with("take the Deny out of the policy"), "{}", remedy.fix);
    }
}
