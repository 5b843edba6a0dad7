//! What a function asks for its own retries, by the error it fails with: the type says what, and the message of a
//! `RetryAfter` says when.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::value::RawValue;

use crate::Timestamp;
use crate::json::string;
use crate::time::seconds;

/// Bytes of a moment; the longest date has half as many.
const LONGEST_MOMENT: usize = 64;
/// Between the parts of a qualified name: packages, nested classes and paths.
const SEPARATORS: [char; 3] = ['.', '$', '/'];
/// Between modules.
const PATH: &[u8] = b"::";
const ENDINGS: [&str; 2] = ["Error", "Exception"];

/// What a function asks for its own retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `RetryAfter`: no retry before this moment, which is after the failure.
    RetryAfter(Timestamp),
    /// `RetryAfter` without such a moment in its message, and what is wrong with it. It is ignored.
    Unreadable(&'static str),
    /// `NonRetryable`, `NonRetriable` or `NeverRetry`: no retry.
    NonRetryable,
}

impl Directive {
    /// The directive in an error of this type. Its message is read only if the type is `RetryAfter`. Durations count from
    /// `failed_at`.
    pub(crate) fn of(error_type: &str, message: Option<&RawValue>, failed_at: Timestamp) -> Option<Self> {
        match simple_name(error_type) {
            "RetryAfter" => Some(match message.and_then(string) {
                Some(message) => moment(&message, failed_at).map_or_else(Self::Unreadable, Self::RetryAfter),
                None => Self::Unreadable("its message is not text"),
            }),
            "NonRetryable" | "NonRetriable" | "NeverRetry" => Some(Self::NonRetryable),
            _ => None,
        }
    }
}

/// The moment that a message names: whole seconds or a duration after `failed_at`, an RFC 3339 time or an HTTP date. It
/// ends at a `;` or with the message. A moment that is not after `failed_at` is refused. The error is logged, so it
/// quotes nothing of the message.
fn moment(message: &str, failed_at: Timestamp) -> Result<Timestamp, &'static str> {
    let text = message.split(';').next().unwrap_or_default().trim();
    if text.len() > LONGEST_MOMENT {
        return Err("its message does not begin with a duration or a date");
    }
    let moment = match seconds(text) {
        Ok(seconds) => Some(failed_at.saturating_add(Duration::from_secs(seconds))),
        Err(_) => Timestamp::from_rfc3339(text).or_else(|| http_date(text)),
    };
    match moment {
        None => Err("its message does not begin with a duration or a date"),
        Some(moment) if moment <= failed_at => Err("its moment is not after the failure"),
        Some(moment) => Ok(moment),
    }
}

fn http_date(text: &str) -> Option<Timestamp> {
    let since_epoch = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_secs(since_epoch.as_secs()))
}

/// The simple name of an `errorType`, the same whichever runtime wrote it: without Ruby's `Function<…>`, any `&`, a generic
/// `<…>` at the end, everything up to the last `.`, `$`, `::` or `/`, and one `Error` or `Exception` at the end. A name that
/// consists of such an ending stays.
///
/// ```
/// use comeback_engine::simple_name;
///
/// for error_type in ["RetryAfter", "RetryAfterError", "com.acme.Orders$RetryAfter", "Function<Acme::RetryAfter>"] {
///     assert_eq!(simple_name(error_type), "RetryAfter");
/// }
/// assert_eq!(simple_name("java.lang.Error"), "Error");
/// ```
pub fn simple_name(error_type: &str) -> &str {
    let class = class_name(error_type);
    let shorter = ENDINGS.iter().find_map(|ending| class.strip_suffix(ending));
    shorter.filter(|name| !name.is_empty()).unwrap_or(class)
}

/// The names that globs are compared with: the whole `errorType`, the same without what is around a class's name, that
/// without its package, the name of its class as written, and its [simple name](simple_name).
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

/// Without Ruby's `Function<…>`, any `&`, and a generic `<…>` at the end.
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
    let name = qualified_name(error_type);
    let last = name.rsplit(SEPARATORS).next().unwrap_or(name);
    // Names are short: to prepare a search for `::` would take longer than to look at each pair.
    let pairs = last.as_bytes().windows(PATH.len());
    pairs.rev().position(|pair| pair == PATH).map_or(last, |after| &last[last.len() - after..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-09-14T15:46:54.145Z.
    const FAILED_AT: Timestamp = Timestamp::from_millis(1_789_400_814_145);
    const UNREADABLE: Result<u64, &str> = Err("its message does not begin with a duration or a date");
    const PAST: Result<u64, &str> = Err("its moment is not after the failure");

    /// In milliseconds after the failure.
    fn read(message: &str) -> Result<u64, &'static str> {
        moment(message, FAILED_AT).map(|moment| moment.since(FAILED_AT).as_millis() as u64)
    }

    #[test]
    fn durations_count_from_the_failure() {
        for (message, seconds) in [
            ("900", 900),
            ("15m", 900),
            ("2h", 7_200),
            ("1h 30m", 5_400),
            ("14d", 1_209_600),
            ("2 weeks", 1_209_600),
            (" 900 ", 900),
            ("900;", 900),
            ("900; the quota is used up", 900),
            ("15m ;{\"900\": \"2h; 3h\"}", 900),
            ("1", 1),
        ] {
            assert_eq!(read(message), Ok(seconds * 1_000), "{message}");
        }
    }

    #[test]
    fn dates_are_moments() {
        for (message, millis) in [
            ("2026-09-14T16:46:54.145Z", 3_600_000),
            ("2026-09-14T17:46:54+01:00; when the partner opens", 3_599_855),
            ("Mon, 14 Sep 2026 16:46:54 GMT", 3_599_855),
            ("Mon, 14 Sep 2026 16:46:54 GMT; maintenance", 3_599_855),
            ("2026-09-14T15:46:54.146Z", 1),
        ] {
            assert_eq!(read(message), Ok(millis), "{message}");
        }
        assert!(read("9999-12-31T23:59:59Z").is_ok_and(|millis| millis > 250_000_000_000_000));
    }

    #[test]
    fn what_is_not_after_the_failure_is_refused() {
        for message in [
            "0",
            "0s",
            "0m; now",
            "1970-01-01T00:00:00Z",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "2026-09-14T15:46:54.145Z",
            "Mon, 14 Sep 2026 15:46:54 GMT",
        ] {
            assert_eq!(read(message), PAST, "{message}");
        }
    }

    #[test]
    fn what_is_no_duration_and_no_date_is_refused() {
        let long = format!("1{}", "0".repeat(400));
        let megabyte = "9".repeat(1 << 20);
        let padded = format!("{}900", " ".repeat(1 << 20));
        assert_eq!(read(&padded), Ok(900_000), "white space does not count");
        for message in [
            "",
            ";",
            "; 900",
            "-900",
            "900 seconds or so",
            "about 15m",
            "900,",
            "1.5",
            "500ms",
            // Months and years: nobody waits so long, and `15M` was meant as minutes.
            "15M",
            "1 month",
            "2y",
            "1e400",
            // It makes humantime panic, and so would each look at the message.
            "18446744073709551615s1000000000ns",
            "30500568904943w 7h 15s 1000000000ns",
            "18446744073709551616",
            "٩٠٠",
            "\u{0}",
            "1969-12-31T23:59:59Z",
            "2026-09-14",
            "Mon, 31 Feb 2026 16:46:54 GMT",
            "Mon, 14 Sep 2026 16:46:54 CET",
            &long,
            &megabyte,
        ] {
            assert_eq!(read(message), UNREADABLE, "{message:.40}");
        }
    }

    #[test]
    fn a_moment_past_all_time_is_its_end() {
        let end = Timestamp::from_millis(u64::MAX);
        assert_eq!(moment("18446744073709551615", FAILED_AT), Ok(end));
        assert_eq!(moment("1", end), Err("its moment is not after the failure"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_later_moment_or_refused(
            message in prop_oneof![any::<String>(), "([0-9]{1,20} ?(ns|us|ms|s|m|h|d|w|M|y)){1,4}"],
            failed_at in any::<u64>(),
        ) {
            let failed_at = Timestamp::from_millis(failed_at);
            prop_assert!(moment(&message, failed_at).is_ok_and(|it| it > failed_at) || moment(&message, failed_at).is_err());
        }
    }

    #[test]
    fn simple_names() {
        for (error_type, name) in [
            ("RetryAfter", "RetryAfter"),
            ("RetryAfterError", "RetryAfter"),
            ("RetryAfterException", "RetryAfter"),
            ("com.acme.RetryAfterException", "RetryAfter"),
            ("com.acme.Orders$RetryAfter", "RetryAfter"),
            ("orders::error::RetryAfter", "RetryAfter"),
            ("&orders::RetryAfter", "RetryAfter"),
            ("&&str", "str"),
            ("Function<Acme::RetryAfter>", "RetryAfter"),
            ("Function<&Acme::RetryAfterError>", "RetryAfter"),
            ("github.com/acme/orders.RetryAfter", "RetryAfter"),
            ("Sandbox.Timedout", "Timedout"),
            ("Runtime.ExitError", "Exit"),
            ("Größe", "Größe"),
            ("", ""),
            ("Function<>", ""),
            ("com.acme.", ""),
            ("java.lang.Exception", "Exception"),
            ("ErrorException", "Error"),
            ("RetryAfterErrorError", "RetryAfterError"),
            ("RetryAfterErrors", "RetryAfterErrors"),
            ("retryafter", "retryafter"),
            ("Acme:RetryAfter", "Acme:RetryAfter"),
            ("Function<RetryAfter", "Function<RetryAfter"),
            ("Init<RetryAfter>", "Init"),
            // Generics are not looked into.
            ("Failed<orders::RetryAfter>", "Failed"),
            ("a::RetryAfter<alloc::string::String, b::Other<c::D>>", "RetryAfter"),
            ("a::Outer<b::C>::RetryAfterError<b::C>", "RetryAfter"),
            ("<a::B as c::D>::RetryAfter", "RetryAfter"),
            ("<a::B>", "B>"),
            ("a::B>", "B>"),
            ("RetryAfter`1", "RetryAfter`1"),
        ] {
            assert_eq!(simple_name(error_type), name, "{error_type}");
        }
    }

    proptest! {
        #[test]
        fn where_a_name_comes_from_does_not_matter(
            path in "[a-z.$/]{0,12}",
            name in "[A-Z][A-Za-z]{0,12}[a-qs-z]",
            ending in "(Error|Exception)?",
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
