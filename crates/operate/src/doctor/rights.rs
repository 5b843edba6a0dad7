//! Checks that the roles of the handler and of the functions have the permissions that they need.

use comeback_engine::Policies;
use serde_json::json;

use crate::attach::attachment::Attachment;
use crate::deployment::{Deployment, Unlisted, aws};
use crate::doctor::facts::Facts;
use crate::doctor::facts::queues::QueueSettings;
use crate::doctor::facts::rights::{OF_HANDLER, Resource, SAMPLE_STREAM};
use crate::doctor::fix;
use crate::doctor::judgement::{Judged, Judgement, broken, ok, skipped, warning};
use crate::failure::{Failure, seen};
use crate::rights::{Right, Rights, in_words, missing};
use crate::text;
use crate::text::{Text, shell};

/// Judges whether the handler's role has the permissions that a check, such as `CB030`, requires.
pub(crate) fn of_handler(facts: &Facts, check: &str) -> Judged {
    let need = OF_HANDLER.iter().find(|need| need.check == check).expect("BUG: the table has a row for it");
    let mut rights = facts.rights[need.check].clone();
    let or_else = match need.on {
        Resource::RetryQueue => of_queue(facts.retry_queue.as_ref().ok()),
        Resource::DeadLetterQueue => of_queue(facts.dead_letter_queue.as_ref().ok()),
        Resource::Keys => {
            if let Some(unusable) = unusable_key(facts)? {
                return Ok(unusable);
            }
            if seen(&rights)?.is_empty() {
                return Ok(ok("SQS manages the queues' keys"));
            }
            Some(KEY_POLICY)
        }
        Resource::Pauses => {
            if seen(&rights)?.is_empty() {
                return Ok(skipped("the handler reads no pauses, because PAUSES is not set"));
            }
            None
        }
        Resource::LogStreams => {
            for right in rights.iter_mut().flatten() {
                right.resource = right.resource.replace(SAMPLE_STREAM, ":*");
            }
            None
        }
    };
    let flags = &facts.deployment.place_flags;
    let judgement = judged(flags, need.means, &rights, or_else, |missing| allow(flags, need.check, missing))?;
    Ok(Judgement { outcome: judgement.outcome.min(need.without), ..judgement })
}

/// Judges the first queue whose key is unusable, if any.
fn unusable_key(facts: &Facts) -> Result<Option<Judgement>, Failure> {
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
            return Ok(Some(broken(found, means, fix::key(&facts.deployment, queue, &key))));
        }
    }
    Ok(None)
}

const DROPPED: &str = "Lambda drops its failed events silently";

/// Checks that the function's role may send to the retry queue. The check judges the permissions instead of showing
/// `attach`'s plan: `attach` cannot lift a denial, and does not know whether the queue's own policy allows the sending.
pub(crate) fn function_sends(facts: &Facts, attachment: &Attachment) -> Judged {
    let or_else = of_queue(facts.retry_queue.as_ref().ok());
    let flags = &facts.deployment.place_flags;
    judged(flags, DROPPED, &attachment.send, or_else, |_| fix::attach(attachment))
}

/// Checks that the function's role may use the retry queue's key. The check judges the permissions instead of showing
/// `attach`'s plan: `attach` cannot lift a denial, and does not know whether the key's own policy allows the use.
pub(crate) fn function_uses_key(facts: &Facts, attachment: &Attachment) -> Judged {
    if seen(&attachment.key)?.as_ref().is_some_and(|key| key.problem().is_some()) {
        return Ok(skipped("the queue's key is unusable (CB035)"));
    }
    if seen(&attachment.use_key)?.is_empty() {
        return Ok(ok("SQS manages the queue's key"));
    }
    let flags = &facts.deployment.place_flags;
    judged(flags, DROPPED, &attachment.use_key, Some(KEY_POLICY), |_| fix::attach(attachment))
}

/// Checks that the handler may invoke the function. If the function is not attached, the fix is a separate policy,
/// because `attach` would also attach the function. The same applies if `attach` might fail because a stack owns the
/// handler's role: its error then refers to this check, which therefore cannot just show `attach`'s plan.
pub(crate) fn handler_invokes(facts: &Facts, attachment: &Attachment) -> Judged {
    let flags = &facts.deployment.place_flags;
    let means = "its events wait until the handler may invoke it";
    judged(flags, means, &attachment.invoke, None, |missing| match attachment.allow_invoking() {
        Ok(Some(_)) if attachment.is_attached() && facts.parameters.is_ok() => fix::attach(attachment),
        // The handler has one role for all functions, so the policy's name includes the function's name.
        _ => allow(flags, &format!("CB109-{}", attachment.name().replace(':', ".")), missing),
    })
}

pub(crate) fn is_on_allow_list(facts: &Facts, attachment: &Attachment) -> Judged {
    let Ok(policies) = facts.deployment.policies() else {
        return Ok(skipped("the handler's settings are refused (CB020)"));
    };
    let fix = match attachment.list() {
        Ok(None) => return Ok(ok("TARGET_FUNCTIONS allows it")),
        Ok(Some(_)) => fix::attach(attachment),
        Err(refusal) => refusal.text(),
    };
    let (found, means) = not_allowed(&policies, &attachment.target.invoked_arn());
    Ok(broken(found, means, fix))
}

/// The problem of a function that the allow-list does not match, and its consequence.
pub(crate) fn not_allowed(policies: &Policies, arn: &str) -> (String, &'static str) {
    match Unlisted::of(policies, arn) {
        Some(Unlisted::Kept) => {
            ("TARGET_FUNCTIONS is empty".into(), "its failed events are kept, but not retried")
        }
        Some(Unlisted::DeadLettered) | None => (
            format!("TARGET_FUNCTIONS does not allow {arn}"),
            "its failed events are dead-lettered at once, as target_not_allowed",
        ),
    }
}

const KEY_POLICY: &str = "the key's own policy";

/// Returns "the queue's own policy" if that policy has an Allow statement. Such a policy may grant permissions that
/// the role's policies do not grant.
pub(crate) fn of_queue(queue: Option<&QueueSettings>) -> Option<&'static str> {
    queue.is_some_and(|queue| queue.allows_by_itself).then_some("the queue's own policy")
}

/// Judges the permissions that a role needs. If `or_else` names a policy that IAM's simulator does not read, a
/// missing permission is only a warning.
pub(crate) fn judged(
    place_flags: &str,
    means: &str,
    rights: &Rights,
    or_else: Option<&str>,
    fix: impl FnOnce(&[&Right]) -> Text,
) -> Judged {
    let rights = seen(rights)?;
    Ok(match missing(rights) {
        Ok(missing) if missing.is_empty() => ok(actions(rights).join(", ")),
        Ok(missing) => {
            let found = format!("no policy of {} allows {}", missing[0].role, in_words(&missing));
            match or_else {
                Some(other) => {
                    warning(format!("{found}; {other} may"), format!("if not: {means}"), fix(&missing))
                }
                None => broken(found, means, fix(&missing)),
            }
        }
        Err(denied) => {
            let role = &denied[0].role;
            let [inline, attached] = ["list-role-policies", "list-attached-role-policies"]
                .map(|list| shell(aws(place_flags, format!("iam {list} --role-name {role}"))));
            let fix = text!["find the policy and remove its Deny: ", inline, " or ", attached];
            broken(format!("a policy denies {} to {role}", in_words(&denied)), means, fix)
        }
    })
}

/// The command that adds a policy with the missing permissions to the role.
pub(crate) fn allow(place_flags: &str, policy: &str, refused: &[&Right]) -> Text {
    let role = &refused[0].role;
    let mut resources: Vec<&str> = refused.iter().map(|right| &*right.resource).collect();
    resources.dedup();
    let statement =
        json!({"Effect": "Allow", "Action": actions(refused.iter().copied()), "Resource": resources});
    let document = json!({"Version": "2012-10-17", "Statement": [statement]});
    let flags = format!("--role-name {role} --policy-name comeback-{policy} --policy-document '{document}'");
    shell(aws(place_flags, format!("iam put-role-policy {flags}")))
}

fn actions<'r>(rights: impl IntoIterator<Item = &'r Right>) -> Vec<&'static str> {
    let mut actions: Vec<_> = rights.into_iter().map(|right| right.action).collect();
    actions.dedup();
    actions
}

#[cfg(test)]
mod tests {

    use crate::attach::attachment::ListOwner;
    use crate::aws::Verdict;
    use crate::deployment::queue::CustomerKey;
    use crate::deployment::queue::Queue;
    use crate::doctor::judgement::CheckOutcome;
    use crate::doctor::tests::{assert_found, healthy, right};
    use crate::failure::Failure;

    use super::*;

    fn of_rights(verdicts: &[Verdict], or_else: Option<&'static str>) -> Judged {
        let of = |verdict: &Verdict| Right {
            verdict: *verdict,
            ..right("role", "sqs:SendMessage", "arn:aws:sqs:::retries")
        };
        let rights = Ok(verdicts.iter().map(of).collect());
        let fix = |refused: &[&Right]| allow("", "CB999", refused);
        super::judged("", "lost", &rights, or_else, fix)
    }

    #[test]
    fn all_must_be_allowed() {
        assert_found(of_rights(&[Verdict::Allowed; 2], None), CheckOutcome::Ok, "sqs:SendMessage");
        let found = "no policy of role allows sqs:SendMessage on arn:aws:sqs:::retries";
        assert_found(of_rights(&[Verdict::Allowed, Verdict::NotAllowed], None), CheckOutcome::Broken, found);
    }

    #[test]
    fn a_missing_right_is_given_by_a_policy() {
        let fix = of_rights(&[Verdict::NotAllowed], None).unwrap().fix.unwrap().to_string();
        assert!(fix.starts_with("aws iam put-role-policy --role-name role --policy-name comeback-CB999"));
        assert!(fix.contains(r#""Resource":["arn:aws:sqs:::retries"]"#), "{fix}");
    }

    #[test]
    fn right_that_may_exist_elsewhere_is_a_warning() {
        let other = Some("the key's own policy");
        assert_found(
            of_rights(&[Verdict::NotAllowed], other),
            CheckOutcome::Warning,
            "; the key's own policy may",
        );
        assert_found(
            of_rights(&[Verdict::Denied], other),
            CheckOutcome::Broken,
            "a policy denies sqs:SendMessage on",
        );
    }

    #[test]
    fn denied_right_cannot_be_added() {
        let fix = of_rights(&[Verdict::Denied], None).unwrap().fix.unwrap().to_string();
        assert!(fix.starts_with("find the policy and remove its Deny"), "{fix}");
    }

    #[test]
    fn each_right_of_the_handler_is_needed() {
        for need in &OF_HANDLER {
            assert_found(of_handler(&healthy(), need.check), CheckOutcome::Ok, "");
            let mut facts = healthy();
            let rights = facts.rights.get_mut(need.check).unwrap();
            refused(rights);
            let action = rights.as_ref().unwrap()[0].action;
            // A missing permission on a key is only a warning, because the key's own policy may allow the action.
            let without = if need.on == Resource::Keys { CheckOutcome::Warning } else { need.without };
            assert_found(of_handler(&facts, need.check), without, action);
            facts.rights.insert(need.check, Err(Failure::could_not("simulate denied")));
            assert!(of_handler(&facts, need.check).is_err());
        }
    }

    #[test]
    fn every_log_stream_is_allowed() {
        let mut facts = healthy();
        let sample = format!("arn:group{SAMPLE_STREAM}");
        let verdict = Verdict::NotAllowed;
        facts
            .rights
            .insert("CB033", Ok(vec![Right { verdict, ..right("role", "logs:PutLogEvents", &sample) }]));
        assert_found(
            of_handler(&facts, "CB033"),
            CheckOutcome::Warning,
            "no policy of role allows logs:PutLogEvents on arn:group:*",
        );
        let fix = of_handler(&facts, "CB033").unwrap().fix.unwrap().to_string();
        assert!(fix.contains(r#""Resource":["arn:group:*"]"#), "{fix}");
    }

    #[test]
    fn unusable_key_is_broken_whatever_the_rights() {
        let cancel = "aws kms cancel-key-deletion --key-id arn:key";
        let other = |queue: &str| {
            let url = Queue::sample(queue).url;
            format!(
                "aws sqs set-queue-attributes --queue-url {url} --attributes KmsMasterKeyId=ARN_OF_ANOTHER_KEY"
            )
        };
        for (state, found, fix) in [
            (
                Some("Disabled".into()),
                "retries: the key arn:key is Disabled",
                "aws kms enable-key --key-id arn:key",
            ),
            (Some("PendingDeletion".into()), "retries: the key arn:key is PendingDeletion", cancel),
            (None, "retries: there is no key arn:key", &other("retries")),
        ] {
            let mut facts = healthy();
            let key = CustomerKey { arn: "arn:key".into(), state };
            facts.retry_queue.as_mut().unwrap().key = Ok(Some(key.clone()));
            facts.attachment().key = Ok(Some(key.clone()));
            assert_found(of_handler(&facts, "CB035"), CheckOutcome::Broken, found);
            assert_eq!(of_handler(&facts, "CB035").unwrap().fix.unwrap().to_string(), fix);
            assert_found(judged(function_uses_key, &facts), CheckOutcome::Skipped, "CB035");
            facts.retry_queue.as_mut().unwrap().key = Ok(None);
            facts.dead_letter_queue.as_mut().unwrap().key = Ok(Some(key));
            assert_found(of_handler(&facts, "CB035"), CheckOutcome::Broken, "dead: the");
        }
        let mut usable = healthy();
        let key = CustomerKey { arn: "arn:key".into(), state: Some("Enabled".into()) };
        usable.retry_queue.as_mut().unwrap().key = Ok(Some(key));
        assert_found(of_handler(&usable, "CB035"), CheckOutcome::Ok, "kms:Decrypt");
    }

    #[test]
    fn a_queues_policy_may_allow_it_too() {
        let mut facts = healthy();
        refused(facts.rights.get_mut("CB030").unwrap());
        facts.retry_queue.as_mut().unwrap().allows_by_itself = true;
        assert_found(of_handler(&facts, "CB030"), CheckOutcome::Warning, "the queue's own policy may");
    }

    #[test]
    fn unused_resource_needs_no_right() {
        let mut facts = healthy();
        facts.rights.insert("CB034", Ok(Vec::new()));
        assert_found(of_handler(&facts, "CB034"), CheckOutcome::Skipped, "PAUSES is not set");
        facts.rights.insert("CB035", Ok(Vec::new()));
        assert_found(of_handler(&facts, "CB035"), CheckOutcome::Ok, "SQS manages");
    }

    fn judged(check: fn(&Facts, &Attachment) -> Judged, facts: &Facts) -> Judged {
        check(facts, &facts.functions[0].attachments[0])
    }

    fn with(change: impl FnOnce(&mut Attachment)) -> Facts {
        let mut facts = healthy();
        change(facts.attachment());
        facts
    }

    fn refused(rights: &mut Rights) {
        rights.as_mut().unwrap()[0].verdict = Verdict::NotAllowed;
    }

    #[test]
    fn its_role_may_send_to_the_retry_queue() {
        let cannot = with(|attachment| refused(&mut attachment.send));
        let found = "no policy of orders-role allows sqs:SendMessage";
        assert_found(judged(function_sends, &cannot), CheckOutcome::Broken, found);
        assert_found(judged(function_sends, &healthy()), CheckOutcome::Ok, "sqs:SendMessage");
    }

    #[test]
    fn no_fix_undoes_that_of_another_function() {
        let fix = |check: fn(&Facts, &Attachment) -> Judged, qualifier: Option<&str>| {
            let cannot = with(|attachment| {
                attachment.target.qualifier = qualifier.map(ToOwned::to_owned);
                refused(&mut attachment.send);
                refused(&mut attachment.invoke);
            });
            judged(check, &cannot).unwrap().fix.unwrap().to_string()
        };
        for (qualifier, policy) in
            [(None, "comeback-CB109-orders"), (Some("live"), "comeback-CB109-orders.live")]
        {
            assert!(fix(handler_invokes, qualifier).contains(&format!(" --policy-name {policy} ")));
        }
        assert_eq!(fix(function_sends, None), "comeback attach orders", "stacks share the role's policies");
    }

    #[test]
    fn its_role_may_use_the_queues_key() {
        assert_found(judged(function_uses_key, &healthy()), CheckOutcome::Ok, "SQS manages");
        let mut rights = Ok(vec![right("orders-role", "kms:GenerateDataKey", "arn:key")]);
        let may = with(|attachment| attachment.use_key = rights.clone());
        assert_found(judged(function_uses_key, &may), CheckOutcome::Ok, "kms:GenerateDataKey");
        refused(&mut rights);
        let cannot = with(|attachment| attachment.use_key = rights);
        assert_found(judged(function_uses_key, &cannot), CheckOutcome::Warning, "the key's own policy may");
    }

    #[test]
    fn it_is_on_the_allow_list() {
        let mut facts = healthy();
        let mut set = |list: &str| {
            facts.list(list);
            judged(is_on_allow_list, &facts)
        };
        let arn = |rest: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{rest}");
        assert_found(set(&arn("payments")), CheckOutcome::Broken, "does not allow arn:aws:lambda");
        assert_found(set(&arn("orders:live")), CheckOutcome::Broken, "orders:$LATEST");
        assert_found(set(""), CheckOutcome::Broken, "TARGET_FUNCTIONS is empty");
        assert_found(set(&arn("ord*")), CheckOutcome::Ok, "allows it");
        assert_found(set("orders"), CheckOutcome::Skipped, "CB020");
    }

    #[test]
    fn fix_is_what_attach_can_do() {
        let owner = |list_owner: ListOwner| {
            let mut facts = with(|attachment| {
                attachment.list_owner = list_owner;
                refused(&mut attachment.invoke);
            });
            facts.list("");
            let fix = |check| judged(check, &facts).unwrap().fix.unwrap().to_string();
            [is_on_allow_list, handler_invokes].map(fix)
        };
        let attach = "comeback attach orders";
        let parameter = |value: &str| ListOwner::Parameter { stack: "comeback".into(), value: value.into() };
        assert_eq!(owner(ListOwner::Environment), [attach, attach]);
        assert_eq!(owner(parameter("")), [attach, attach]);
        let [list, invoke] = owner(parameter("arn:aws:lambda:eu-west-1:123456789012:function:orders"));
        assert!(list == attach && invoke.starts_with("aws iam put-role-policy"), "{list} {invoke}");
        let [list, invoke] = owner(ListOwner::Template { stack: "app".into() });
        assert!(list.starts_with("stack app has no parameter TargetFunctions"), "{list}");
        assert!(invoke.starts_with("aws iam put-role-policy"), "{invoke}");
    }

    #[test]
    fn no_fix_attaches_what_is_being_detached() {
        let fix = |change: fn(&mut Facts)| {
            let mut facts = with(|attachment| {
                attachment.list_owner = ListOwner::Environment;
                refused(&mut attachment.invoke);
            });
            change(&mut facts);
            judged(handler_invokes, &facts).unwrap().fix.unwrap().to_string()
        };
        assert_eq!(fix(|_| ()), "comeback attach orders");
        for change in [
            (|facts| facts.attachment().target.invoke_settings.clear()) as fn(&mut Facts),
            |facts| facts.settings().on_failure = Some("arn:aws:sqs:eu-west-1:123456789012:billing".into()),
            // An unreadable stack may still name the function. `attach` would then only refer to this check.
            |facts| facts.parameters = Err(Failure::could_not("cloudformation:DescribeStacks denied")),
        ] {
            let fix = fix(change);
            assert!(fix.starts_with("aws iam put-role-policy"), "{fix}");
        }
    }

    #[test]
    fn the_handler_may_invoke_it() {
        let cannot = with(|attachment| refused(&mut attachment.invoke));
        assert_found(
            judged(handler_invokes, &cannot),
            CheckOutcome::Broken,
            "allows lambda:InvokeFunction on",
        );
        assert_found(judged(handler_invokes, &healthy()), CheckOutcome::Ok, "lambda:InvokeFunction");
    }
}
