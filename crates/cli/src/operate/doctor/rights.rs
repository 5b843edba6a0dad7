//! Checks of what the handler's role and the functions' roles may do.

use comeback_engine::Policy;
use serde_json::json;

use crate::account::Verdict;
use crate::operate::deployment::{Deployment, aws};
use crate::operate::doctor::diagnosis::{Diagnosis, Judged, Outcome, broken, ok, seen, skipped, warning};
use crate::operate::doctor::facts::Facts;
use crate::operate::doctor::facts::functions::Entrance;
use crate::operate::doctor::facts::queues::QueueSettings;
use crate::operate::doctor::facts::rights::{Right, Rights, SAMPLE_STREAM};
use crate::operate::doctor::fix;

pub(crate) fn take(facts: &Facts) -> Judged {
    let means = "nothing is retried: the handler cannot receive, hide or delete messages";
    let or_else = of_queue(facts.retry_queue.as_ref().ok());
    judged(
        &facts.deployment.place_flags,
        &Need { rights: &facts.rights.take, without: Outcome::Broken, means, or_else },
        |refused| allow(&facts.deployment.place_flags, "CB030", refused),
    )
}

pub(crate) fn send_again(facts: &Facts) -> Judged {
    let means = "past HIDE_UP_TO the handler hides every message instead, and SQS has room for only 120,000";
    let or_else = of_queue(facts.retry_queue.as_ref().ok());
    judged(
        &facts.deployment.place_flags,
        &Need { rights: &facts.rights.send_again, without: Outcome::Warning, means, or_else },
        |refused| allow(&facts.deployment.place_flags, "CB031", refused),
    )
}

pub(crate) fn dead_letter(facts: &Facts) -> Judged {
    let means = "dead-letters stay in the retry queue, and are deleted after 14 days";
    let or_else = of_queue(facts.dead_letter_queue.as_ref().ok());
    judged(
        &facts.deployment.place_flags,
        &Need { rights: &facts.rights.dead_letter, without: Outcome::Broken, means, or_else },
        |refused| allow(&facts.deployment.place_flags, "CB032", refused),
    )
}

pub(crate) fn log(facts: &Facts) -> Judged {
    let means = "nobody sees what the handler decides, and no event can be traced";
    let mut rights = facts.rights.log.clone();
    for right in rights.iter_mut().flatten() {
        right.resource = right.resource.replace(SAMPLE_STREAM, ":*");
    }
    judged(
        &facts.deployment.place_flags,
        &Need { rights: &rights, without: Outcome::Warning, means, or_else: None },
        |refused| allow(&facts.deployment.place_flags, "CB033", refused),
    )
}

pub(crate) fn read_pauses(facts: &Facts) -> Judged {
    if seen(&facts.rights.read_pauses)?.is_empty() {
        return Ok(skipped("the handler reads no pauses, because PAUSES is not set"));
    }
    let means = "the handler does not know what is paused, so it holds every event that is due";
    judged(
        &facts.deployment.place_flags,
        &Need { rights: &facts.rights.read_pauses, without: Outcome::Broken, means, or_else: None },
        |refused| allow(&facts.deployment.place_flags, "CB034", refused),
    )
}

pub(crate) fn use_keys(facts: &Facts) -> Judged {
    let Deployment { retry_queue, dead_letter_queue, .. } = &facts.deployment;
    for (queue, settings, means) in [
        (retry_queue, &facts.retry_queue, "Lambda silently drops failed events, and nothing is retried"),
        (
            dead_letter_queue,
            &facts.dead_letter_queue,
            "dead-letters stay in the retry queue, and are deleted after 14 days",
        ),
    ] {
        let Some(key) = seen(settings)?.key.clone()? else { continue };
        if let Some(problem) = key.problem() {
            let found = format!("{}: {problem}", queue.name());
            return Ok(broken(found, means, fix::key(&facts.deployment, queue, &key)));
        }
    }
    if seen(&facts.rights.use_keys)?.is_empty() {
        return Ok(ok("SQS manages the queues' keys"));
    }
    let means = "the handler can neither receive nor send messages that the key encrypts";
    let rights = &facts.rights.use_keys;
    judged(
        &facts.deployment.place_flags,
        &Need { rights, without: Outcome::Broken, means, or_else: Some(KEY_POLICY) },
        |refused| allow(&facts.deployment.place_flags, "CB035", refused),
    )
}

const DROPPED: &str = "Lambda drops its failed events silently";

pub(crate) fn function_sends(facts: &Facts, entrance: &Entrance) -> Judged {
    let fix = |_: &[&Right]| fix::attach(facts, &entrance.invoked_arn);
    judged(
        &facts.deployment.place_flags,
        &Need {
            rights: &entrance.send,
            without: Outcome::Broken,
            means: DROPPED,
            or_else: of_queue(facts.retry_queue.as_ref().ok()),
        },
        fix,
    )
}

pub(crate) fn function_uses_key(facts: &Facts, entrance: &Entrance) -> Judged {
    let key = seen(&facts.retry_queue)?.key.clone()?;
    if key.is_some_and(|key| key.problem().is_some()) {
        return Ok(skipped("the queue's key is unusable (CB035)"));
    }
    if seen(&entrance.use_key)?.is_empty() {
        return Ok(ok("SQS manages the queue's key"));
    }
    let fix = |_: &[&Right]| fix::attach(facts, &entrance.invoked_arn);
    judged(
        &facts.deployment.place_flags,
        &Need {
            rights: &entrance.use_key,
            without: Outcome::Broken,
            means: DROPPED,
            or_else: Some(KEY_POLICY),
        },
        fix,
    )
}

pub(crate) fn is_on_allow_list(facts: &Facts, entrance: &Entrance) -> Judged {
    let Ok(policies) = facts.deployment.policies() else {
        return Ok(skipped("the handler's settings are refused (CB020)"));
    };
    let policy = policies.stack();
    if policy.allows(&entrance.invoked_arn) {
        return Ok(ok("TARGET_FUNCTIONS allows it"));
    }
    let (found, means) = not_allowed(policy, &entrance.invoked_arn);
    Ok(broken(found, means, fix::attach(facts, &entrance.invoked_arn)))
}

/// That the allow-list lacks a function, and what the handler then does with its events.
pub(crate) fn not_allowed(policy: &Policy, arn: &str) -> (String, &'static str) {
    if policy.keeps_everything() {
        return ("TARGET_FUNCTIONS is empty".into(), "its failed events are kept, but not retried");
    }
    let means = "its failed events are dead-lettered at once, as target_not_allowed";
    (format!("TARGET_FUNCTIONS does not allow {arn}"), means)
}

pub(crate) fn handler_invokes(facts: &Facts, entrance: &Entrance) -> Judged {
    let means = "its events wait until the handler may invoke it";
    // The handler has one role for all functions, and a policy of the same name would replace another function's.
    let policy = format!("CB109-{}", entrance.name.replace(':', "."));
    judged(
        &facts.deployment.place_flags,
        &Need { rights: &entrance.invoke, without: Outcome::Broken, means, or_else: None },
        |refused| allow(&facts.deployment.place_flags, &policy, refused),
    )
}

const KEY_POLICY: &str = "the key's own policy";

/// A queue's own policy may allow what the role's do not.
pub(crate) fn of_queue(queue: Option<&QueueSettings>) -> Option<&'static str> {
    queue.is_some_and(|queue| queue.allows_by_itself).then_some("the queue's own policy")
}

/// What a role needs.
pub(crate) struct Need<'a> {
    pub(crate) rights: &'a Rights,
    /// The outcome without one of them, and its meaning.
    pub(crate) without: Outcome,
    pub(crate) means: &'a str,
    /// Something unread that may allow it too: then a missing right is only a warning.
    pub(crate) or_else: Option<&'a str>,
}

/// `fix` gives the command that allows what is missing.
pub(crate) fn judged(place_flags: &str, need: &Need<'_>, fix: impl FnOnce(&[&Right]) -> String) -> Judged {
    let Need { rights, without, means, or_else } = *need;
    let rights = seen(rights)?;
    let refused: Vec<&Right> = rights.iter().filter(|right| !right.verdict.is_allowed()).collect();
    let Some(Right { role, .. }) = refused.first() else { return Ok(ok(actions(rights).join(", "))) };
    let each = refused.iter().map(|right| format!("{} on {}", right.action, right.resource));
    let each = each.collect::<Vec<_>>().join(", ");
    if refused.iter().any(|right| right.verdict == Verdict::Denied) {
        let [inline, attached] = ["list-role-policies", "list-attached-role-policies"]
            .map(|list| aws(place_flags, format!("iam {list} --role-name {role}")));
        let fix = format!("find the policy and remove its Deny: {inline}; {attached}");
        let denied = broken(format!("a policy denies {each} to {role}"), means, fix);
        return Ok(Diagnosis { outcome: without, ..denied });
    }
    let (found, fix) = (format!("no policy of {role} allows {each}"), fix(&refused));
    Ok(match or_else {
        Some(other) => warning(format!("{found}; {other} may"), format!("if not: {means}"), fix),
        None => Diagnosis { outcome: without, ..broken(found, means, fix) },
    })
}

/// Adds a policy to the role that lacks these rights.
pub(crate) fn allow(place_flags: &str, policy: &str, refused: &[&Right]) -> String {
    let role = &refused[0].role;
    let mut resources: Vec<&str> = refused.iter().map(|right| &*right.resource).collect();
    resources.dedup();
    let statement =
        json!({"Effect": "Allow", "Action": actions(refused.iter().copied()), "Resource": resources});
    let document = json!({"Version": "2012-10-17", "Statement": [statement]});
    let flags = format!("--role-name {role} --policy-name comeback-{policy} --policy-document '{document}'");
    aws(place_flags, format!("iam put-role-policy {flags}"))
}

fn actions<'r>(rights: impl IntoIterator<Item = &'r Right>) -> Vec<&'static str> {
    let mut actions: Vec<_> = rights.into_iter().map(|right| right.action).collect();
    actions.dedup();
    actions
}

#[cfg(test)]
mod tests {
    use aws_sdk_kms::types::KeyState;

    use crate::account::{CustomerKey, Failure};
    use crate::operate::deployment::queue::Queue;
    use crate::operate::doctor::facts::rights::HandlerRights;
    use crate::operate::doctor::sample::{assert_found, healthy, right};

    use super::*;

    fn of_rights(verdicts: &[Verdict], or_else: Option<&'static str>) -> Judged {
        let of = |verdict: &Verdict| Right {
            verdict: *verdict,
            ..right("role", "sqs:SendMessage", "arn:aws:sqs:::retries")
        };
        let rights = Ok(verdicts.iter().map(of).collect());
        let fix = |refused: &[&Right]| allow("", "CB999", refused);
        super::judged(
            "",
            &Need { rights: &rights, without: Outcome::Broken, means: "events are lost", or_else },
            fix,
        )
    }

    #[test]
    fn all_must_be_allowed() {
        assert_found(of_rights(&[Verdict::Allowed; 2], None), Outcome::Ok, "sqs:SendMessage");
        let found = "no policy of role allows sqs:SendMessage on arn:aws:sqs:::retries";
        assert_found(of_rights(&[Verdict::Allowed, Verdict::NotAllowed], None), Outcome::Broken, found);
    }

    #[test]
    fn a_missing_right_is_given_by_a_policy() {
        let fix = of_rights(&[Verdict::NotAllowed], None).unwrap().fix.unwrap();
        assert!(fix.starts_with("aws iam put-role-policy --role-name role --policy-name comeback-CB999"));
        assert!(fix.contains(r#""Resource":["arn:aws:sqs:::retries"]"#), "{fix}");
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
        let fix = of_rights(&[Verdict::Denied], None).unwrap().fix.unwrap();
        assert!(fix.starts_with("find the policy and remove its Deny"), "{fix}");
    }

    type Check = fn(&Facts) -> Judged;
    type Of = fn(&mut HandlerRights) -> &mut Rights;

    const CHECKS: [(Check, Of, Outcome); 6] = [
        (take, |rights| &mut rights.take, Outcome::Broken),
        (send_again, |rights| &mut rights.send_again, Outcome::Warning),
        (dead_letter, |rights| &mut rights.dead_letter, Outcome::Broken),
        (log, |rights| &mut rights.log, Outcome::Warning),
        (read_pauses, |rights| &mut rights.read_pauses, Outcome::Broken),
        (use_keys, |rights| &mut rights.use_keys, Outcome::Warning),
    ];

    #[test]
    fn each_right_of_the_handler_is_needed() {
        for (check, of, without) in CHECKS {
            assert_found(check(&healthy()), Outcome::Ok, "");
            let mut facts = healthy();
            let rights = of(&mut facts.rights);
            refused(rights);
            let action = rights.as_ref().unwrap()[0].action;
            assert_found(check(&facts), without, action);
            *of(&mut facts.rights) = Err(Failure::CouldNot("simulate denied".into()));
            assert!(check(&facts).is_err());
        }
    }

    #[test]
    fn every_log_stream_is_allowed() {
        let mut facts = healthy();
        let sample = format!("arn:group{SAMPLE_STREAM}");
        let verdict = Verdict::NotAllowed;
        facts.rights.log = Ok(vec![Right { verdict, ..right("role", "logs:PutLogEvents", &sample) }]);
        assert_found(
            log(&facts),
            Outcome::Warning,
            "no policy of role allows logs:PutLogEvents on arn:group:*",
        );
        let fix = log(&facts).unwrap().fix.unwrap();
        assert!(fix.contains(r#""Resource":["arn:group:*"]"#), "{fix}");
    }

    #[test]
    fn a_key_that_nobody_can_use_is_broken_whatever_the_roles_may_do() {
        let cancel = "aws kms cancel-key-deletion --key-id arn:key; aws kms enable-key --key-id arn:key";
        let other = |queue: &str| {
            let url = Queue::sample(queue).url;
            format!(
                "aws sqs set-queue-attributes --queue-url {url} --attributes KmsMasterKeyId=ARN_OF_ANOTHER_KEY"
            )
        };
        for (state, found, fix) in [
            (
                Some(KeyState::Disabled),
                "retries: the key arn:key is Disabled",
                "aws kms enable-key --key-id arn:key",
            ),
            (Some(KeyState::PendingDeletion), "retries: the key arn:key is PendingDeletion", cancel),
            (None, "retries: there is no key arn:key", &other("retries")),
        ] {
            let mut facts = healthy();
            let key = CustomerKey { arn: "arn:key".into(), state };
            facts.retry_queue.as_mut().unwrap().key = Ok(Some(key.clone()));
            assert_found(use_keys(&facts), Outcome::Broken, found);
            assert_eq!(use_keys(&facts).unwrap().fix.as_deref(), Some(fix));
            assert_found(judged(function_uses_key, &facts), Outcome::Skipped, "CB035");
            facts.retry_queue.as_mut().unwrap().key = Ok(None);
            facts.dead_letter_queue.as_mut().unwrap().key = Ok(Some(key));
            assert_found(use_keys(&facts), Outcome::Broken, "dead: the");
        }
        let mut usable = healthy();
        let key = CustomerKey { arn: "arn:key".into(), state: Some(KeyState::Enabled) };
        usable.retry_queue.as_mut().unwrap().key = Ok(Some(key));
        assert_found(use_keys(&usable), Outcome::Ok, "kms:Decrypt");
    }

    #[test]
    fn a_queues_policy_may_allow_it_too() {
        let mut facts = healthy();
        refused(&mut facts.rights.take);
        facts.retry_queue.as_mut().unwrap().allows_by_itself = true;
        assert_found(take(&facts), Outcome::Warning, "the queue's own policy may");
    }

    #[test]
    fn what_is_not_used_needs_no_right() {
        let mut facts = healthy();
        facts.rights.read_pauses = Ok(Vec::new());
        assert_found(read_pauses(&facts), Outcome::Skipped, "PAUSES is not set");
        facts.rights.use_keys = Ok(Vec::new());
        assert_found(use_keys(&facts), Outcome::Ok, "SQS manages");
    }

    fn judged(check: fn(&Facts, &Entrance) -> Judged, facts: &Facts) -> Judged {
        check(facts, &facts.functions[0].entrances[0])
    }

    fn with(change: impl FnOnce(&mut Entrance)) -> Facts {
        let mut facts = healthy();
        change(&mut facts.functions[0].entrances[0]);
        facts
    }

    fn refused(rights: &mut Rights) {
        rights.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
    }

    #[test]
    fn its_role_may_send_to_the_retry_queue() {
        let cannot = with(|entrance| refused(&mut entrance.send));
        let found = "no policy of orders-role allows sqs:SendMessage";
        assert_found(judged(function_sends, &cannot), Outcome::Broken, found);
        assert_found(judged(function_sends, &healthy()), Outcome::Ok, "sqs:SendMessage");
    }

    #[test]
    fn no_fix_undoes_that_of_another_function() {
        let fix = |check: fn(&Facts, &Entrance) -> Judged, name: &str| {
            let cannot = with(|entrance| {
                entrance.name = name.into();
                refused(&mut entrance.send);
                refused(&mut entrance.invoke);
            });
            judged(check, &cannot).unwrap().fix.unwrap()
        };
        for (name, policy) in
            [("orders", "comeback-CB109-orders"), ("orders:live", "comeback-CB109-orders.live")]
        {
            assert!(fix(handler_invokes, name).contains(&format!(" --policy-name {policy} ")));
        }
        assert_eq!(
            fix(function_sends, "orders"),
            "comeback attach orders",
            "stacks share the role's policies"
        );
    }

    #[test]
    fn its_role_may_use_the_queues_key() {
        assert_found(judged(function_uses_key, &healthy()), Outcome::Ok, "SQS manages");
        let mut rights = Ok(vec![right("orders-role", "kms:GenerateDataKey", "arn:key")]);
        let may = with(|entrance| entrance.use_key = rights.clone());
        assert_found(judged(function_uses_key, &may), Outcome::Ok, "kms:GenerateDataKey");
        refused(&mut rights);
        let cannot = with(|entrance| entrance.use_key = rights);
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
        assert_found(set(&arn("ord*")), Outcome::Ok, "allows it");
        assert_found(set("orders"), Outcome::Skipped, "CB020");
    }

    #[test]
    fn the_handler_may_invoke_it() {
        let cannot = with(|entrance| refused(&mut entrance.invoke));
        assert_found(judged(handler_invokes, &cannot), Outcome::Broken, "allows lambda:InvokeFunction on");
        assert_found(judged(handler_invokes, &healthy()), Outcome::Ok, "lambda:InvokeFunction");
    }
}
