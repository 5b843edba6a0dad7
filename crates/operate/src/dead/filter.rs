//! The filter that a command uses to select dead-letters.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_engine::{DeadLetterKind, LossyText, ReasonCode, ReceivedDeadLetter, Timestamp, error_matches};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::command::command_line;
use crate::durations;
use crate::function::FunctionName;
use crate::shown::shown;

/// The reason reported for an invocation record that SQS moved to the dead-letter queue after too many receives.
const MAX_RECEIVE_COUNT: &str = "max_receive_count";

/// A filter for dead-letters. All its conditions must hold. A message in an unknown format matches only the empty
/// filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The reason why the event was dead-lettered, as [`read_reason`] returns it.
    pub reason: Option<&'static str>,
    /// The dead-letter's function; a name without a qualifier also matches all versions and aliases.
    pub target: Option<FunctionName>,
    /// A glob pattern that must match the error's type, class name or simple name.
    pub error: Option<String>,
    /// The dead-letter must be older than this duration.
    pub older: Option<Duration>,
    /// The dead-letter must be younger than this duration.
    pub newer: Option<Duration>,
    /// The range of accepted retry counts.
    pub retries: Option<RangeInclusive<u64>>,
    /// The key that the event must have.
    pub key: Option<String>,
    /// Tests on the event's payload, all of which must hold.
    pub payload: Vec<PayloadTest>,
}

impl Filter {
    /// Returns true if the filter has no conditions.
    pub fn takes_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if a dead-letter meets all of the filter's conditions at the time `now`.
    pub fn takes(&self, dead_letter: &ReceivedDeadLetter<'_>, now: Timestamp) -> bool {
        let age = now.since(dead_letter.dead_lettered_at);
        self.takes_everything()
            || dead_letter.kind != DeadLetterKind::Unknown
                && self.reason.is_none_or(|reason| reason == reason_of(dead_letter))
                && holds(&self.target, &dead_letter.function_arn, |target, arn| target.names(arn))
                && holds(&self.error, &dead_letter.error_type, |glob, error| error_matches(glob, error))
                && self.older.is_none_or(|older| age > older)
                && self.newer.is_none_or(|newer| age < newer)
                && holds(&self.retries, &dead_letter.retries_made, RangeInclusive::contains)
                && holds(&self.key, &dead_letter.key, |key, other| key == other)
                && self.takes_payload(dead_letter)
    }

    fn takes_payload(&self, dead_letter: &ReceivedDeadLetter<'_>) -> bool {
        let holds =
            |test: &PayloadTest| dead_letter.payload.as_ref().is_some_and(|payload| test.holds(payload));
        self.payload.iter().all(holds)
    }

    /// The filter as flags for a suggested command.
    pub fn flags(&self) -> Vec<String> {
        let flags = [
            ("reason", self.reason.map(ToOwned::to_owned)),
            ("target", self.target.as_ref().map(ToString::to_string)),
            ("error", self.error.clone()),
            ("older", self.older.map(durations::flag)),
            ("newer", self.newer.map(durations::flag)),
            ("retries", self.retries.as_ref().map(retries_text)),
            ("key", self.key.clone()),
        ];
        let payload = self.payload.iter().map(|test| ("payload", format!("{}={}", test.pointer, test.value)));
        let set = flags.into_iter().filter_map(|(name, value)| Some((name, value?)));
        set.chain(payload).map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

/// Formats the filter's flags for a shell, with control characters escaped.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.flags();
        let flags: Vec<_> = flags.iter().map(|flag| shown(flag)).collect();
        f.write_str(&command_line(flags.iter().map(AsRef::as_ref)))
    }
}

/// Returns true if no test is set, or if the fact is known and, according to `of`, passes the test.
fn holds<T, F>(test: &Option<T>, fact: &Option<F>, of: impl Fn(&T, &F) -> bool) -> bool {
    test.as_ref().is_none_or(|test| fact.as_ref().is_some_and(|fact| of(test, fact)))
}

/// The name of a dead-letter's reason: the handler's reason code, `max_receive_count` if SQS moved the message, or
/// `unknown` for an unknown format.
pub fn reason_of(dead_letter: &ReceivedDeadLetter<'_>) -> &'static str {
    match (dead_letter.reason, dead_letter.kind) {
        (Some(reason), _) => reason.name(),
        (None, DeadLetterKind::Unknown) => "unknown",
        (None, _) => MAX_RECEIVE_COUNT,
    }
}

/// Parses a reason: one of the handler's, or `max_receive_count` for messages that SQS moved to the dead-letter queue.
///
/// # Errors
///
/// Fails if the text is not one of these names. The error lists them all.
pub fn read_reason(text: &str) -> Result<&'static str, String> {
    let all: Vec<_> = ReasonCode::ALL.iter().map(|code| code.name()).chain([MAX_RECEIVE_COUNT]).collect();
    let found = all.iter().find(|name| **name == text).copied();
    found.ok_or_else(|| format!("{text:?} is not a reason; the reasons are {}", all.join(", ")))
}

/// Parses a condition on the number of retries, such as `>5`, `>=5`, `<5`, `<=5`, `=5` or `5`.
///
/// # Errors
///
/// Fails if the text does not have one of these forms.
pub fn read_retries(text: &str) -> Result<RangeInclusive<u64>, String> {
    let test = text.trim();
    let number = test.trim_start_matches(['<', '>', '=']);
    let bad = || format!("{text:?} is not a number of retries; use '>5', '>=5', '<5', '<=5' or '5'");
    let limit: u64 = number.trim().parse().map_err(|_| bad())?;
    Ok(match &test[..test.len() - number.len()] {
        ">" => limit.saturating_add(1)..=u64::MAX,
        ">=" => limit..=u64::MAX,
        // No count is below 0, so `<0` is an empty range.
        "<" => limit.checked_sub(1).map_or(RangeInclusive::new(1, 0), |most| 0..=most),
        "<=" => 0..=limit,
        "=" | "" => limit..=limit,
        _ => return Err(bad()),
    })
}

/// The inverse of [`read_retries`].
fn retries_text(retries: &RangeInclusive<u64>) -> String {
    match (*retries.start(), *retries.end()) {
        _ if retries.is_empty() => "<0".into(),
        (least, most) if least == most => least.to_string(),
        (0, most) => format!("<={most}"),
        (least, _) => format!(">={least}"),
    }
}

/// A condition on the value at a JSON pointer in the payload: `/customer/id=42` matches both `42` and `"42"`.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadTest {
    pointer: String,
    value: String,
}

impl PayloadTest {
    /// Parses a JSON pointer and a value, separated by `=`.
    ///
    /// # Errors
    ///
    /// Fails if the text does not have this form.
    pub fn read(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('=').filter(|(pointer, _)| pointer.is_empty() || pointer.starts_with('/'));
        let (pointer, value) = parts.ok_or_else(|| {
            format!("{text:?} is not a JSON pointer and a value, such as '/customer/id=42'")
        })?;
        Ok(Self { pointer: pointer.to_owned(), value: value.to_owned() })
    }

    fn holds(&self, payload: &RawValue) -> bool {
        let found = self.pointer.split('/').skip(1).try_fold(payload, member);
        found.is_some_and(|found| {
            let json = serde_json::from_str(&self.value);
            parsed::<LossyText<'_>>(found).is_some_and(|LossyText(text)| text == *self.value)
                || json.is_ok_and(|json| is_same(json, found))
        })
    }
}

/// Looks up one token of a JSON pointer in an object or an array.
fn member<'j>(json: &'j RawValue, token: &str) -> Option<&'j RawValue> {
    let name = token.replace("~1", "/").replace("~0", "~");
    match parsed::<Members<'_>>(json) {
        Some(members) => members.get(&LossyText(name.into())).copied(),
        None => parsed::<Vec<_>>(json)?.get(name.parse::<usize>().ok()?).copied(),
    }
}

/// The members of a JSON object, whose names may contain lone surrogates.
type Members<'j> = BTreeMap<LossyText<'j>, &'j RawValue>;

/// Returns true if two JSON values are equal; compares numbers as text, because a float would round a long id.
fn is_same(one: &RawValue, other: &RawValue) -> bool {
    if let (Some(one), Some(other)) = (parsed::<Vec<&RawValue>>(one), parsed::<Vec<_>>(other)) {
        return one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other));
    }
    if let (Some(one), Some(other)) = (parsed::<Members<'_>>(one), parsed::<Members<'_>>(other)) {
        let is_in_other = |(name, value): (&LossyText<'_>, &&RawValue)| {
            other.get(name).is_some_and(|other| is_same(value, other))
        };
        return one.len() == other.len() && one.iter().all(is_in_other);
    }
    one.get() == other.get()
        || parsed::<LossyText<'_>>(one).is_some_and(|one| parsed(other).as_ref() == Some(&one))
}

fn parsed<'j, T: Deserialize<'j>>(json: &'j RawValue) -> Option<T> {
    serde_json::from_str(json.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead::testing::{NOW, ORDERS, SampleDeadLetter, event, malformed, received, record, unknown};

    /// Returns true if the filter matches an hour-old dead-letter with seven retries and a `TimeoutException`.
    fn takes(filter: Filter) -> bool {
        let now = Timestamp::from_secs(1_000_003_600);
        filter.takes(&received(&event("com.acme.TimeoutException")).dead_letter(), now)
    }

    fn only(set: impl FnOnce(&mut Filter)) -> Filter {
        let mut filter = Filter::default();
        set(&mut filter);
        filter
    }

    type Set<'s> = &'s dyn Fn(&mut Filter);

    #[test]
    fn all_set_tests_must_hold() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
        let reason = |name: &str| Some(read_reason(name).unwrap());
        let target = |name: &str| Some(name.parse().unwrap());
        let tests: [(Set<'_>, bool); 18] = [
            (&|_| (), true),
            (&|it| it.reason = reason("max_age"), true),
            (&|it| it.reason = reason("max_retries"), false),
            (&|it| it.target = target("orders"), true),
            (&|it| it.target = target(ORDERS), true),
            (&|it| it.target = target("orders:live"), false),
            (&|it| it.error = Some("Time*".into()), true),
            (&|it| it.error = Some("time*".into()), false),
            (&|it| it.error = Some("TimeoutException".into()), true),
            (&|it| it.error = Some("Timeout".into()), true),
            (&|it| it.error = Some("com.acme.Time*".into()), true),
            (&|it| it.older = Some(Duration::from_secs(3_599)), true),
            (&|it| it.older = hours(1), false),
            (&|it| it.newer = hours(1), false),
            (&|it| it.newer = hours(2), true),
            (&|it| it.key = Some("another".into()), false),
            (&|it| it.retries = Some(7..=7), true),
            (&|it| (it.reason, it.target) = (reason("max_age"), target("payments")), false),
        ];
        for (set, expected) in tests {
            let filter = only(|filter| set(filter));
            assert_eq!(takes(filter.clone()), expected, "{filter:?}");
        }
    }

    #[test]
    fn key_selects_one_event() {
        let dead_letter = event("Timeout");
        let filter = only(|filter| filter.key = Some(dead_letter.key.clone()));
        assert!(filter.takes(&received(&dead_letter).dead_letter(), NOW));
    }

    #[test]
    fn unknown_fact_matches_no_test() {
        let other = unknown();
        let taken_by_sqs = record("Timeout");
        let takes = |filter: Filter, dead_letter| filter.takes(&received(dead_letter).dead_letter(), NOW);
        assert!(takes(Filter::default(), &other), "without any test, everything is taken");
        assert!(!takes(only(|it| it.older = Some(Duration::ZERO)), &other), "it has no age to match");
        assert!(takes(only(|it| it.reason = Some(MAX_RECEIVE_COUNT)), &taken_by_sqs));
        assert!(takes(only(|it| it.retries = Some(0..=0)), &taken_by_sqs));
        assert!(!takes(only(|it| it.error = Some("*".into())), &malformed()));
    }

    #[test]
    fn payload_is_searched_by_pointer() {
        let payload = r#"{"id": 42, "name": "42", "list": [true, null], "a/b": "x", "k=v": 1, "long": 12345678901234567890123,
            "by": "held by \ud83d", "\udc00": 0, "deep": {"list": [12345678901234567890123, "é"], "at": 7}}"#;
        let body = event("E").body;
        let start = body.find(r#","payload":"#).unwrap();
        let body = format!(r#"{},"payload":{payload}}}"#, &body[..start]);
        let dead_letter = received(&SampleDeadLetter { body, ..event("E") });
        for (test, expected) in [
            ("/id=42", true),
            ("/id=43", false),
            ("/name=42", true),
            (r#"/name="42""#, true),
            ("/list/0=true", true),
            ("/list/1=null", true),
            ("/list/2=null", false),
            ("/list=[true,null]", true),
            ("/a~1b=x", true),
            ("/nowhere=", false),
            ("/long=12345678901234567890123", true),
            ("/long=12345678901234567890124", false),
            ("/deep={\"at\":7, \"list\":[12345678901234567890123,\"\\u00e9\"]}", true),
            ("/deep={\"at\":7, \"list\":[12345678901234567890124,\"\\u00e9\"]}", false),
            ("/deep/at={}", false),
            ("/by=held by \u{fffd}", true),
            (r#"/by="held by \ud83d""#, true),
            ("/by=held by ", false),
            ("/\u{fffd}=0", true),
        ] {
            let filter = only(|filter| filter.payload = vec![PayloadTest::read(test).unwrap()]);
            assert_eq!(filter.takes(&dead_letter.dead_letter(), NOW), expected, "{test}");
        }
        let both = ["/id=42", "/name=x"].map(|test| PayloadTest::read(test).unwrap()).to_vec();
        assert!(!only(|filter| filter.payload = both).takes(&dead_letter.dead_letter(), NOW));
    }

    #[test]
    fn retries_are_compared() {
        let sevens =
            [(">6", true), (">7", false), (">=7", true), ("<7", false), ("<= 7", true), ("=7", true)];
        for (test, expected) in sevens {
            assert_eq!(takes(only(|it| it.retries = Some(read_retries(test).unwrap()))), expected, "{test}");
        }
    }

    #[test]
    fn filter_writes_its_own_flags() {
        let filter = Filter {
            reason: Some("max_age"),
            target: Some("orders:live".parse().unwrap()),
            error: Some("Time*".into()),
            older: Some(Duration::from_secs(90)),
            newer: None,
            retries: Some(read_retries(">5").unwrap()),
            key: Some("k 1".into()),
            payload: vec![PayloadTest::read("/id=a=b").unwrap()],
        };
        let flags = "--reason=max_age --target=orders:live --error=Time* --older=1m30s --retries=>=6 --key=k 1 \
                     --payload=/id=a=b";
        assert_eq!(filter.flags().join(" "), flags);
        for test in [">5", ">=5", "<5", "<=5", "5", "<0", ">0"] {
            let retries = read_retries(test).unwrap();
            assert_eq!(read_retries(&retries_text(&retries)).unwrap(), retries, "{test}");
        }
    }

    #[test]
    fn filter_with_a_nul_is_shown() {
        let filter = Filter { error: Some("Time\0out".into()), ..Filter::default() };
        assert_eq!(filter.to_string(), r#""--error=Time\\u{0}out""#);
    }

    #[test]
    fn unreadable_values_are_refused() {
        let refused = read_reason("max_age2").unwrap_err();
        let expected = "\"max_age2\" is not a reason; the reasons are max_retries, max_age, non_retryable_error, \
        target_not_found, target_refused, target_not_allowed, payload_too_large, malformed_record, \
        malformed_envelope, payload_lost, cancelled, max_receive_count";
        assert_eq!(refused, expected);
        for text in ["", ">", "=>5", "five", "-1", "5.0"] {
            let refused = read_retries(text).unwrap_err();
            let expected =
                format!("{text:?} is not a number of retries; use '>5', '>=5', '<5', '<=5' or '5'");
            assert_eq!(refused, expected);
        }
        for text in ["", "/id", "id=42"] {
            let refused = PayloadTest::read(text).unwrap_err();
            let expected = format!("{text:?} is not a JSON pointer and a value, such as '/customer/id=42'");
            assert_eq!(refused, expected);
        }
    }
}
