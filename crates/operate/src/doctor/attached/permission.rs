use crate::Failure;
use crate::doctor::attached::destination::attach;
use crate::doctor::diagnosis::{Judged, Outcome, broken, ok, seen, skipped};
use crate::doctor::facts::Facts;
use crate::doctor::facts::functions::{Entrance, Function};
use crate::doctor::needed::Needed;
use crate::doctor::stack::role::of_queue;

pub(in crate::doctor) fn send(facts: &Facts, _: &Function, entrance: &Entrance) -> Judged {
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

pub(in crate::doctor) fn use_key(_: &Facts, _: &Function, entrance: &Entrance) -> Judged {
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

pub(in crate::doctor) fn allowed(facts: &Facts, function: &Function, entrance: &Entrance) -> Judged {
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

pub(in crate::doctor) fn invoke(facts: &Facts, _: &Function, entrance: &Entrance) -> Judged {
    Needed {
        check: "CB109",
        role: facts.deployment.role(),
        rights: &entrance.invoke,
        without: Outcome::Broken,
        means: "its events wait until the handler may invoke it",
        or_else: None,
    }
    .judged()
}

/// The name of its role.
fn role(entrance: &Entrance) -> Result<&str, Failure> {
    let arn = seen(&entrance.role)?;
    Ok(arn.rsplit('/').next().unwrap_or(arn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::doctor::attached::OfEntrance;
    use crate::doctor::facts::rights::Right;
    use crate::doctor::sample::{assert_found, healthy, right};

    fn judged(check: OfEntrance, facts: &Facts) -> Judged {
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
        assert_found(judged(send, &cannot), Outcome::Broken, found);
        assert_found(judged(send, &healthy()), Outcome::Ok, "sqs:SendMessage");
    }

    #[test]
    fn its_role_may_use_the_queues_key() {
        assert_found(judged(use_key, &healthy()), Outcome::Ok, "AWS manages");
        let mut rights = vec![right("kms:GenerateDataKey", "arn:key")];
        let may = with(|entrance| entrance.use_key = Ok(rights.clone()));
        assert_found(judged(use_key, &may), Outcome::Ok, "kms:GenerateDataKey");
        refused(&mut rights);
        let cannot = with(|entrance| entrance.use_key = Ok(rights));
        assert_found(judged(use_key, &cannot), Outcome::Warning, "the key's own policy may");
    }

    #[test]
    fn it_is_on_the_allow_list() {
        let mut facts = healthy();
        let mut set = |list: &str| {
            facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
            judged(allowed, &facts)
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
        assert_found(judged(invoke, &cannot), Outcome::Broken, "allows lambda:InvokeFunction on");
        assert_found(judged(invoke, &healthy()), Outcome::Ok, "lambda:InvokeFunction");
    }
}
