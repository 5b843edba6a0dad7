//! Directives: a function can control the retries of an event through the type of the error that it returns.

use std::time::{Duration, UNIX_EPOCH};

use comeback_backoff::requested_wait;
use serde_json::value::RawValue;
use wildmatch::WildMatch;

use crate::json::lossy_text;
use crate::time::Timestamp;

/// Maximum number of characters kept from the message of an ignored `RetryAfter`.
const LONGEST_IGNORED: usize = 64;
/// Characters that separate packages, nested classes and paths in a qualified error type.
const SEPARATORS: [char; 3] = ['.', '$', '/'];
/// The module separator in error types from Ruby and Rust.
const PATH: &[u8] = b"::";
const ENDINGS: [&str; 2] = ["Error", "Exception"];

/// A function's instruction about its event's retries, expressed by the type of the error that it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Do not retry before this time. It is always later than the failure.
    RetryAfter(Timestamp),
    /// A `RetryAfter` that is ignored, because its message does not name a time after the failure.
    Unreadable {
        /// The error's message up to the first `;`, truncated to 64 characters. Control characters are replaced.
        text: String,
        /// The reason why the error's message is unreadable. It does not quote the message.
        why: &'static str,
    },
    /// The error type is `NonRetryable`, `NonRetriable` or `NeverRetry`: do not retry.
    NonRetryable,
}

impl Directive {
    /// Returns the directive in a function's error, with durations counted from `failed_at`; `None` for an ordinary
    /// error.
    pub(crate) fn of(error_type: &str, message: Option<&RawValue>, failed_at: Timestamp) -> Option<Self> {
        match simple_name(error_type) {
            "RetryAfter" => Some(Self::retry_after(message, failed_at)),
            "NonRetryable" | "NonRetriable" | "NeverRetry" => Some(Self::NonRetryable),
            _ => None,
        }
    }

    fn retry_after(message: Option<&RawValue>, failed_at: Timestamp) -> Self {
        let unreadable = |text: &str, why| Self::Unreadable { text: safe_start(text), why };
        let Some(message) = message else { return unreadable("", "the error has no message") };
        let Some(text) = lossy_text(message) else {
            return unreadable(message.get(), "its message is not text");
        };
        match moment(&text, failed_at) {
            Ok(moment) => Self::RetryAfter(moment),
            Err(why) => unreadable(&text, why),
        }
    }
}

/// Parses the message of a `RetryAfter` error. If this fails, the returned reason does not quote the message.
fn moment(message: &str, failed_at: Timestamp) -> Result<Timestamp, &'static str> {
    let now = UNIX_EPOCH + Duration::from_millis(failed_at.as_millis());
    let wait = requested_wait(message, now).map_err(|unreadable| unreadable.reason())?;
    let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let moment = failed_at.saturating_add(Duration::from_millis(millis));
    if moment > failed_at { Ok(moment) } else { Err("its time is not after the failure") }
}

/// The start of a message, safe for a log and a terminal.
fn safe_start(message: &str) -> String {
    let start = message.split(';').next().unwrap_or_default().trim();
    let text = if start.is_empty() { message.trim() } else { start };
    let safe = |it: char| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it };
    text.chars().map(safe).take(LONGEST_IGNORED).collect()
}

/// The simple name of an `errorType`, the same for all runtimes. These parts are removed:
///
/// - Ruby's `Function<…>`, any leading `&`, and a generic `<…>` at the end
/// - the `$` and digits that compilers and bundlers append
/// - everything up to the last `.`, `$`, `::` or `/`
/// - one `Error` or `Exception` at the end, unless it is the whole name
///
/// ```
/// use comeback_engine::simple_name;
///
/// for error_type in ["RetryAfter", "RetryAfterError$1", "com.acme.Orders$RetryAfter", "Function<Acme::RetryAfter>"] {
///     assert_eq!(simple_name(error_type), "RetryAfter");
/// }
/// assert_eq!(simple_name("java.lang.Error"), "Error");
/// ```
pub fn simple_name(error_type: &str) -> &str {
    let class = class_name(error_type);
    let shorter = ENDINGS.iter().find_map(|ending| class.strip_suffix(ending));
    shorter.filter(|name| !name.is_empty()).unwrap_or(class)
}

/// The names that the globs in `NON_RETRYABLE_ERRORS` are compared with, from the whole `errorType` to its [simple
/// name](simple_name).
///
/// ```
/// let names = comeback_engine::error_names("com.acme.Orders$RefusedException");
/// assert_eq!(names[1..], ["com.acme.Orders$RefusedException", "Orders$RefusedException", "RefusedException", "Refused"]);
/// assert_eq!(comeback_engine::error_names("Function<Acme::Refused>")[1], "Acme::Refused");
/// ```
pub fn error_names(error_type: &str) -> [&str; 5] {
    let qualified = qualified_name(error_type);
    let without_package = qualified.rsplit('.').next().unwrap_or(qualified);
    [error_type, qualified, without_package, class_name(error_type), simple_name(error_type)]
}

/// Returns true if the glob matches one of the [names](error_names) of this error type.
///
/// ```
/// assert!(comeback_engine::error_matches("Refused*", "com.acme.Orders$RefusedException"));
/// assert!(!comeback_engine::error_matches("Orders", "com.acme.Orders$RefusedException"));
/// ```
pub fn error_matches(glob: &str, error_type: &str) -> bool {
    let glob = WildMatch::new(glob);
    error_names(error_type).iter().any(|name| glob.matches(name))
}

/// Removes Ruby's `Function<…>`, any leading `&`, and a generic `<…>` at the end.
fn qualified_name(error_type: &str) -> &str {
    let inner = error_type.strip_prefix("Function<").and_then(|rest| rest.strip_suffix('>'));
    let name = inner.unwrap_or(error_type).trim_start_matches('&');
    let mut open = 0;
    for (position, byte) in name.bytes().enumerate().rev() {
        match byte {
            b'>' => open += 1,
            b'<' => open -= 1,
            _ => {}
        }
        if open <= 0 {
            let is_generic = byte == b'<' && open == 0 && position > 0;
            return if is_generic { &name[..position] } else { name };
        }
    }
    name
}

fn class_name(error_type: &str) -> &str {
    let name = without_number(qualified_name(error_type));
    let last = name.rsplit(SEPARATORS).next().unwrap_or(name);
    // Names are short, so comparing each pair of bytes is faster than preparing a search for `::`.
    let pairs = last.as_bytes().windows(PATH.len());
    pairs.rev().position(|pair| pair == PATH).map_or(last, |after| &last[last.len() - after..])
}

/// Removes suffixes such as `$` and `$1`, which bundlers, Java and Scala append to the names of classes.
fn without_number(name: &str) -> &str {
    let mut name = name;
    while let Some(shorter) = name.trim_end_matches(|it: char| it.is_ascii_digit()).strip_suffix('$') {
        if shorter.is_empty() {
            break;
        }
        name = shorter;
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn directive(message: &str, failed_at: u64) -> Directive {
        let message = serde_json::value::to_raw_value(message).unwrap();
        Directive::of("RetryAfter", Some(&message), Timestamp::from_millis(failed_at)).unwrap()
    }

    #[test]
    fn an_ignored_text_is_cut_and_safe() {
        let long = format!("ſ{}", "9".repeat(1 << 20));
        for (message, shown) in [
            ("soon", "soon"),
            (" soon ; or later", "soon"),
            ("; 900", "; 900"),
            ("", ""),
            ("\u{1b}]0;x", "\u{fffd}]0"),
            ("a\nb", "a\u{fffd}b"),
            (&long, &long[..65]),
        ] {
            let Directive::Unreadable { text, why } = directive(message, 0) else {
                panic!("{message} is read")
            };
            assert_eq!((text.as_str(), why), (shown, "it does not begin with a duration or a date"));
        }
    }

    #[test]
    fn a_time_before_the_failure_is_ignored() {
        let past = |text: &str| Directive::Unreadable {
            text: text.into(),
            why: "its time is not after the failure",
        };
        for message in ["0", "0.0s", "1970-01-01T00:00:00Z"] {
            assert_eq!(directive(message, 1_000), past(message));
        }
        assert_eq!(directive("1", u64::MAX), past("1"), "no time is later");
        assert_eq!(directive("0.0001ms", 0), Directive::RetryAfter(Timestamp::from_millis(1)), "rounded up");
        let end = Timestamp::from_millis(u64::MAX);
        assert_eq!(directive("9999999999999999999d", 0), Directive::RetryAfter(end));
    }

    proptest! {
        #[test]
        fn any_text_is_a_later_moment_or_refused(
            message in prop_oneof![any::<String>(), "([0-9]{1,20} ?(ms|s|m|h|d|w|M|y)){1,4}"],
            failed_at in any::<u64>(),
        ) {
            match directive(&message, failed_at) {
                Directive::RetryAfter(moment) => prop_assert!(moment > Timestamp::from_millis(failed_at)),
                Directive::Unreadable { text, .. } => prop_assert!(text.chars().count() <= 64),
                Directive::NonRetryable => prop_assert!(false),
            }
        }
    }

    /// The tests of the SQS consumers in other languages use the same cases.
    #[test]
    fn shared_cases_give_their_simple_names() {
        #[derive(serde::Deserialize)]
        struct Case {
            error_type: String,
            name: String,
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/directives/names.json");
        let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(cases.len() > 40);
        for Case { error_type, name } in cases {
            assert_eq!(simple_name(&error_type), name, "{error_type}");
        }
    }

    proptest! {
        #[test]
        fn qualified_names_have_the_same_simple_name(
            path in "[a-z.$/]{0,12}",
            name in "[A-Z][A-Za-z]{0,12}[a-qs-z]",
            ending in "(Error|Exception)?(\\$[0-9]{0,2})?",
        ) {
            prop_assume!(!ENDINGS.iter().any(|ending| name.ends_with(ending)));
            prop_assert_eq!(simple_name(&name), name.as_str(), "a simple name stays");
            for separator in [".", "$", "::", "/"] {
                let qualified = format!("{path}{separator}{name}{ending}");
                for written in [format!("&{qualified}"), format!("Function<{qualified}>"), qualified] {
                    prop_assert_eq!(simple_name(&written), name.as_str());
                }
            }
        }
    }
}
