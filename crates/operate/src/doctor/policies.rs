//! The check on `POLICIES`, which holds the retry policies for individual functions.

use comeback_engine::PolicyEntry;

use crate::doctor::facts::Facts;
use crate::doctor::judgement::{Judged, ok, skipped, warning};
use crate::failure::seen;
use crate::function::FunctionName;

const FIX: &str = "correct the name in POLICIES where the deployment is defined (docs/settings.md)";

pub(crate) fn match_functions(facts: &Facts) -> Judged {
    facts.matched.clone()?;
    facts.functions.iter().try_for_each(|function| seen(&function.target).map(drop))?;
    let Ok(policies) = facts.deployment.policies() else {
        return Ok(skipped("the handler's settings are refused (CB020)"));
    };
    if policies.entries().is_empty() {
        return Ok(skipped("POLICIES is empty: every function has the stack's policy"));
    }
    let attachments = facts.functions.iter().flat_map(|function| &function.attachments);
    let arns = attachments.map(|attachment| attachment.target.invoked_arn());
    let arns: Vec<String> = arns.filter(|arn| policies.stack().allows(arn)).collect();
    let is_useful = |it: &&PolicyEntry| arns.iter().any(|arn| it.is_about(arn)) || is_allowed(facts, it);
    let unmatched: Vec<&PolicyEntry> = policies.entries().iter().filter(|it| !is_useful(it)).collect();
    if unmatched.is_empty() {
        return Ok(ok(patterns(policies.entries())));
    }
    let found = format!("no allowed function matches {}", patterns(unmatched));
    let means = "the function name may be misspelled; the function you meant has the stack's policy";
    Ok(warning(found, means, FIX))
}

/// Returns true if an entry in `POLICIES` names a single function that is on the handler's or the stack's allow-list.
fn is_allowed(facts: &Facts, entry: &PolicyEntry) -> bool {
    let Ok(function) = entry.pattern().parse::<FunctionName>() else { return false };
    facts.stack_names(&facts.deployment.arn_of(&function)) || facts.deployment.allows_name(&function)
}

fn patterns<'e>(entries: impl IntoIterator<Item = &'e PolicyEntry>) -> String {
    entries.into_iter().map(PolicyEntry::pattern).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::doctor::judgement::CheckOutcome;
    use crate::doctor::tests::{assert_found, healthy};
    use crate::failure::Failure;

    use super::*;

    fn with(policies: &str) -> Facts {
        let mut facts = healthy();
        facts.deployment.variables.insert("POLICIES".into(), policies.into());
        facts
    }

    #[test]
    fn entry_without_an_allowed_function_is_named() {
        assert_found(match_functions(&with("")), CheckOutcome::Skipped, "POLICIES is empty");
        assert_found(match_functions(&with("order MAX_AGE=1")), CheckOutcome::Skipped, "CB020");
        assert_found(match_functions(&with("o* MAX_AGE=2h")), CheckOutcome::Ok, "o*");
        let unmatched = with("ordres MAX_AGE=2h; orders JITTER=none; orders:live MAX_AGE=1h");
        let found = "no allowed function matches ordres";
        assert_found(match_functions(&unmatched), CheckOutcome::Warning, found);
        let mut unread = unmatched.clone();
        unread.functions[0].target = Err(Failure::could_not("denied"));
        assert!(match_functions(&unread).is_err());
        let mut alone = with("orders MAX_AGE=2h");
        alone.deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        assert_found(match_functions(&alone), CheckOutcome::Warning, "orders");
        // If the stack's list still contains the function, the handler's list is wrong (CB108).
        alone.parameters = Ok([("TargetFunctions".to_owned(), alone.functions[0].arn.clone())].into());
        assert_found(match_functions(&alone), CheckOutcome::Ok, "orders");
    }
}
