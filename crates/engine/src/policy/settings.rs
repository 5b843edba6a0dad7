use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use comeback_backoff::Jitter;
use comeback_envelope::Style;

use crate::policy::function_arn::{BadPattern, HandlerFunction};

/// `MAX_AGE` in seconds: from a minute, in which a first retry fits, to SQS's longest retention.
pub const MAX_AGE_RANGE: RangeInclusive<u64> = 60..=14 * 24 * 3_600;
/// `MAX_RETRIES`: a bound on what one chain may cost.
pub const MAX_RETRIES_RANGE: RangeInclusive<u64> = 0..=10_000;
/// `BASE_BACKOFF` and `MAX_BACKOFF` in seconds. SQS counts its 12 hours from the receive and
/// refuses 43,200 s in practice, hence 30 s less.
pub const BACKOFF_RANGE: RangeInclusive<u64> = 1..=12 * 3_600 - 30;

/// `HIDE_UP_TO`, where it is a number: twice the most, and a batch of each of 1,000 pollers, are SQS's
/// 120,000 messages in flight.
pub const HIDE_UP_TO_RANGE: RangeInclusive<u64> = 0..=55_000;
/// `MAXIMUM_CONCURRENCY`: Lambda's own range of an event source mapping's `MaximumConcurrency`.
pub const MAXIMUM_CONCURRENCY_RANGE: RangeInclusive<u64> = 2..=1_000;

/// `HIDE_UP_TO`: how many messages may be hidden at once, about. Others wait as delayed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HideUpTo {
    /// Every message is hidden, however many there are.
    Always,
    /// So many; with 0, every message is sent again.
    UpTo(u64),
}

impl FromStr for HideUpTo {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "always" => Ok(Self::Always),
            _ => text.parse().map(Self::UpTo).map_err(|_| "must be 0 to 55000, or always"),
        }
    }
}

impl fmt::Display for HideUpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::UpTo(messages) => messages.fmt(f),
        }
    }
}

/// What a policy is made from; unchecked. The defaults of every setting stand here and only here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `MAX_AGE`, in seconds.
    pub max_age: u64,
    /// `MAX_RETRIES`.
    pub max_retries: u64,
    /// `BASE_BACKOFF`, in seconds.
    pub base_backoff: u64,
    /// `MAX_BACKOFF`, in seconds.
    pub max_backoff: u64,
    /// `JITTER`.
    pub jitter: Jitter,
    /// `ENVELOPE`.
    pub envelope: Style,
    /// `DIRECTIVES`: whether a function's own `RetryAfter` and `NonRetryable` are obeyed.
    pub directives: bool,
    /// `HIDE_UP_TO`.
    pub hide_up_to: HideUpTo,
    /// `MAXIMUM_CONCURRENCY`: the event source mapping's, so the most pollers there can be.
    pub maximum_concurrency: u64,
    /// `NON_RETRYABLE_ERRORS`: `errorType` globs, `*` and `?`, of the whole type or its simple name.
    pub non_retryable_errors: Vec<String>,
    /// `TARGET_FUNCTIONS`: function ARNs, `*` allowed in the name. Without any, every message is kept.
    pub target_functions: Vec<String>,
    /// The handler itself, where it runs as a Lambda.
    pub handler: Option<HandlerFunction>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_age: 86_400,
            // EventBridge's figure; with these defaults age ends first, after about 19 retries.
            max_retries: 185,
            base_backoff: 1,
            max_backoff: 43_170,
            jitter: Jitter::Full,
            envelope: Style::Wrap,
            directives: true,
            hide_up_to: HideUpTo::UpTo(50_000),
            maximum_concurrency: 10,
            non_retryable_errors: Vec::new(),
            target_functions: Vec::new(),
            handler: None,
        }
    }
}

impl Settings {
    pub(crate) fn refused_numbers(&self) -> Vec<SettingError> {
        let Self { max_age, max_retries, base_backoff: base, max_backoff, .. } = *self;
        let Self { hide_up_to, maximum_concurrency: pollers, .. } = *self;
        let hidden = if let HideUpTo::UpTo(messages) = hide_up_to { messages } else { 0 };
        // A base is not refused for a cap that is refused itself.
        let max = if BACKOFF_RANGE.contains(&max_backoff) { max_backoff } else { *BACKOFF_RANGE.end() };
        let checks = [
            (MAX_AGE_RANGE.contains(&max_age), SettingError::MaxAge(max_age)),
            (MAX_RETRIES_RANGE.contains(&max_retries), SettingError::MaxRetries(max_retries)),
            (BACKOFF_RANGE.contains(&max_backoff), SettingError::MaxBackoff(max_backoff)),
            ((1..=max).contains(&base), SettingError::BaseBackoff { base, max }),
            (HIDE_UP_TO_RANGE.contains(&hidden), SettingError::HideUpTo(hidden)),
            (MAXIMUM_CONCURRENCY_RANGE.contains(&pollers), SettingError::MaximumConcurrency(pollers)),
        ];
        checks.into_iter().filter(|(valid, _)| !valid).map(|(_, error)| error).collect()
    }
}

/// A setting that was refused. Nothing is ever clamped instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Outside [`MAX_AGE_RANGE`].
    #[error("MAX_AGE is {0} s; it must be 60 s to 1209600 s (14 days)")]
    MaxAge(u64),
    /// Outside [`MAX_RETRIES_RANGE`].
    #[error("MAX_RETRIES is {0}; it must be 0 to 10000")]
    MaxRetries(u64),
    /// Outside [`BACKOFF_RANGE`].
    #[error("MAX_BACKOFF is {0} s; it must be 1 s to 43170 s (12 hours less 30 s)")]
    MaxBackoff(u64),
    /// Zero, or over `MAX_BACKOFF`.
    #[error("BASE_BACKOFF is {base} s; it must be 1 s to MAX_BACKOFF ({max} s)")]
    BaseBackoff {
        /// `BASE_BACKOFF`.
        base: u64,
        /// `MAX_BACKOFF`.
        max: u64,
    },
    /// Outside [`HIDE_UP_TO_RANGE`].
    #[error("HIDE_UP_TO is {0}; it must be 0 to 55000, or always")]
    HideUpTo(u64),
    /// Outside [`MAXIMUM_CONCURRENCY_RANGE`].
    #[error("MAXIMUM_CONCURRENCY is {0}; it must be 2 to 1000")]
    MaximumConcurrency(u64),
    /// Not set, which is not the same as set to nothing: then nothing is attached yet.
    #[error(
        "TARGET_FUNCTIONS is not set; name the function ARNs that may be re-invoked, or set it to nothing to keep what arrives"
    )]
    NoTargetFunctions,
    /// An entry that is no pattern.
    #[error("TARGET_FUNCTIONS entry {entry:?} {problem}")]
    TargetFunction {
        /// The entry.
        entry: String,
        /// What is wrong with it.
        problem: BadPattern,
    },
    /// An entry that names the handler.
    #[error("TARGET_FUNCTIONS entry {0:?} is the retry handler itself, which must never be its own target")]
    HandlerAsTarget(String),
    /// Text that is no value of the variable.
    #[error("{name} is {value:?}; it {expected}")]
    Unreadable {
        /// The variable.
        name: &'static str,
        /// Its text.
        value: String,
        /// What it must be.
        expected: String,
    },
}
