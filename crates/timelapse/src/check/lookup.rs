//! The oracle's own implementation of `POLICIES`: finds the policy for each function in a run.

use comeback_engine::{Policies, Policy, PolicyEntry};

/// ARN prefix of every function in a run.
const HOME: &str = "arn:aws:lambda:eu-west-1:123456789012:function:";

pub(super) fn policy_of<'p>(policies: &'p Policies, function_arn: &str) -> &'p Policy {
    let entry = policies.entries().iter().find(|entry| is_about(entry.pattern(), function_arn));
    entry.map_or(policies.stack(), PolicyEntry::policy)
}

/// Returns true if the pattern, in which `*` stands for any text within a field, matches the function's ARN.
fn is_about(pattern: &str, function_arn: &str) -> bool {
    let arn = if pattern.starts_with("arn:") { pattern.to_owned() } else { format!("{HOME}{pattern}") };
    let is_qualified = arn.split(':').count() == 8;
    let pattern = if is_qualified { arn } else { format!("{arn}:$LATEST") };
    let function = format!("{function_arn}:$LATEST");
    let (fields, of_function) = (pattern.split(':'), function.split(':'));
    fields.clone().count() == of_function.clone().count()
        && fields.zip(of_function).all(|(field, text)| fits(field, text))
}

fn fits(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((head, tail)) => {
            let rest = text.strip_prefix(head);
            rest.is_some_and(|rest| (0..=rest.len()).any(|at| fits(tail, &rest[at..])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_finds_the_same_policy_as_the_engine() {
        let text = "orders:live MAX_RETRIES=1;orders MAX_RETRIES=2;e*-e* MAX_RETRIES=3;*:$LATEST MAX_RETRIES=4;\
                    arn:aws:lambda:eu-west-1:123456789012:function:x* MAX_RETRIES=5";
        let read = |name: &str| match name {
            "POLICIES" => Some(text.to_owned()),
            "TARGET_FUNCTIONS" => Some(format!("{HOME}*")),
            _ => None,
        };
        let policies = Policies::from_variables(read).expect("valid policies");
        for name in ["orders", "export-eu", "e-e", "export", "orders-2", "xray"] {
            let arn = format!("{HOME}{name}");
            let engine = policies.of(&format!("{arn}:$LATEST")).settings().max_retries;
            assert_eq!(policy_of(&policies, &arn).settings().max_retries, engine, "{name}");
        }
    }
}
