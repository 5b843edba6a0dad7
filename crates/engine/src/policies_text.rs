//! `POLICIES` as text, edited entry by entry. What an edit does not name stays as it was written.

use crate::arn::PolicyPattern;
use crate::policies::entries_of;

/// The text with an entry for a function, before the first entry that already matches the function: that one would count
/// otherwise.
///
/// ```
/// use comeback_engine::with_policy;
///
/// let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// let text = with_policy("export MAX_AGE=14d; * MAX_AGE=12h", orders, "orders MAX_AGE=2h");
/// assert_eq!(text, "export MAX_AGE=14d; orders MAX_AGE=2h; * MAX_AGE=12h");
/// ```
pub fn with_policy(text: &str, function_arn: &str, entry: &str) -> String {
    let matches = |other: &str| {
        let pattern = other.split_whitespace().next().and_then(|word| word.parse::<PolicyPattern>().ok());
        pattern.is_some_and(|pattern| pattern.matches(function_arn))
    };
    let mut entries: Vec<&str> = entries_of(text).collect();
    let position = entries.iter().position(|other| matches(other)).unwrap_or(entries.len());
    entries.insert(position, entry);
    entries.join("; ")
}

/// The text without this entry, if it has it. An entry that somebody has changed is another one.
pub fn without_policy(text: &str, entry: &str) -> String {
    let others = entries_of(text).filter(|other| !other.split_whitespace().eq(entry.split_whitespace()));
    others.collect::<Vec<_>>().join("; ")
}

/// What an edit changes: `- ` and each entry that it takes away, then `+ ` and each that it adds.
pub fn policy_changes(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (entries_of(before).collect(), entries_of(after).collect());
    let taken_away = before.iter().filter(|entry| !after.contains(entry)).map(|entry| format!("- {entry}"));
    let added = after.iter().filter(|entry| !before.contains(entry)).map(|entry| format!("+ {entry}"));
    taken_away.chain(added).collect()
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
        ] {
            assert_eq!(with_policy(text, LIVE, entry), expected, "{text:?}");
        }
    }

    #[test]
    fn an_edit_and_its_opposite_change_nothing() {
        let text = "export  MAX_AGE=14d; * MAX_AGE=12h";
        let with = with_policy(text, LIVE, "orders MAX_AGE=2h JITTER=none");
        assert_eq!(policy_changes(text, &with), ["+ orders MAX_AGE=2h JITTER=none"]);
        assert_eq!(without_policy(&with, " orders  MAX_AGE=2h JITTER=none"), text);
        assert_eq!(without_policy(&with, "orders MAX_AGE=2h"), with, "somebody has changed it");
        let changed = with_policy(text, LIVE, "orders MAX_AGE=3h");
        let lines = ["- orders MAX_AGE=2h JITTER=none", "+ orders MAX_AGE=3h"];
        assert_eq!(policy_changes(&with, &changed), lines);
    }
}
