//! The table of the retry handler's environment variables: the source of their parser, errors, flags and
//! documentation.

use std::ops::RangeInclusive;

use comeback_backoff::Jitter;
use comeback_envelope::Style;

use crate::arn::HandlerFunction;
use crate::setting::{HideUpTo, Kind, Scope, Setting, SettingError, Unset, settings};
use crate::timing::{LONGEST_VISIBILITY, RETENTION, VISIBILITY_MARGIN};

/// Range of `MAX_AGE` in seconds: from a minute to SQS's maximum retention period.
pub const MAX_AGE_RANGE: RangeInclusive<u64> = 60..=RETENTION.as_secs();
/// Range of `MAX_RETRIES`. The maximum limits the cost of one chain of retries.
pub const MAX_RETRIES_RANGE: RangeInclusive<u64> = 0..=10_000;
/// Range of `BASE_BACKOFF` and `MAX_BACKOFF` in seconds. The maximum is 30 s below SQS's limit of 12 hours. SQS counts
/// its limit from the receive, and the handler's call reaches SQS some time later.
pub const BACKOFF_RANGE: RangeInclusive<u64> = 1..=LONGEST_VISIBILITY.as_secs() - VISIBILITY_MARGIN.as_secs();
const LONGEST_BACKOFF: &str = "12 hours less 30 s";
/// Range of a numeric `HIDE_UP_TO`. [`Room`](crate::Room) derives the maximum from SQS's limit on messages in flight.
pub const HIDE_UP_TO_RANGE: RangeInclusive<u64> = 0..=55_000;
/// Range of `MAXIMUM_CONCURRENCY` that Lambda allows for an event source mapping.
pub const MAXIMUM_CONCURRENCY_RANGE: RangeInclusive<u64> = 2..=1_000;

settings! {
    "DEAD_LETTER_QUEUE_URL" {
        meaning: "the dead-letter queue",
        kind: Kind::Queue,
        default: Unset::Means("required"),
        scope: Scope::Deployment,
    }
    "TARGET_FUNCTIONS" => target_functions: Vec<String> {
        meaning: "comma-separated list of the functions that may be re-invoked",
        kind: Kind::Functions,
        default: Unset::Means("required, may be empty"),
        scope: Scope::Deployment,
    }
    "RETRY_QUEUE_URL" {
        meaning: "the retry queue",
        kind: Kind::Queue,
        default: Unset::Means("from eventSourceARN"),
        scope: Scope::Deployment,
    }
    "MAX_AGE" => max_age: u64 {
        meaning: "the latest time for a retry, counted from the first failure",
        kind: Kind::Seconds { range: MAX_AGE_RANGE, most: "14 days" },
        default: Unset::Is("24h"),
        scope: Scope::Function,
    }
    // With the default backoff, about 680 retries fit into 14 days, so an event reaches `MAX_AGE` before its 1,000th
    // retry.
    "MAX_RETRIES" => max_retries: u64 {
        meaning: "the maximum number of retries of one chain",
        kind: Kind::Number(MAX_RETRIES_RANGE),
        default: Unset::Is("1000"),
        scope: Scope::Function,
    }
    "BASE_BACKOFF" => base_backoff: u64 {
        meaning: "ceiling of the first backoff",
        kind: Kind::SecondsUpTo { range: BACKOFF_RANGE, most: "MAX_BACKOFF" },
        default: Unset::Is("10s"),
        scope: Scope::Function,
    }
    // With a cap of an hour, every event is retried within an hour of the end of an outage.
    "MAX_BACKOFF" => max_backoff: u64 {
        meaning: "cap of every backoff",
        kind: Kind::Seconds { range: BACKOFF_RANGE, most: LONGEST_BACKOFF },
        default: Unset::Is("1h"),
        scope: Scope::Function,
    }
    "BACKOFFS" => backoffs: Vec<u64> {
        meaning: "comma-separated ceilings, such as 20s,5m,30m,2h (the last one repeats), instead of \
                  BASE_BACKOFF and MAX_BACKOFF",
        kind: Kind::SecondsList { range: BACKOFF_RANGE, most: LONGEST_BACKOFF, entries: 64 },
        default: Unset::Means("none"),
        scope: Scope::Function,
    }
    "JITTER" => jitter: Jitter {
        meaning: "how a backoff is drawn under its ceiling",
        kind: Kind::Choice(&["full", "equal", "decorrelated", "none"]),
        default: Unset::Is("full"),
        scope: Scope::Function,
    }
    "ENVELOPE" => envelope: Style {
        meaning: "how a retry carries its metadata",
        kind: Kind::Choice(&["wrap", "inline"]),
        default: Unset::Is("wrap"),
        scope: Scope::Function,
    }
    "DIRECTIVES" => directives: bool {
        meaning: "whether to obey a function's RetryAfter and NonRetryable errors",
        kind: Kind::Choice(&["on", "off"]),
        default: Unset::Is("on"),
        scope: Scope::Function,
    }
    "HIDE_UP_TO" => hide_up_to: HideUpTo {
        meaning: "how many messages may be hidden at once before the handler sends messages again with a delay instead",
        kind: Kind::NumberOrAlways(HIDE_UP_TO_RANGE),
        default: Unset::Is("50000"),
        scope: Scope::Stack,
    }
    "MAXIMUM_CONCURRENCY" => maximum_concurrency: u64 {
        meaning: "the maximum pollers of the handler's event source mapping, and so of concurrent batches",
        kind: Kind::Number(MAXIMUM_CONCURRENCY_RANGE),
        default: Unset::Is("10"),
        scope: Scope::Stack,
    }
    "NON_RETRYABLE_ERRORS" => non_retryable_errors: Vec<String> {
        meaning: "comma-separated globs of errors that go straight to the dead-letter queue",
        kind: Kind::Globs,
        default: Unset::Is(""),
        scope: Scope::Function,
    }
    "POLICIES" {
        meaning: "policies of single functions, such as \"orders MAX_AGE=2h; export-* MAX_AGE=14d\"",
        kind: Kind::Policies,
        default: Unset::Is(""),
        scope: Scope::Stack,
    }
    "METRICS" {
        meaning: "the metrics that the handler writes",
        kind: Kind::Choice(&["off", "stack", "target"]),
        default: Unset::Is("off"),
        scope: Scope::Deployment,
    }
    "PAUSES" {
        meaning: "the parameter that holds the pauses",
        kind: Kind::Parameter,
        default: Unset::Means("none"),
        scope: Scope::Deployment,
    }
}

impl Setting {
    /// The setting with this name.
    ///
    /// # Panics
    ///
    /// Panics if no setting has this name.
    pub fn named(name: &str) -> &'static Self {
        SETTINGS.iter().find(|setting| setting.name == name).expect("BUG: no such setting")
    }

    /// Returns the settings that an entry in `POLICIES` may contain.
    pub fn of_functions() -> impl Iterator<Item = &'static Self> {
        SETTINGS.iter().filter(|setting| setting.scope == Scope::Function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_those_of_their_types() {
        let choices = |name| match Setting::named(name).kind {
            Kind::Choice(words) => words,
            _ => panic!("{name} is not a choice"),
        };
        assert_eq!(choices("JITTER"), Jitter::ALL.map(Jitter::name));
        assert_eq!(choices("ENVELOPE"), Style::ALL.map(Style::name));
    }
}
