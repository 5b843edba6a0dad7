//! A filter for waiting events, and its CloudWatch filter pattern, which may also match lines about other events.

use comeback_engine::{LoggedEvent, error_matches, logged};

use crate::function::FunctionName;

/// The longest filter pattern that CloudWatch accepts, in bytes.
const LONGEST_PATTERN: usize = 1_024;

/// A filter for waiting events. An event must match every field that is set. The filter matches either all log lines
/// about a message or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingFilter {
    /// The functions whose events are selected, or an empty list for every function. A name without a qualifier
    /// matches all versions and aliases.
    pub functions: Vec<FunctionName>,
    /// A glob pattern for the error: its full type, its class name or its simple name. `None` selects every event.
    pub error: Option<String>,
    /// The keys of the events to select, or an empty list for every event.
    pub keys: Vec<String>,
}

impl WaitingFilter {
    /// Returns true if no field is set, so that every event matches.
    pub fn takes_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the filter matches the event in a log line.
    pub fn takes(&self, event: &LoggedEvent<'_>) -> bool {
        self.takes_key(&event.key) && self.takes_kind(Some(&event.target), event.error_type.as_deref())
    }

    pub(super) fn takes_key(&self, key: &str) -> bool {
        self.keys.is_empty() || self.keys.iter().any(|wanted| logged(wanted) == key)
    }

    pub(super) fn takes_kind(&self, target: Option<&str>, error_type: Option<&str>) -> bool {
        let is_named = |target: &str| self.functions.iter().any(|function| function.names(target));
        (self.functions.is_empty() || target.is_some_and(is_named))
            && self
                .error
                .as_ref()
                .is_none_or(|glob| error_type.is_some_and(|error| error_matches(glob, error)))
    }

    /// The filter as a CloudWatch filter pattern. It matches every line that [`takes`](Self::takes) accepts, and only
    /// a few other lines.
    pub fn pattern(&self) -> String {
        // The class name and the simple name of an error are parts of its type.
        let error = self.error.as_deref().map(|glob| test("error_type", &around(longest_part(glob))));
        let functions = self.functions.iter().map(|it| test("target", &format!("*:function:{}*", it.name)));
        let functions = any(functions.collect());
        let keys = match self.keys.iter().all(|key| is_plain(key)) {
            true => any(self.keys.iter().map(|key| test("key", key)).collect()),
            false => None,
        };
        let all = |keys: &Option<String>, functions: &Option<String>| {
            let keys = keys.clone().unwrap_or_else(|| test("key", "*"));
            let tests: Vec<_> = [test("action", "*"), keys]
                .into_iter()
                .chain(error.clone())
                .chain(functions.clone())
                .collect();
            format!("{{ {} }}", tests.join(" && "))
        };
        let narrow = [all(&keys, &functions), all(&keys, &None), all(&None, &functions)];
        let fits = |pattern: &String| pattern.len() <= LONGEST_PATTERN;
        narrow.into_iter().find(fits).unwrap_or_else(|| all(&None, &None))
    }
}

fn any(tests: Vec<String>) -> Option<String> {
    match &tests[..] {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("({})", all.join(" || "))),
    }
}

fn test(field: &str, value: &str) -> String {
    format!("$.{field} = \"{value}\"")
}

fn around(part: &str) -> String {
    if part.is_empty() { "*".into() } else { format!("*{part}*") }
}

/// Splits a glob at its wildcards, and returns the longest part that CloudWatch matches literally, if any.
fn longest_part(glob: &str) -> &str {
    let parts = glob.split(['*', '?']).filter(|part| is_plain(part));
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

/// Returns true for a string that CloudWatch matches literally and that is never truncated in the log. The handler logs
/// at most 512 characters of a string.
fn is_plain(text: &str) -> bool {
    text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/$<>&".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::log::test_line;

    fn wanted(functions: &[&str], error: Option<&str>, keys: &[&str]) -> WaitingFilter {
        WaitingFilter {
            functions: functions.iter().map(|name| name.parse().unwrap()).collect(),
            error: error.map(ToOwned::to_owned),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        }
    }

    #[test]
    fn cloudwatch_filters_by_the_fields_of_a_line() {
        let every_line = r#"{ $.action = "*" && $.key = "*" }"#;
        assert_eq!(WaitingFilter::default().pattern(), every_line);
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:billing:live";
        assert_eq!(
            wanted(&["orders", arn], Some("Time*out?"), &["k-1"]).pattern(),
            r#"{ $.action = "*" && $.key = "k-1" && $.error_type = "*Time*" && ($.target = "*:function:orders*" || $.target = "*:function:billing*") }"#
        );
        assert_eq!(
            wanted(&[], Some("*"), &[]).pattern(),
            r#"{ $.action = "*" && $.key = "*" && $.error_type = "*" }"#
        );
        // The pattern leaves out strings that CloudWatch might not match literally. Only [`WaitingFilter::takes`]
        // checks them.
        assert_eq!(
            wanted(&[], Some("a\"b*c"), &["k\" || $.x = \""]).pattern(),
            r#"{ $.action = "*" && $.key = "*" && $.error_type = "*c*" }"#
        );
        let many: Vec<String> = (0..100).map(|n| format!("function-number-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(wanted(&many, None, &[]).pattern(), every_line);
        assert_eq!(
            wanted(&["orders"], None, &["k-1", "k-2"]).pattern(),
            r#"{ $.action = "*" && ($.key = "k-1" || $.key = "k-2") && $.target = "*:function:orders*" }"#
        );
        let keys: Vec<&str> = many.iter().take(50).copied().collect();
        assert_eq!(
            wanted(&["orders"], None, &keys).pattern(),
            r#"{ $.action = "*" && $.key = "*" && $.target = "*:function:orders*" }"#
        );
    }

    #[test]
    fn a_line_must_pass_every_test() {
        let target = "arn:aws:lambda:eu-west-1:123456789012:function:orders:live";
        let fields = json!({"action": "hold", "due": "2026-09-14T15:46:54Z", "delay": 60, "target": target,
                            "error_type": "com.acme.TimeoutException"});
        let event = test_line(fields).event.unwrap();
        for (functions, error, keys, expected) in [
            (&[][..], None, &[][..], true),
            (&["orders"], None, &[], true),
            (&["billing", "orders:live"], Some("Timeout"), &["k-1"], true),
            (&["orders:blue"], None, &[], false),
            (&["order"], None, &[], false),
            (&[], Some("Time*"), &[], true),
            (&[], Some("time*"), &[], false),
            (&[], None, &["k-2"], false),
            (&["billing"], Some("Timeout"), &["k-1"], false),
        ] {
            let wanted = wanted(functions, error, keys);
            assert_eq!(wanted.takes(&event), expected, "{wanted:?}");
        }
        let long = LoggedEvent { key: "k".repeat(512).into(), ..event.clone() };
        assert!(wanted(&[], None, &[&"k".repeat(600)]).takes(&long), "the log cuts it");
        let unknown = LoggedEvent { error_type: None, ..event };
        assert!(!wanted(&[], Some("*"), &[]).takes(&unknown), "its error is not known");
    }
}
