use comeback_engine::{LONG_PAUSE, Pause, PauseTarget};

use crate::doctor::diagnosis::{Judged, ok, seen, skipped, warning};
use crate::doctor::facts::Facts;
use crate::doctor::fix;

pub(in crate::doctor) fn none_is_forgotten(facts: &Facts) -> Judged {
    let Some(pauses) = seen(&facts.pauses)? else {
        return Ok(skipped("the handler reads no pauses: PAUSES is not set"));
    };
    let is_long = |pause: &&Pause| pause.is_active(facts.now) && facts.now.since(pause.from) > LONG_PAUSE;
    let long: Vec<&Pause> = pauses.iter().filter(is_long).collect();
    let Some(first) = long.first() else { return Ok(ok("none is open for over 24 h")) };
    let each: Vec<String> = long.iter().map(|pause| in_words(pause)).collect();
    Ok(warning(
        format!("open for over 24 h: {}", each.join("; ")),
        "events of it are held; after 13 days and 12 hours they are given up",
        fix::comeback(&facts.deployment, resume(&first.target)),
    ))
}

/// What is paused since when, by whom and why.
pub(in crate::doctor) fn in_words(pause: &Pause) -> String {
    let target = match &pause.target {
        PauseTarget::All => "every function".to_owned(),
        PauseTarget::Functions(pattern) => pattern.to_string(),
    };
    let by = pause.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let why = pause.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{target} since {}{by}{why}", pause.from)
}

/// The command that ends the pause of a target.
pub(in crate::doctor) fn resume(target: &PauseTarget) -> String {
    match target {
        PauseTarget::All => "resume --all".to_owned(),
        PauseTarget::Functions(pattern) => format!("resume {pattern}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::sample::{assert_found, healthy, pause};

    #[test]
    fn a_pause_that_was_forgotten_is_named() {
        let paused = |hours: u64| {
            let mut facts = healthy();
            facts.pauses = Ok(Some(pause(facts.now.as_secs() - hours * 3_600)));
            facts
        };
        assert_found(none_is_forgotten(&paused(24)), Outcome::Ok, "none");
        let forgotten = none_is_forgotten(&paused(25));
        let remedy = forgotten.as_ref().unwrap().remedy.clone().unwrap();
        assert_eq!(remedy.fix, "comeback resume arn:aws:lambda:eu-west-1:123456789012:function:orders");
        assert_found(
            forgotten,
            Outcome::Warning,
            "function:orders since 2023-11-13T21:13:20.000Z by ops: it broke",
        );
    }

    #[test]
    fn a_handler_that_reads_no_pauses_has_none() {
        let mut facts = healthy();
        facts.pauses = Ok(None);
        assert_found(none_is_forgotten(&facts), Outcome::Skipped, "PAUSES is not set");
    }
}
