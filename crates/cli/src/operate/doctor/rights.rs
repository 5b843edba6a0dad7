//! Checks of what the handler's role and the functions' roles may do.

use crate::operate::account::{Failure, Verdict};
use crate::operate::doctor::diagnosis::{Diagnosis, Judged, Outcome, broken, ok, seen, skipped, with_remedy};
use crate::operate::doctor::facts::Facts;
use crate::operate::doctor::facts::functions::{Entrance, Function};
use crate::operate::doctor::facts::queues::{QueueSettings, Right};
use crate::operate::doctor::fix;
use crate::operate::doctor::functions::attach;

/// What a role must be allowed, and what it means if it is not.
pub(crate) struct Needed<'f> {
    pub(crate) check: &'static str,
    pub(crate) role: &'f str,
    pub(crate) rights: &'f [Right],
    pub(crate) without: Outcome,
    pub(crate) means: &'f str,
    /// Something unread that may allow it too: then a missing right is only a warning.
    pub(crate) or_else: Option<&'static str>,
}

impl<'f> Needed<'f> {
    /// What the handler's role must be allowed.
    fn of_handler(facts: &'f Facts, check: &'static str, rights: &'f [Right], means: &'f str) -> Self {
        let role = facts.deployment.role();
        Self { check, role, rights, without: Outcome::Broken, means, or_else: None }
    }

    pub(crate) fn judged(&self) -> Judged {
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

pub(crate) fn take(facts: &Facts) -> Judged {
    let needed = Needed::of_handler(
        facts,
        "CB030",
        &facts.rights.take,
        "nothing is retried: the handler cannot read its queue, or cannot hide and delete what it has read",
    );
    Needed { or_else: of_queue(&facts.retry_queue), ..needed }.judged()
}

pub(crate) fn send_again(facts: &Facts) -> Judged {
    let needed = Needed::of_handler(
        facts,
        "CB031",
        &facts.rights.send_again,
        "past HIDE_UP_TO every message is hidden instead, and SQS has room for 120,000",
    );
    Needed { without: Outcome::Warning, or_else: of_queue(&facts.retry_queue), ..needed }.judged()
}

pub(crate) fn dead_letter(facts: &Facts) -> Judged {
    let needed = Needed::of_handler(
        facts,
        "CB032",
        &facts.rights.dead_letter,
        "events that are given up stay in the retry queue, and are deleted after 14 days",
    );
    Needed { or_else: of_queue(&facts.dead_letter_queue), ..needed }.judged()
}

pub(crate) fn log(facts: &Facts) -> Judged {
    let needed = Needed::of_handler(
        facts,
        "CB033",
        &facts.rights.log,
        "nobody can see what the handler decides, and no event can be traced",
    );
    Needed { without: Outcome::Warning, ..needed }.judged()
}

pub(crate) fn read_pauses(facts: &Facts) -> Judged {
    if facts.rights.read_pauses.is_empty() {
        return Ok(skipped("the handler reads no pauses: PAUSES is not set"));
    }
    Needed::of_handler(
        facts,
        "CB034",
        &facts.rights.read_pauses,
        "the handler cannot know what is paused, and holds every event that is due",
    )
    .judged()
}

pub(crate) fn use_keys(facts: &Facts) -> Judged {
    let rights = seen(&facts.rights.use_keys)?;
    if rights.is_empty() {
        return Ok(ok("AWS manages the queues' keys"));
    }
    let needed = Needed::of_handler(
        facts,
        "CB035",
        rights,
        "the handler can read or send no message of a queue that the key encrypts",
    );
    Needed { or_else: Some("the key's own policy"), ..needed }.judged()
}

/// A queue's own policy may allow what the role's do not.
pub(crate) fn of_queue(queue: &Result<QueueSettings, Failure>) -> Option<&'static str> {
    queue.as_ref().is_ok_and(|queue| queue.allows_by_itself).then_some("the queue's own policy")
}

pub(crate) fn function_sends(facts: &Facts, _: &Function, entrance: &Entrance) -> Judged {
    Needed {
        check: "CB105",
        role: role(entrance)?,
        rights: seen(&entrance.send)?,
        without: Outcome::Broken,
        means: "Lambda drops its failed events silently",
        or_else: of_queue(&facts.retry_queue),
    }
    .judged()
}

pub(crate) fn function_uses_key(_: &Facts, _: &Function, entrance: &Entrance) -> Judged {
    let rights = seen(&entrance.use_key)?;
    if rights.is_empty() {
        return Ok(ok("AWS manages the queue's key"));
    }
    Needed {
        check: "CB106",
        role: role(entrance)?,
        rights,
        without: Outcome::Broken,
        means: "Lambda drops its failed events silently",
        or_else: Some("the key's own policy"),
    }
    .judged()
}

pub(crate) fn is_on_allow_list(facts: &Facts, function: &Function, entrance: &Entrance) -> Judged {
    let Ok(policy) = facts.deployment.policy() else {
        return Ok(skipped("the handler's settings are refused (CB020)"));
    };
    if policy.allows(&entrance.invoked_arn) {
        return Ok(ok("TARGET_FUNCTIONS has it"));
    }
    let (found, means) = if policy.keeps_everything() {
        ("TARGET_FUNCTIONS is empty".to_owned(), "its failed events are kept, and none is retried")
    } else {
        (
            format!("TARGET_FUNCTIONS does not allow {}", entrance.invoked_arn),
            "its failed events go to the dead-letter queue at once, as target_not_allowed",
        )
    };
    Ok(broken(found, means, attach(facts, function, entrance)))
}

pub(crate) fn handler_invokes(facts: &Facts, _: &Function, entrance: &Entrance) -> Judged {
    Needed::of_handler(facts, "CB109", &entrance.invoke, "its events wait until the handler may invoke it")
        .judged()
}

fn role(entrance: &Entrance) -> Result<&str, Failure> {
    let arn = seen(&entrance.role)?;
    Ok(arn.rsplit('/').next().unwrap_or(arn))
}

#[cfg(test)]
mod tests {
    use crate::operate::doctor::facts::queues::HandlerRights;
    use crate::operate::doctor::sample::{assert_found, healthy, right};

    use super::*;

    fn of_rights(verdicts: &[Verdict], or_else: Option<&'static str>) -> Judged {
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
        assert_found(of_rights(&[Verdict::Allowed; 2], None), Outcome::Ok, "sqs:SendMessage");
        let found = "no policy of role allows sqs:SendMessage on arn:aws:sqs:::retries";
        assert_found(of_rights(&[Verdict::Allowed, Verdict::NotAllowed], None), Outcome::Broken, found);
    }

    #[test]
    fn a_missing_right_is_given_by_a_policy() {
        let remedy = of_rights(&[Verdict::NotAllowed], None).unwrap().remedy.unwrap();
        assert!(
            remedy.fix.starts_with("aws iam put-role-policy --role-name role --policy-name comeback-CB999")
        );
        assert!(remedy.fix.contains(r#""Resource":["arn:aws:sqs:::retries"]"#), "{}", remedy.fix);
    }

    #[test]
    fn what_may_be_allowed_elsewhere_is_a_warning() {
        let other = Some("the key's own policy");
        assert_found(
            of_rights(&[Verdict::NotAllowed], other),
            Outcome::Warning,
            "; the key's own policy may",
        );
        assert_found(
            of_rights(&[Verdict::Denied], other),
            Outcome::Broken,
            "a policy denies sqs:SendMessage on",
        );
    }

    #[test]
    fn no_further_policy_can_give_what_one_denies() {
        let remedy = of_rights(&[Verdict::Denied], None).unwrap().remedy.unwrap();
        assert!(remedy.fix.starts_with("take the Deny out of the policy"), "{}", remedy.fix);
    }

    type Check = fn(&Facts) -> Judged;
    type Of = fn(&mut HandlerRights) -> &mut Vec<Right>;

    const CHECKS: [(Check, Of, Outcome); 6] = [
        (take, |rights| &mut rights.take, Outcome::Broken),
        (send_again, |rights| &mut rights.send_again, Outcome::Warning),
        (dead_letter, |rights| &mut rights.dead_letter, Outcome::Broken),
        (log, |rights| &mut rights.log, Outcome::Warning),
        (read_pauses, |rights| &mut rights.read_pauses, Outcome::Broken),
        (use_keys, |rights| rights.use_keys.as_mut().unwrap(), Outcome::Warning),
    ];

    #[test]
    fn each_right_of_the_handler_is_needed() {
        for (check, of, without) in CHECKS {
            assert_found(check(&healthy()), Outcome::Ok, "");
            let mut facts = healthy();
            let right = &mut of(&mut facts.rights)[0];
            right.answer = Ok(Verdict::NotAllowed);
            let action = right.action;
            assert_found(check(&facts), without, action);
            of(&mut facts.rights)[0].answer = Err(Failure::CouldNot("simulate denied".into()));
            assert!(check(&facts).is_err());
        }
    }

    #[test]
    fn a_queues_policy_may_allow_it_too() {
        let mut facts = healthy();
        facts.rights.take[0].answer = Ok(Verdict::NotAllowed);
        facts.retry_queue.as_mut().unwrap().allows_by_itself = true;
        assert_found(take(&facts), Outcome::Warning, "the queue's own policy may");
    }

    #[test]
    fn what_is_not_used_needs_no_right() {
        let mut facts = healthy();
        facts.rights.read_pauses.clear();
        assert_found(read_pauses(&facts), Outcome::Skipped, "PAUSES is not set");
        facts.rights.use_keys = Ok(Vec::new());
        assert_found(use_keys(&facts), Outcome::Ok, "AWS manages");
    }

    fn judged(check: fn(&Facts, &Function, &Entrance) -> Judged, facts: &Facts) -> Judged {
        let function = &facts.functions.all[0];
        check(facts, function, &function.entrances[0])
    }

    fn with(change: impl FnOnce(&mut Entrance)) -> Facts {
        let mut facts = healthy();
        change(&mut facts.functions.all[0].entrances[0]);
        facts
    }

    fn refused(rights: &mut [Right]) {
        rights[0].answer = Ok(Verdict::NotAllowed);
    }

    #[test]
    fn its_role_may_send_to_the_retry_queue() {
        let cannot = with(|entrance| refused(entrance.send.as_mut().unwrap()));
        let found = "no policy of orders-role allows sqs:SendMessage";
        assert_found(judged(function_sends, &cannot), Outcome::Broken, found);
        assert_found(judged(function_sends, &healthy()), Outcome::Ok, "sqs:SendMessage");
    }

    #[test]
    fn its_role_may_use_the_queues_key() {
        assert_found(judged(function_uses_key, &healthy()), Outcome::Ok, "AWS manages");
        let mut rights = vec![right("kms:GenerateDataKey", "arn:key")];
        let may = with(|entrance| entrance.use_key = Ok(rights.clone()));
        assert_found(judged(function_uses_key, &may), Outcome::Ok, "kms:GenerateDataKey");
        refused(&mut rights);
        let cannot = with(|entrance| entrance.use_key = Ok(rights));
        assert_found(judged(function_uses_key, &cannot), Outcome::Warning, "the key's own policy may");
    }

    #[test]
    fn it_is_on_the_allow_list() {
        let mut facts = healthy();
        let mut set = |list: &str| {
            facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
            judged(is_on_allow_list, &facts)
        };
        let arn = |rest: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{rest}");
        assert_found(set(&arn("payments")), Outcome::Broken, "does not allow arn:aws:lambda");
        assert_found(set(&arn("orders:live")), Outcome::Broken, "orders:$LATEST");
        assert_found(set(""), Outcome::Broken, "TARGET_FUNCTIONS is empty");
        assert_found(set(&arn("ord*")), Outcome::Ok, "has it");
        assert_found(set("orders"), Outcome::Skipped, "CB020");
    }

    #[test]
    fn the_handler_may_invoke_it() {
        let cannot = with(|entrance| refused(&mut entrance.invoke));
        assert_found(judged(handler_invokes, &cannot), Outcome::Broken, "allows lambda:InvokeFunction on");
        assert_found(judged(handler_invokes, &healthy()), Outcome::Ok, "lambda:InvokeFunction");
    }
}
