use comeback_engine::HANDLER_TIMEOUT;

use crate::doctor::diagnosis::{Diagnosis, Judged, broken, ok, skipped, warning};
use crate::doctor::facts::Facts;
use crate::doctor::facts::functions::{Entrance, Function};
use crate::doctor::fix;

/// Ten minutes: longer than a throttle usually lasts, and short beside the waits that follow.
const SHORT_AGE: i32 = 600;
/// Lambda's own defaults.
const DEFAULT_RETRIES: i32 = 2;
const DEFAULT_AGE: i32 = 21_600;

pub(in crate::doctor) fn leads_here(facts: &Facts, function: &Function, entrance: &Entrance) -> Judged {
    let queue = &facts.deployment.retry_queue;
    Ok(match entrance.settings.on_failure.as_deref() {
        Some(destination) if destination == queue.arn => ok(queue.name()),
        other => broken(
            other.map_or_else(
                || "it has no destination for failures".to_owned(),
                |other| format!("its failures go to {other}"),
            ),
            "no failure of it is retried: it is attached half-way",
            attach(facts, function, entrance),
        ),
    })
}

pub(in crate::doctor) fn no_retries(facts: &Facts, function: &Function, entrance: &Entrance) -> Judged {
    if !is_attached(facts, entrance) {
        return Ok(unattached());
    }
    Ok(match entrance.settings.retries.unwrap_or(DEFAULT_RETRIES) {
        0 => ok("none"),
        retries => warning(
            format!("MaximumRetryAttempts is {retries}"),
            "each retry of Comeback is several invocations, and a failure is known minutes later",
            attach(facts, function, entrance),
        ),
    })
}

pub(in crate::doctor) fn event_age(facts: &Facts, function: &Function, entrance: &Entrance) -> Judged {
    if !is_attached(facts, entrance) {
        return Ok(unattached());
    }
    let age = entrance.settings.event_age.unwrap_or(DEFAULT_AGE);
    let enough = HANDLER_TIMEOUT.as_secs();
    Ok(if age <= SHORT_AGE {
        ok(format!("{age} s"))
    } else {
        warning(
            format!("{age} s"),
            format!(
                "a throttled event waits this long in Lambda before Comeback sees it; {enough} s are enough"
            ),
            attach(facts, function, entrance),
        )
    })
}

/// `attach` sets whatever is not as it should be.
pub(super) fn attach(facts: &Facts, function: &Function, entrance: &Entrance) -> String {
    fix::comeback(&facts.deployment, format!("attach {}", entrance.of(function)))
}

fn is_attached(facts: &Facts, entrance: &Entrance) -> bool {
    entrance.settings.on_failure.as_ref() == Some(&facts.deployment.retry_queue.arn)
}

fn unattached() -> Diagnosis {
    skipped("its failures do not go to the retry queue (CB102)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InvokeSettings;
    use crate::doctor::attached::OfEntrance;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::sample::{assert_found, healthy};

    fn judged(check: OfEntrance, change: impl FnOnce(&mut InvokeSettings)) -> Judged {
        let mut facts = healthy();
        change(&mut facts.functions.all[0].entrances[0].settings);
        let function = &facts.functions.all[0];
        check(&facts, function, &function.entrances[0])
    }

    #[test]
    fn failures_go_to_the_retry_queue() {
        assert_found(judged(leads_here, |_| ()), Outcome::Ok, "retries");
        let none = judged(leads_here, |settings| settings.on_failure = None);
        assert_eq!(none.as_ref().unwrap().remedy.as_ref().unwrap().fix, "comeback attach orders");
        assert_found(none, Outcome::Broken, "no destination");
        let other = judged(leads_here, |settings| settings.on_failure = Some("arn:other".into()));
        assert_found(other, Outcome::Broken, "its failures go to arn:other");
    }

    #[test]
    fn lambda_itself_does_not_retry() {
        for (retries, words) in [(None, "is 2"), (Some(1), "is 1")] {
            let found = judged(no_retries, |settings| settings.retries = retries);
            assert_found(found, Outcome::Warning, words);
        }
        assert_found(judged(no_retries, |_| ()), Outcome::Ok, "none");
    }

    #[test]
    fn events_are_not_kept_long_by_lambda() {
        for (age, outcome) in [
            (Some(60), Outcome::Ok),
            (Some(600), Outcome::Ok),
            (Some(601), Outcome::Warning),
            (None, Outcome::Warning),
        ] {
            assert_found(judged(event_age, |settings| settings.event_age = age), outcome, " s");
        }
    }

    #[test]
    fn a_function_that_leads_elsewhere_follows_its_own_settings() {
        for check in [no_retries, event_age] {
            assert_found(judged(check, |settings| settings.on_failure = None), Outcome::Skipped, "CB102");
        }
    }
}
