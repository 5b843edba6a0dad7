//! The reasons for refusing a setting.

use crate::arn::BadPattern;

/// The reason for refusing a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The value cannot be parsed, because it is not in the format that the variable requires.
    #[error("{name} is {value:?}; it must be {form}")]
    Unreadable {
        /// The variable's name, such as `MAX_AGE`.
        name: &'static str,
        /// The value as it was set.
        value: String,
        /// The required format, such as `a whole number`.
        form: String,
    },
    /// The value is outside the setting's range.
    #[error("{name} is {value}; it must be {range}")]
    OutOfRange {
        /// The variable's name, such as `MAX_AGE`.
        name: &'static str,
        /// The value, with its unit if it has one.
        value: String,
        /// The accepted range, with its unit if it has one.
        range: String,
    },
    /// `BASE_BACKOFF` is zero, or larger than `MAX_BACKOFF`.
    #[error("BASE_BACKOFF is {base} s; it must be 1 s to MAX_BACKOFF ({max} s){}", way_out(*base, *max))]
    BaseBackoff {
        /// The value of `BASE_BACKOFF`, in seconds.
        base: u64,
        /// The value of `MAX_BACKOFF`, in seconds.
        max: u64,
    },
    /// `BACKOFFS` has too many entries.
    #[error("BACKOFFS has {given} ceilings; the maximum is {entries}")]
    ManyBackoffs {
        /// The number of entries in `BACKOFFS`.
        given: usize,
        /// Maximum number of entries in `BACKOFFS`.
        entries: usize,
    },
    /// An entry in `BACKOFFS` is outside [`BACKOFF_RANGE`](crate::settings::BACKOFF_RANGE).
    #[error("BACKOFFS has a ceiling of {ceiling} s; each must be {range}")]
    Ceiling {
        /// The `BACKOFFS` entry that is out of range, in seconds.
        ceiling: u64,
        /// The accepted range for an entry in `BACKOFFS`, in words.
        range: String,
    },
    /// An entry in `BACKOFFS` is shorter than the entry before it.
    #[error("BACKOFFS falls from {from} s to {to} s; no ceiling may be shorter than the one before it")]
    FallingBackoffs {
        /// The length of the earlier entry in `BACKOFFS`, in seconds.
        from: u64,
        /// The shorter, later entry in `BACKOFFS`, in seconds.
        to: u64,
    },
    /// `JITTER` is `decorrelated`, which cannot be combined with `BACKOFFS`.
    #[error("JITTER is decorrelated; with BACKOFFS it must be full, equal or none")]
    DecorrelatedBackoffs,
    /// `BASE_BACKOFF` or `MAX_BACKOFF` is set together with `BACKOFFS`.
    #[error("{0} is set together with BACKOFFS, which replaces it; set only one of the two")]
    BesideBackoffs(&'static str),
    /// `TARGET_FUNCTIONS` is not set; an empty value would be accepted.
    #[error(
        "TARGET_FUNCTIONS is not set; list the ARNs of the functions to retry, or set it empty to keep what \
         arrives"
    )]
    NoTargetFunctions,
    /// An entry in `TARGET_FUNCTIONS` is not a function pattern.
    #[error("TARGET_FUNCTIONS entry {entry:?} {problem}")]
    TargetFunction {
        /// The entry in `TARGET_FUNCTIONS`, as written.
        entry: String,
        /// The problem with the entry in `TARGET_FUNCTIONS`.
        problem: BadPattern,
    },
    /// An entry in `TARGET_FUNCTIONS` names the handler itself.
    #[error("TARGET_FUNCTIONS entry {0:?} is the retry handler itself, which cannot be its own target")]
    HandlerAsTarget(String),
    /// An entry in `POLICIES` is refused.
    #[error("POLICIES entry {entry:?} {problem}")]
    PolicyEntry {
        /// The entry in `POLICIES`, as written.
        entry: String,
        /// The problem with the entry in `POLICIES`.
        problem: BadEntry,
    },
}

fn way_out(base: u64, max: u64) -> &'static str {
    if base > max { ": lower it, or raise MAX_BACKOFF" } else { "" }
}

/// The reason for refusing an entry in `POLICIES`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// The first word of the `POLICIES` entry is not a function pattern.
    #[error("{0}")]
    Pattern(BadPattern),
    /// The `POLICIES` entry does not set any variable.
    #[error("sets nothing; it must be a function's name or ARN, then VARIABLE=VALUE, separated by spaces")]
    Nothing,
    /// The `POLICIES` entry has a word without `=`.
    #[error("has {0:?}, which is not VARIABLE=VALUE; write values without spaces")]
    NotASetting(String),
    /// The `POLICIES` entry sets a variable that is unknown or applies to the whole queue.
    #[error("sets {name:?}; it may set {names}")]
    NotOfAFunction {
        /// The variable's name, such as `MAX_AGE`.
        name: String,
        /// The names of the variables that an entry in `POLICIES` can set, separated by commas.
        names: String,
    },
    /// The `POLICIES` entry sets a variable twice.
    #[error("sets {0} twice")]
    Twice(String),
    /// The policy that would result from the `POLICIES` entry is refused.
    #[error("is refused: {0}")]
    Refused(Box<SettingError>),
}
