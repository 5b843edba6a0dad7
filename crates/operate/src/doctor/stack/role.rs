use crate::Failure;
use crate::doctor::diagnosis::{Judged, Outcome, ok, seen, skipped};
use crate::doctor::facts::Facts;
use crate::doctor::facts::queue::QueueSettings;
use crate::doctor::needed::Needed;

pub(in crate::doctor) fn take(facts: &Facts) -> Judged {
    Needed {
        check: "CB030",
        role: facts.deployment.role(),
        rights: &facts.rights.take,
        without: Outcome::Broken,
        means: "nothing is retried: the handler cannot read its queue, or cannot hide and delete what it has read",
        or_else: of_queue(&facts.retry_queue),
    }
    .judged()
}

pub(in crate::doctor) fn send_again(facts: &Facts) -> Judged {
    Needed {
        check: "CB031",
        role: facts.deployment.role(),
        rights: &facts.rights.send_again,
        without: Outcome::Warning,
        means: "past HIDE_UP_TO every message is hidden instead, and SQS has room for 120,000",
        or_else: of_queue(&facts.retry_queue),
    }
    .judged()
}

pub(in crate::doctor) fn dead_letter(facts: &Facts) -> Judged {
    Needed {
        check: "CB032",
        role: facts.deployment.role(),
        rights: &facts.rights.dead_letter,
        without: Outcome::Broken,
        means: "events that are given up stay in the retry queue, and are deleted after 14 days",
        or_else: of_queue(&facts.dead_letter_queue),
    }
    .judged()
}

pub(in crate::doctor) fn log(facts: &Facts) -> Judged {
    Needed {
        check: "CB033",
        role: facts.deployment.role(),
        rights: &facts.rights.log,
        without: Outcome::Warning,
        means: "nobody can see what the handler decides, and no event can be traced",
        or_else: None,
    }
    .judged()
}

pub(in crate::doctor) fn read_pauses(facts: &Facts) -> Judged {
    if facts.rights.read_pauses.is_empty() {
        return Ok(skipped("the handler reads no pauses: PAUSES is not set"));
    }
    Needed {
        check: "CB034",
        role: facts.deployment.role(),
        rights: &facts.rights.read_pauses,
        without: Outcome::Broken,
        means: "the handler cannot know what is paused, and holds every event that is due",
        or_else: None,
    }
    .judged()
}

pub(in crate::doctor) fn use_keys(facts: &Facts) -> Judged {
    let rights = seen(&facts.rights.use_keys)?;
    if rights.is_empty() {
        return Ok(ok("AWS manages the queues' keys"));
    }
    Needed {
        check: "CB035",
        role: facts.deployment.role(),
        rights,
        without: Outcome::Broken,
        means: "the handler can read or send no message of a queue that the key encrypts",
        or_else: Some("the key's own policy"),
    }
    .judged()
}

/// A queue's own policy may allow what the role's do not.
pub(in crate::doctor) fn of_queue(queue: &Result<QueueSettings, Failure>) -> Option<&'static str> {
    queue.as_ref().is_ok_and(|queue| queue.allows_by_itself).then_some("the queue's own policy")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::doctor::facts::rights::{HandlerRights, Right};
    use crate::doctor::sample::{assert_found, healthy};

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
}
