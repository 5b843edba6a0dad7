use comeback_engine::HANDLER_TIMEOUT;

use crate::doctor::diagnosis::{Judged, broken, ok, seen, warning};
use crate::doctor::facts::Facts;
use crate::doctor::fix;

pub(in crate::doctor) fn settings(facts: &Facts) -> Judged {
    let Err(refused) = facts.deployment.policy() else { return Ok(ok("all are accepted")) };
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    // Each begins with the name of its variable.
    let name = refused.first().and_then(|text| text.split(' ').next()).unwrap_or_default();
    Ok(broken(
        refused.join("; "),
        "the handler does not start: every event waits, and is lost after 14 days",
        fix::variable(&facts.deployment, name, "VALUE"),
    ))
}

pub(in crate::doctor) fn timeout(facts: &Facts) -> Judged {
    let seconds = facts.deployment.timeout.as_secs();
    if facts.deployment.timeout >= HANDLER_TIMEOUT {
        return Ok(ok(format!("{seconds} s")));
    }
    let wanted = HANDLER_TIMEOUT.as_secs();
    Ok(warning(
        format!("{seconds} s"),
        "a batch is cut short, and what is left of it comes back after the queue's visibility timeout",
        fix::handler(&facts.deployment, format!("--timeout {wanted}")),
    ))
}

pub(in crate::doctor) fn recursion(facts: &Facts) -> Judged {
    let handler = seen(&facts.handler)?;
    Ok(if handler.recursion_allowed {
        ok("RecursiveLoop is Allow")
    } else {
        broken(
            "RecursiveLoop is Terminate",
            "Lambda stops each event at its 16th round through the queue",
            fix::recursion(&facts.deployment.handler),
        )
    })
}

pub(in crate::doctor) fn concurrency(facts: &Facts) -> Judged {
    let fix = fix::concurrency(&facts.deployment.handler);
    let handler = seen(&facts.handler)?;
    Ok(match handler.reserved_concurrency {
        None => ok("none is reserved"),
        Some(0) => broken(
            "0 are reserved",
            "the handler never runs: every event waits, and is lost after 14 days",
            fix,
        ),
        Some(reserved) => warning(
            format!("{reserved} are reserved"),
            "pollers that are throttled raise the receive counts of events before the handler runs; \
             MaximumConcurrency of the mapping is the limit that does not",
            fix,
        ),
    })
}

pub(in crate::doctor) fn errors(facts: &Facts) -> Judged {
    let errors = seen(&facts.errors)?;
    let (Some(newest), group) = (&errors.newest, &facts.deployment.log_group) else {
        return Ok(ok("none in the last 24 h"));
    };
    let at_least = if errors.all_were_read { "" } else { "at least " };
    let read = format!(
        "aws logs filter-log-events --log-group-name {group} --start-time {} --filter-pattern '{{ $.level = \"ERROR\" }}'",
        errors.since.as_millis()
    );
    Ok(warning(
        format!("{at_least}{} in the last 24 h; the newest, at {}: {}", errors.count, newest.at, newest.text),
        newest.remedy.as_deref().unwrap_or("the handler could not do what it should have done"),
        read,
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::Timestamp;

    use super::*;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::facts::log::{LoggedError, LoggedErrors};
    use crate::doctor::sample::{assert_found, healthy};

    #[test]
    fn every_refused_setting_is_named() {
        let mut facts = healthy();
        facts.deployment.variables.insert("MAX_AGE".into(), "30".into());
        facts.deployment.variables.insert("JITTER".into(), "some".into());
        assert_found(settings(&facts), Outcome::Broken, r#"JITTER is "some""#);
        assert_found(settings(&facts), Outcome::Broken, "MAX_AGE is 30 s");
        let fix = settings(&facts).unwrap().remedy.unwrap().fix;
        assert!(fix.contains("{JITTER: 'VALUE'}"), "{fix}");
    }

    #[test]
    fn the_handler_must_not_be_its_own_target() {
        let mut facts = healthy();
        let itself = facts.deployment.handler_arn.clone();
        facts.deployment.variables.insert("TARGET_FUNCTIONS".into(), itself);
        assert_found(settings(&facts), Outcome::Broken, "is the retry handler itself");
    }

    #[test]
    fn the_handler_has_its_minute() {
        for (seconds, outcome) in [(59, Outcome::Warning), (60, Outcome::Ok), (61, Outcome::Ok)] {
            let mut facts = healthy();
            facts.deployment.timeout = Duration::from_secs(seconds);
            assert_found(timeout(&facts), outcome, &format!("{seconds} s"));
        }
    }

    #[test]
    fn lambda_must_not_stop_the_loop() {
        let mut facts = healthy();
        facts.handler.as_mut().unwrap().recursion_allowed = false;
        assert_found(recursion(&facts), Outcome::Broken, "Terminate");
    }

    #[test]
    fn concurrency_is_not_reserved() {
        for (reserved, outcome) in [(0, Outcome::Broken), (5, Outcome::Warning)] {
            let mut facts = healthy();
            facts.handler.as_mut().unwrap().reserved_concurrency = Some(reserved);
            assert_found(concurrency(&facts), outcome, &reserved.to_string());
        }
    }

    #[test]
    fn the_newest_error_is_shown_with_its_remedy() {
        let mut facts = healthy();
        let newest = LoggedError {
            at: Timestamp::from_secs(1_700_000_000),
            text: "denied".into(),
            remedy: Some("allow it".into()),
        };
        facts.errors = Ok(LoggedErrors {
            since: Timestamp::from_secs(1_699_913_600),
            count: 7,
            newest: Some(newest),
            all_were_read: false,
        });
        let expected = "at least 7 in the last 24 h; the newest, at 2023-11-14T22:13:20.000Z: denied";
        assert_found(errors(&facts), Outcome::Warning, expected);
        let remedy = errors(&facts).unwrap().remedy.unwrap();
        assert_eq!(remedy.means, "allow it");
        assert!(remedy.fix.contains("--start-time 1699913600000"), "{}", remedy.fix);
    }
}
