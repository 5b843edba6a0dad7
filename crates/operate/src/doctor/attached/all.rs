use crate::doctor::attached::error_types::can_match;
use crate::doctor::diagnosis::{Judged, ok, seen, skipped, warning};
use crate::doctor::facts::Facts;
use crate::doctor::fix;

pub(in crate::doctor) fn exist(facts: &Facts) -> Judged {
    facts.functions.matched.clone()?;
    let names: Vec<&str> = facts.functions.all.iter().map(|function| function.name.as_str()).collect();
    Ok(if names.is_empty() {
        warning(
            "none",
            "nothing is retried until a function is attached",
            fix::comeback(&facts.deployment, "attach FUNCTION"),
        )
    } else {
        ok(names.join(", "))
    })
}

/// Warns only if every function was read, and none of their runtimes can write what an entry asks for.
pub(in crate::doctor) fn error_types(facts: &Facts) -> Judged {
    facts.functions.matched.clone()?;
    let mut runtimes = Vec::new();
    for function in &facts.functions.all {
        if let Some(target) = seen(&function.target)? {
            runtimes.push(target.runtime.as_deref().unwrap_or("an image"));
        }
    }
    runtimes.sort_unstable();
    runtimes.dedup();
    let set = facts.deployment.variables.get("NON_RETRYABLE_ERRORS").map(String::as_str).unwrap_or_default();
    let entries: Vec<&str> = set.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.is_empty() || runtimes.is_empty() {
        return Ok(skipped("NON_RETRYABLE_ERRORS is empty, or no function is attached"));
    }
    let (useful, vain): (Vec<&str>, Vec<&str>) =
        entries.iter().partition(|entry| runtimes.iter().any(|runtime| can_match(entry, runtime)));
    Ok(if vain.is_empty() {
        ok(entries.join(", "))
    } else {
        warning(
            format!("no error of {} can match {}", runtimes.join(", "), vain.join(", ")),
            "errors that are meant to go straight to the dead-letter queue are retried",
            fix::variable(&facts.deployment, "NON_RETRYABLE_ERRORS", &useful.join(",")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::doctor::diagnosis::Outcome;
    use crate::doctor::sample::{assert_found, healthy};

    #[test]
    fn something_is_attached() {
        assert_found(exist(&healthy()), Outcome::Ok, "orders");
        let mut none = healthy();
        none.functions.all.clear();
        assert_found(exist(&none), Outcome::Warning, "none");
        none.functions.matched = Err(Failure::CouldNot("lambda:ListFunctions denied".into()));
        assert!(exist(&none).is_err());
    }

    #[test]
    fn an_entry_that_no_runtime_writes_is_named() {
        let mut facts = healthy();
        assert_found(error_types(&facts), Outcome::Skipped, "empty");
        let list = "OrderRefused, com.acme.Refused";
        facts.deployment.variables.insert("NON_RETRYABLE_ERRORS".into(), list.into());
        let found = "no error of python3.12 can match com.acme.Refused";
        assert_found(error_types(&facts), Outcome::Warning, found);
        let fix = error_types(&facts).unwrap().remedy.unwrap().fix;
        assert!(fix.contains("{NON_RETRYABLE_ERRORS: 'OrderRefused'}"), "{fix}");
        let mut java = facts.functions.all[0].clone();
        java.target.as_mut().unwrap().as_mut().unwrap().runtime = Some("java21".into());
        facts.functions.all.push(java);
        assert_found(error_types(&facts), Outcome::Ok, list);
    }
}
