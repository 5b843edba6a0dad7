//! Reasons to refuse a setting.

use crate::arn::BadPattern;

/// The reason to refuse a setting. Values are never clamped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Text that is not a value of the variable.
    #[error("{name} is {value:?}; it must be {form}")]
    Unreadable {
        /// The variable.
        name: &'static str,
        /// Its text.
        value: String,
        /// The form of its values.
        form: String,
    },
    /// A value outside the range of the setting.
    #[error("{name} is {value}; it must be {range}")]
    OutOfRange {
        /// The variable.
        name: &'static str,
        /// Its value, with a unit.
        value: String,
        /// The range, with a unit.
        range: String,
    },
    /// Zero, or over `MAX_BACKOFF`.
    #[error("BASE_BACKOFF is {base} s; it must be 1 s to MAX_BACKOFF ({max} s){}", way_out(*base, *max))]
    BaseBackoff {
        /// `BASE_BACKOFF`.
        base: u64,
        /// `MAX_BACKOFF`.
        max: u64,
    },
    /// `BACKOFFS` has too many entries.
    #[error("BACKOFFS has {given} ceilings; the maximum is {entries}")]
    ManyBackoffs {
        /// Its length.
        given: usize,
        /// Maximum number of entries.
        entries: usize,
    },
    /// A ceiling outside [`BACKOFF_RANGE`](crate::settings::BACKOFF_RANGE).
    #[error("BACKOFFS has a ceiling of {ceiling} s; each must be {range}")]
    Ceiling {
        /// The ceiling.
        ceiling: u64,
        /// The range.
        range: String,
    },
    /// A ceiling of `BACKOFFS` is shorter than the one before.
    #[error("BACKOFFS falls from {from} s to {to} s; no ceiling may be shorter than the one before it")]
    FallingBackoffs {
        /// The longer ceiling.
        from: u64,
        /// The shorter ceiling after it.
        to: u64,
    },
    /// Decorrelated jitter has no ceilings.
    #[error("JITTER is decorrelated; with BACKOFFS it must be full, equal or none")]
    DecorrelatedBackoffs,
    /// `BASE_BACKOFF` or `MAX_BACKOFF` is set with `BACKOFFS`.
    #[error("{0} is set together with BACKOFFS, which replaces it; set only one of the two")]
    BesideBackoffs(&'static str),
    /// `TARGET_FUNCTIONS` is not set. An empty value would mean that no function is attached yet.
    #[error(
        "TARGET_FUNCTIONS is not set; list the ARNs of the functions to retry, or set it empty to keep what \
         arrives"
    )]
    NoTargetFunctions,
    /// An entry that is not a pattern.
    #[error("TARGET_FUNCTIONS entry {entry:?} {problem}")]
    TargetFunction {
        /// The entry.
        entry: String,
        /// The mistake in it.
        problem: BadPattern,
    },
    /// An entry that names the handler.
    #[error("TARGET_FUNCTIONS entry {0:?} is the retry handler itself, which cannot be its own target")]
    HandlerAsTarget(String),
    /// An entry of `POLICIES`.
    #[error("POLICIES entry {entry:?} {problem}")]
    PolicyEntry {
        /// The entry.
        entry: String,
        /// The mistake in it.
        problem: BadEntry,
    },
}

fn way_out(base: u64, max: u64) -> &'static str {
    if base > max { ": lower it, or raise MAX_BACKOFF" } else { "" }
}

/// The reason to refuse an entry of `POLICIES`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// Its first word is not a pattern.
    #[error("{0}")]
    Pattern(BadPattern),
    /// The entry sets nothing.
    #[error("sets nothing; it must be a function's name or ARN, then VARIABLE=VALUE, separated by spaces")]
    Nothing,
    /// A word without `=`.
    #[error("has {0:?}, which is not VARIABLE=VALUE; write values without spaces")]
    NotASetting(String),
    /// A variable that an entry cannot set.
    #[error("sets {name:?}; it may set {names}")]
    NotOfAFunction {
        /// The variable.
        name: String,
        /// Variables that it can set.
        names: String,
    },
    /// A variable is set twice.
    #[error("sets {0} twice")]
    Twice(String),
    /// The resulting policy is refused.
    #[error("is refused: {0}")]
    Refused(Box<SettingError>),
}
