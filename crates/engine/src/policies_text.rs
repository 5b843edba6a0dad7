//! `POLICIES` as text, edited entry by entry. What an edit does not name stays as it was written.

use crate::arn::{PolicyPattern, qualifier_after};
use crate::policies::{entries_of, policy_pattern};

/// The text with this entry before the first one that matches the function: that would count otherwise. If that says the
/// same already, nothing is to be done.
///
/// ```
/// use comeback_engine::with_policy;
///
/// let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// let text = with_policy("export MAX_AGE=14d; * MAX_AGE=12h", orders, "orders MAX_AGE=2h");
/// assert_eq!(text, "export MAX_AGE=14d; orders MAX_AGE=2h; * MAX_AGE=12h");
/// ```
pub fn with_policy(text: &str, function_arn: &str, entry: &str) -> String {
    if policy_about(text, function_arn) == Some(entry) {
        return text.to_owned();
    }
    let mut entries: Vec<&str> = entries_of(text).collect();
    let position = entries.iter().position(|other| is_about(other, function_arn)).unwrap_or(entries.len());
    entries.insert(position, entry);
    entries.join("; ")
}

fn is_about(entry: &str, function_arn: &str) -> bool {
    policy_pattern(entry).parse::<PolicyPattern>().is_ok_and(|pattern| pattern.matches(function_arn))
}

/// The entry that counts for a function: the first that matches it.
pub fn policy_about<'t>(text: &'t str, function_arn: &str) -> Option<&'t str> {
    entries_of(text).find(|entry| is_about(entry, function_arn))
}

/// The entries that name a function or one of its versions and aliases, as `orders` and `orders:live` do `orders`.
pub fn policies_named<'t>(text: &'t str, function: &str) -> impl Iterator<Item = &'t str> {
    entries_of(text).filter(move |entry| qualifier_after(policy_pattern(entry), function).is_some())
}

/// The text without these entries. Of several that say the same, the first goes.
pub fn without_policies(text: &str, gone: &[impl AsRef<str>]) -> String {
    let mut entries: Vec<&str> = entries_of(text).collect();
    for entry in gone {
        if let Some(first) = entries.iter().position(|it| *it == entry.as_ref()) {
            entries.remove(first);
        }
    }
    entries.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:live";

    #[test]
    fn an_entry_stands_before_the_first_that_matches_its_function() {
        let entry = "orders:live MAX_AGE=2h";
        for (text, expected) in [
            ("", "orders:live MAX_AGE=2h"),
            (";export MAX_AGE=1d;", "export MAX_AGE=1d; orders:live MAX_AGE=2h"),
            (
                "orders MAX_AGE=1h; o* JITTER=none",
                "orders:live MAX_AGE=2h; orders MAX_AGE=1h; o* JITTER=none",
            ),
            (
                "orders:dev A=1; nonsense?; *s MAX_AGE=1h",
                "orders:dev A=1; nonsense?; orders:live MAX_AGE=2h; *s MAX_AGE=1h",
            ),
            (
                "* MAX_AGE=1h; orders:live JITTER=none",
                "orders:live MAX_AGE=2h; * MAX_AGE=1h; orders:live JITTER=none",
            ),
            (
                "* MAX_AGE=1h; orders:live MAX_AGE=2h",
                "orders:live MAX_AGE=2h; * MAX_AGE=1h; orders:live MAX_AGE=2h",
            ),
            ("orders:live MAX_AGE=2h;* MAX_AGE=1h", "orders:live MAX_AGE=2h;* MAX_AGE=1h"),
        ] {
            assert_eq!(with_policy(text, LIVE, entry), expected, "{text:?}");
        }
    }

    #[test]
    fn an_edit_and_its_opposite_change_nothing() {
        let text = "export  MAX_AGE=14d; * MAX_AGE=12h; orders-2 JITTER=none";
        let with = with_policy(text, LIVE, "orders:live MAX_AGE=2h");
        let with = with_policy(&with, LIVE.trim_end_matches(":live"), "orders JITTER=none");
        let named: Vec<&str> = policies_named(&with, "orders").collect();
        assert_eq!(named, ["orders:live MAX_AGE=2h", "orders JITTER=none"]);
        assert_eq!(policy_about(&with, LIVE), Some("orders:live MAX_AGE=2h"));
        let latest = LIVE.replace(":live", ":$LATEST");
        assert_eq!(policy_about(&without_policies(&with, &named[1..]), &latest), Some("* MAX_AGE=12h"));
        assert_eq!(without_policies(&with, &named), text);
        assert_eq!(without_policies("a A=1; * B=1; a A=1", &["a A=1"]), "* B=1; a A=1");
    }
}
