use comeback_engine::{Concurrency, Pause};

use crate::Target;
use crate::doctor::diagnosis::{Diagnosis, Judged, broken, ok, seen, skipped, warning};
use crate::doctor::facts::Facts;
use crate::doctor::facts::functions::Function;
use crate::doctor::fix;
use crate::doctor::stack::pauses::{in_words, resume};

pub(in crate::doctor) fn exists(facts: &Facts, function: &Function) -> Judged {
    if let Some(target) = seen(&function.target)? {
        return Ok(ok(target.arn.clone()));
    }
    let is_it = |entry: &str| entry.split(':').nth(6) == Some(&*function.name);
    let (of_it, others): (Vec<_>, Vec<_>) =
        facts.deployment.target_functions().partition(|entry| is_it(entry));
    let fix = if of_it.is_empty() {
        "name a function that exists".to_owned()
    } else {
        fix::variable(&facts.deployment, "TARGET_FUNCTIONS", &others.join(","))
    };
    let found = format!("there is no function {}", function.name);
    Ok(broken(found, "events of it go to the dead-letter queue, as target_not_found", fix))
}

pub(in crate::doctor) fn recursion(_: &Facts, function: &Function) -> Judged {
    of_target(function, |target| {
        if target.recursion_allowed {
            return ok("RecursiveLoop is Allow");
        }
        broken(
            "RecursiveLoop is Terminate",
            "Lambda stops each of its events at the 16th round through the queue",
            fix::recursion(&target.name),
        )
    })
}

pub(in crate::doctor) fn concurrency(facts: &Facts, function: &Function) -> Judged {
    of_target(function, |target| match (target.reserved_concurrency, hard_pause(facts, target)) {
        (None, _) => ok("none is reserved"),
        (Some(0), Some(pause)) => warning(
            format!("0 are reserved: paused, {}", in_words(pause)),
            "it does not run until it is resumed, and its failed events are held meanwhile",
            fix::comeback(&facts.deployment, resume(&pause.target)),
        ),
        (Some(0), None) => broken(
            "0 are reserved",
            "it never runs: each retry comes straight back as a failure, and uses up a retry",
            fix::concurrency(&target.name),
        ),
        (Some(reserved), _) => ok(format!("{reserved} are reserved")),
    })
}

pub(in crate::doctor) fn nothing_dropped(facts: &Facts, function: &Function) -> Judged {
    if matches!(function.target, Ok(None)) {
        return Ok(missing());
    }
    let dropped = function.dropped.clone()?;
    let fix = fix::comeback(&facts.deployment, format!("doctor {} --only CB102,CB105,CB106", function.name));
    Ok(match (dropped.in_24_hours, dropped.in_14_days) {
        (_, 0) => ok("DestinationDeliveryFailures is 0 over 14 days"),
        (0, earlier) => warning(
            format!("DestinationDeliveryFailures is {earlier} over 14 days, and 0 in the last 24 h"),
            "Lambda could not send so many failed events to their destination, and dropped them",
            fix,
        ),
        (recent, _) => broken(
            format!("DestinationDeliveryFailures is {recent} in the last 24 h"),
            "Lambda cannot send failed events to their destination, and drops them",
            fix,
        ),
    })
}

/// The pause that set a function's reserved concurrency to 0. Pauses that cannot be read are CB050's.
fn hard_pause<'f>(facts: &'f Facts, target: &Target) -> Option<&'f Pause> {
    let mut pauses = facts.pauses.as_ref().ok()?.as_ref()?.iter();
    pauses.find(|pause| {
        let is_hard = pause.concurrency != Concurrency::Untouched;
        is_hard && pause.is_active(facts.now) && pause.target.covers(&target.arn)
    })
}

fn of_target(function: &Function, judge: impl Fn(&Target) -> Diagnosis) -> Judged {
    let target = seen(&function.target)?;
    Ok(target.as_ref().map_or_else(missing, judge))
}

fn missing() -> Diagnosis {
    skipped("there is no such function (CB101)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::doctor::attached::OfFunction;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::facts::dropped::Dropped;
    use comeback_engine::Pauses;

    use crate::doctor::sample::{assert_found, healthy, pause};

    fn judged(check: OfFunction, change: impl FnOnce(&mut Function)) -> Judged {
        let mut facts = healthy();
        change(&mut facts.functions.all[0]);
        check(&facts, &facts.functions.all[0])
    }

    #[test]
    fn a_function_that_is_gone_is_named() {
        let gone = |function: &mut Function| function.target = Ok(None);
        assert_found(judged(exists, gone), Outcome::Broken, "there is no function orders");
        for check in [recursion, concurrency, nothing_dropped] {
            assert_found(judged(check, gone), Outcome::Skipped, "CB101");
        }
        assert_found(judged(exists, |_| ()), Outcome::Ok, ":function:orders");
        let unseen = |function: &mut Function| function.target = Err(Failure::CouldNot("denied".into()));
        assert!(judged(exists, unseen).is_err());
    }

    #[test]
    fn what_is_gone_is_taken_off_the_list() {
        let mut facts = healthy();
        let arn = |name: &str| format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
        let list = format!("{},{}", arn("orders"), arn("payments"));
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), list);
        facts.functions.all[0].target = Ok(None);
        let fix = |facts: &Facts| exists(facts, &facts.functions.all[0]).unwrap().remedy.unwrap().fix;
        assert!(fix(&facts).contains(&format!("{{TARGET_FUNCTIONS: '{}'}}", arn("payments"))));
        facts.functions.all[0].name = "misspelt".into();
        assert_eq!(fix(&facts), "name a function that exists");
    }

    fn of_changed(check: OfFunction, change: impl FnOnce(&mut Target)) -> Judged {
        judged(check, |function| change(function.target.as_mut().unwrap().as_mut().unwrap()))
    }

    #[test]
    fn lambda_must_not_stop_its_loop() {
        assert_found(of_changed(recursion, |_| ()), Outcome::Ok, "Allow");
        let stopped = of_changed(recursion, |target| target.recursion_allowed = false);
        assert_found(stopped, Outcome::Broken, "Terminate");
    }

    #[test]
    fn it_may_run() {
        for (reserved, outcome) in [(None, Outcome::Ok), (Some(1), Outcome::Ok), (Some(0), Outcome::Broken)] {
            let found = of_changed(concurrency, |target| target.reserved_concurrency = reserved);
            assert_found(found, outcome, "");
        }
    }

    #[test]
    fn a_function_that_is_paused_hard_is_not_broken() {
        let mut facts = healthy();
        facts.functions.all[0].target.as_mut().unwrap().as_mut().unwrap().reserved_concurrency = Some(0);
        facts.pauses = Ok(Some(pause(facts.now.as_secs() - 60)));
        assert_found(
            concurrency(&facts, &facts.functions.all[0]),
            Outcome::Warning,
            "0 are reserved: paused, ",
        );
        facts.pauses = Ok(Some(Pauses::default()));
        assert_found(concurrency(&facts, &facts.functions.all[0]), Outcome::Broken, "0");
    }

    #[test]
    fn dropped_events_are_counted() {
        for (in_24_hours, in_14_days, outcome, words) in [
            (0, 0, Outcome::Ok, "0 over 14 days"),
            (0, 4, Outcome::Warning, "4 over 14 days"),
            (2, 4, Outcome::Broken, "2 in the last 24 h"),
        ] {
            let dropped = Dropped { in_24_hours, in_14_days };
            let found = judged(nothing_dropped, |function| function.dropped = Ok(dropped));
            assert_found(found, outcome, words);
        }
    }
}
