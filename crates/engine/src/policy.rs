//! How retries are made: the settings with their defaults and ranges, their text in variables and flags, and the policy
//! that they make once they are checked.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use comeback_backoff::{Backoff, BackoffError, Jitter};
use comeback_envelope::Style;
use wildmatch::WildMatch;

use crate::arn::{BadPattern, FunctionPattern, HandlerFunction};
use crate::directive::error_names;
use crate::time::seconds;
use crate::timing::{LONGEST_VISIBILITY, RETENTION, VISIBILITY_MARGIN};

/// The variables that an entry of `POLICIES` may set. The others are about the queue as a whole.
pub const FUNCTION_SETTINGS: [&str; 9] = [
    "MAX_AGE",
    "MAX_RETRIES",
    "BASE_BACKOFF",
    "MAX_BACKOFF",
    "BACKOFFS",
    "JITTER",
    "ENVELOPE",
    "NON_RETRYABLE_ERRORS",
    "DIRECTIVES",
];

/// `MAX_AGE` in seconds: from a minute, in which a first retry fits, to SQS's longest retention.
pub const MAX_AGE_RANGE: RangeInclusive<u64> = 60..=RETENTION.as_secs();
/// `MAX_RETRIES`: a bound on what one chain may cost.
pub const MAX_RETRIES_RANGE: RangeInclusive<u64> = 0..=10_000;
/// `BASE_BACKOFF` and `MAX_BACKOFF` in seconds. SQS counts its 12 hours from the receive and refuses 43,200 s in practice,
/// hence 30 s less.
pub const BACKOFF_RANGE: RangeInclusive<u64> = 1..=LONGEST_VISIBILITY.as_secs() - VISIBILITY_MARGIN.as_secs();
/// The most ceilings in `BACKOFFS`.
const MOST_BACKOFFS: usize = 64;
/// `HIDE_UP_TO`, where it is a number: twice the most, and a batch for each of 1,000 pollers, are SQS's 120,000 messages
/// in flight.
pub const HIDE_UP_TO_RANGE: RangeInclusive<u64> = 0..=55_000;
/// `MAXIMUM_CONCURRENCY`: Lambda's own range of an event source mapping's `MaximumConcurrency`.
pub const MAXIMUM_CONCURRENCY_RANGE: RangeInclusive<u64> = 2..=1_000;

/// How retries are made, of all functions or of one: [`Settings`] that passed every check.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) max_age: Duration,
    pub(crate) max_retries: u64,
    pub(crate) backoff: Backoff,
    backoffs: Vec<u64>,
    pub(crate) envelope: Style,
    directives: bool,
    hide_up_to: HideUpTo,
    maximum_concurrency: u64,
    non_retryable_errors: Vec<WildMatch>,
    target_functions: Vec<FunctionPattern>,
    handler: Option<HandlerFunction>,
}

impl Policy {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// Every refused setting, not only the first.
    ///
    /// ```
    /// use comeback_engine::{Policy, Settings};
    ///
    /// let target = "arn:aws:lambda:eu-west-1:123456789012:function:orders".to_owned();
    /// let settings = Settings { target_functions: vec![target], max_age: 30, ..Settings::default() };
    /// let errors = Policy::new(settings).unwrap_err();
    /// assert_eq!(errors[0].to_string(), "MAX_AGE is 30 s; it must be 60 s to 1209600 s (14 days)");
    /// ```
    pub fn new(settings: Settings) -> Result<Self, Vec<SettingError>> {
        let mut errors = settings.refused_numbers();
        let mut target_functions = Vec::new();
        for entry in &settings.target_functions {
            match entry.parse::<FunctionPattern>() {
                Err(problem) => errors.push(SettingError::TargetFunction { entry: entry.clone(), problem }),
                Ok(pattern) if settings.handler.as_ref().is_some_and(|handler| pattern.is(handler)) => {
                    errors.push(SettingError::HandlerAsTarget(entry.clone()));
                }
                Ok(pattern) => target_functions.push(pattern),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            max_age: Duration::from_secs(settings.max_age),
            max_retries: settings.max_retries,
            backoff: settings.backoff(),
            backoffs: settings.backoffs,
            envelope: settings.envelope,
            directives: settings.directives,
            hide_up_to: settings.hide_up_to,
            maximum_concurrency: settings.maximum_concurrency,
            non_retryable_errors: settings.non_retryable_errors.iter().map(|g| WildMatch::new(g)).collect(),
            target_functions,
            handler: settings.handler,
        })
    }

    /// `MAX_AGE`: no retry later than this after the first failure.
    pub const fn max_age(&self) -> Duration {
        self.max_age
    }

    /// `MAX_RETRIES`: the most retries of one chain. A chain is a failed event and its retries; a re-invocation that was
    /// accepted without an answer, and made again, starts another.
    pub const fn max_retries(&self) -> u64 {
        self.max_retries
    }

    /// `BASE_BACKOFF` and `MAX_BACKOFF`, or `BACKOFFS`, and `JITTER`: waits of whole seconds.
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// `BACKOFFS`: the ceilings in seconds, the last repeated. Empty if they grow from `BASE_BACKOFF` to `MAX_BACKOFF`.
    pub fn backoffs(&self) -> &[u64] {
        &self.backoffs
    }

    /// `DIRECTIVES`: whether a function's own `RetryAfter` and `NonRetryable` are obeyed.
    pub const fn directives(&self) -> bool {
        self.directives
    }

    /// `HIDE_UP_TO`: how many messages may be hidden at once before waits are performed by moves.
    pub const fn hide_up_to(&self) -> HideUpTo {
        self.hide_up_to
    }

    /// `MAXIMUM_CONCURRENCY`: the event source mapping's, 2 to 1,000.
    pub const fn maximum_concurrency(&self) -> u64 {
        self.maximum_concurrency
    }

    /// Whether `TARGET_FUNCTIONS` allows the function, and it is not the handler.
    pub fn allows(&self, function_arn: &str) -> bool {
        self.entry_of(function_arn).is_some()
    }

    /// The entry of `TARGET_FUNCTIONS` that allows the function, if one does and it is not the handler.
    pub fn entry_of(&self, function_arn: &str) -> Option<&FunctionPattern> {
        let is_handler = self.handler.as_ref().is_some_and(|handler| handler.is(function_arn));
        self.target_functions.iter().find(|pattern| !is_handler && pattern.allows(function_arn))
    }

    /// Whether `TARGET_FUNCTIONS` is empty: nothing is attached yet, so every message is kept.
    pub const fn keeps_everything(&self) -> bool {
        self.target_functions.is_empty()
    }

    /// The globs of the errors that go straight to the dead-letter queue.
    pub fn non_retryable_errors(&self) -> impl Iterator<Item = String> {
        self.non_retryable_errors.iter().map(WildMatch::pattern)
    }

    /// Whether an error of this type goes straight to the dead-letter queue, by one of its [names](error_names).
    pub(crate) fn is_non_retryable(&self, error_type: &str) -> bool {
        let names = error_names(error_type);
        self.non_retryable_errors.iter().any(|glob| names.iter().any(|name| glob.matches(name)))
    }
}

/// Exponential from `base` to `cap` seconds, in whole seconds, as SQS counts.
pub(crate) fn in_seconds(base: u64, cap: u64, jitter: Jitter) -> Backoff {
    whole_seconds(Backoff::exponential(Duration::from_secs(base), Duration::from_secs(cap)), jitter)
}

fn whole_seconds(backoff: Result<Backoff, BackoffError>, jitter: Jitter) -> Backoff {
    let backoff = backoff.and_then(|backoff| backoff.with_tick(Duration::from_secs(1))?.with_jitter(jitter));
    backoff.expect("BUG: checked settings, or constants in order")
}

/// `HIDE_UP_TO`: how many messages may be hidden at once. Others wait as delayed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HideUpTo {
    /// Every message is hidden, however many there are.
    Always,
    /// About this many; with 0, every message is sent again.
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

/// The settings of a policy, unchecked. Every default stands here and only here.
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
    /// `BACKOFFS`: ceilings in seconds, the last repeated. If there are any, `base_backoff` and `max_backoff` are ignored.
    pub backoffs: Vec<u64>,
    /// `JITTER`.
    pub jitter: Jitter,
    /// `ENVELOPE`.
    pub envelope: Style,
    /// `DIRECTIVES`: whether a function's own `RetryAfter` and `NonRetryable` are obeyed.
    pub directives: bool,
    /// `HIDE_UP_TO`.
    pub hide_up_to: HideUpTo,
    /// `MAXIMUM_CONCURRENCY`: the event source mapping's, and so the most pollers.
    pub maximum_concurrency: u64,
    /// `NON_RETRYABLE_ERRORS`: `errorType` globs, `*` and `?`, of one of its [names](error_names).
    pub non_retryable_errors: Vec<String>,
    /// `TARGET_FUNCTIONS`: function ARNs, with `*` allowed in the name. Without any, every message is kept.
    pub target_functions: Vec<String>,
    /// The handler itself, where it runs as a Lambda.
    pub handler: Option<HandlerFunction>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_age: 86_400,
            // 14 days hold about 680 retries, so `MAX_AGE` always ends first.
            max_retries: 1_000,
            base_backoff: 10,
            // After any outage, every event is back within an hour of its end.
            max_backoff: 3_600,
            backoffs: Vec::new(),
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
    fn backoff(&self) -> Backoff {
        if self.backoffs.is_empty() {
            return in_seconds(self.base_backoff, self.max_backoff, self.jitter);
        }
        let ceilings = self.backoffs.iter().copied().map(Duration::from_secs);
        whole_seconds(Backoff::list(ceilings), self.jitter)
    }

    fn refused_numbers(&self) -> Vec<SettingError> {
        let Self { max_age, max_retries, hide_up_to, maximum_concurrency: pollers, .. } = *self;
        let hidden = if let HideUpTo::UpTo(messages) = hide_up_to { messages } else { 0 };
        let refused = |checks: Vec<(bool, SettingError)>| {
            checks.into_iter().filter(|(valid, _)| !valid).map(|(_, error)| error)
        };
        let limits = refused(vec![
            (MAX_AGE_RANGE.contains(&max_age), SettingError::MaxAge(max_age)),
            (MAX_RETRIES_RANGE.contains(&max_retries), SettingError::MaxRetries(max_retries)),
        ]);
        let ceilings = self.refused_ceilings();
        let queue = refused(vec![
            (HIDE_UP_TO_RANGE.contains(&hidden), SettingError::HideUpTo(hidden)),
            (MAXIMUM_CONCURRENCY_RANGE.contains(&pollers), SettingError::MaximumConcurrency(pollers)),
        ]);
        limits.chain(ceilings).chain(queue).collect()
    }

    fn refused_ceilings(&self) -> Vec<SettingError> {
        let Self { base_backoff: base, max_backoff, ref backoffs, jitter, .. } = *self;
        // Only the cap is refused if it is bad itself, not the base for it.
        let max = if BACKOFF_RANGE.contains(&max_backoff) { max_backoff } else { *BACKOFF_RANGE.end() };
        let is_list = !backoffs.is_empty();
        let outside = backoffs.iter().find(|ceiling| !BACKOFF_RANGE.contains(ceiling));
        let falling = backoffs.windows(2).find(|pair| pair[1] < pair[0]);
        let checks = [
            (!is_list && !BACKOFF_RANGE.contains(&max_backoff))
                .then_some(SettingError::MaxBackoff(max_backoff)),
            (!is_list && !(1..=max).contains(&base)).then_some(SettingError::BaseBackoff { base, max }),
            (backoffs.len() > MOST_BACKOFFS).then_some(SettingError::ManyBackoffs(backoffs.len())),
            outside.map(|&ceiling| SettingError::Ceiling(ceiling)),
            falling.map(|pair| SettingError::FallingBackoffs { from: pair[0], to: pair[1] }),
            (is_list && jitter == Jitter::Decorrelated).then_some(SettingError::DecorrelatedBackoffs),
        ];
        checks.into_iter().flatten().collect()
    }
}

/// A refused setting. Nothing is ever clamped instead.
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
    #[error("BASE_BACKOFF is {base} s; it must be 1 s to MAX_BACKOFF ({max} s){}", way_out(*base, *max))]
    BaseBackoff {
        /// `BASE_BACKOFF`.
        base: u64,
        /// `MAX_BACKOFF`.
        max: u64,
    },
    /// Over 64.
    #[error("BACKOFFS has {0} ceilings; it may have 64")]
    ManyBackoffs(usize),
    /// Outside [`BACKOFF_RANGE`].
    #[error("BACKOFFS has a ceiling of {0} s; each must be 1 s to 43170 s (12 hours less 30 s)")]
    Ceiling(u64),
    /// A list that falls.
    #[error("BACKOFFS falls from {from} s to {to} s; no ceiling may be shorter than the one before it")]
    FallingBackoffs {
        /// The longer ceiling.
        from: u64,
        /// The shorter ceiling after it.
        to: u64,
    },
    /// Decorrelated jitter has no ceilings.
    #[error("JITTER is decorrelated; beside BACKOFFS it must be full, equal or none")]
    DecorrelatedBackoffs,
    /// `BASE_BACKOFF` or `MAX_BACKOFF` is set with `BACKOFFS`.
    #[error("{0} is set beside BACKOFFS, which replaces it; set only one of the two")]
    BesideBackoffs(&'static str),
    /// Outside [`HIDE_UP_TO_RANGE`].
    #[error("HIDE_UP_TO is {0}; it must be 0 to 55000, or always")]
    HideUpTo(u64),
    /// Outside [`MAXIMUM_CONCURRENCY_RANGE`].
    #[error("MAXIMUM_CONCURRENCY is {0}; it must be 2 to 1000")]
    MaximumConcurrency(u64),
    /// Not set. Set to nothing, it would mean that no function is attached yet.
    #[error(
        "TARGET_FUNCTIONS is not set; name the function ARNs that may be re-invoked, or set it to nothing to keep what arrives"
    )]
    NoTargetFunctions,
    /// An entry that is not a pattern.
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
    /// An entry of `POLICIES`.
    #[error("POLICIES entry {entry:?} {problem}")]
    PolicyEntry {
        /// The entry.
        entry: String,
        /// What is wrong with it.
        problem: BadEntry,
    },
    /// Text that is not a value of the variable.
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

fn way_out(base: u64, max: u64) -> &'static str {
    if base > max { ": lower it, or raise MAX_BACKOFF" } else { "" }
}

/// Why an entry of `POLICIES` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// Its first word is not a pattern.
    #[error("{0}")]
    Pattern(BadPattern),
    /// It is only a pattern.
    #[error("sets nothing; it must be a function's name or ARN, then VARIABLE=VALUE, separated by spaces")]
    Nothing,
    /// A word without `=`.
    #[error("has {0:?}, which is not VARIABLE=VALUE; write values without spaces")]
    NotASetting(String),
    /// A variable that is not a function's.
    #[error("sets {0:?}; it may set {names}", names = FUNCTION_SETTINGS.join(", "))]
    NotOfAFunction(String),
    /// A variable is set again.
    #[error("sets {0} twice")]
    Twice(String),
    /// The resulting policy is refused.
    #[error("is refused: {0}")]
    Refused(Box<SettingError>),
}

impl Policy {
    /// Reads every variable of the stack's policy through `lookup`; one that is not set has its default.
    ///
    /// # Errors
    ///
    /// Every refused variable.
    ///
    /// ```
    /// use comeback_engine::Policy;
    ///
    /// let errors = Policy::from_variables(|name| match name {
    ///     "TARGET_FUNCTIONS" => Some("arn:aws:lambda:eu-west-1:123456789012:function:orders".into()),
    ///     "MAX_AGE" => Some("24h".into()),
    ///     "MAX_RETRIES" => Some("many".into()),
    ///     _ => None,
    /// });
    /// assert_eq!(errors.unwrap_err()[0].to_string(), r#"MAX_RETRIES is "many"; it must be a whole number"#);
    /// ```
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<SettingError>> {
        let mut reader = Reader { lookup, errors: Vec::new() };
        let default = Settings::default();
        let settings = Settings {
            max_age: reader.read("MAX_AGE", default.max_age, seconds),
            max_retries: reader.read("MAX_RETRIES", default.max_retries, whole_number),
            base_backoff: reader.read("BASE_BACKOFF", default.base_backoff, seconds),
            max_backoff: reader.read("MAX_BACKOFF", default.max_backoff, seconds),
            backoffs: reader.read("BACKOFFS", default.backoffs, ceilings),
            jitter: reader.read("JITTER", default.jitter, parsed),
            envelope: reader.read("ENVELOPE", default.envelope, parsed),
            directives: reader.read("DIRECTIVES", default.directives, on_or_off),
            hide_up_to: reader.read("HIDE_UP_TO", default.hide_up_to, parsed),
            maximum_concurrency: reader.read(
                "MAXIMUM_CONCURRENCY",
                default.maximum_concurrency,
                whole_number,
            ),
            non_retryable_errors: reader.list("NON_RETRYABLE_ERRORS"),
            target_functions: reader.list("TARGET_FUNCTIONS"),
            handler: reader.handler(),
        };
        let mut errors = reader.errors;
        let is_set = |name: &&str| (reader.lookup)(name).is_some();
        if is_set(&"BACKOFFS") {
            let beside = ["BASE_BACKOFF", "MAX_BACKOFF"].into_iter().filter(is_set);
            errors.extend(beside.map(SettingError::BesideBackoffs));
        }
        if (reader.lookup)("TARGET_FUNCTIONS").is_none() {
            errors.push(SettingError::NoTargetFunctions);
        }
        match Self::new(settings) {
            Ok(policy) if errors.is_empty() => Ok(policy),
            Ok(_) => Err(errors),
            Err(refused) => {
                errors.extend(refused);
                Err(errors)
            }
        }
    }
}

struct Reader<F> {
    lookup: F,
    errors: Vec<SettingError>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    /// The variable's value. One that cannot be read is noted, and its default used, so that the others are still checked.
    fn read<T>(&mut self, name: &'static str, default: T, read: fn(&str) -> Result<T, String>) -> T {
        let Some(value) = (self.lookup)(name) else { return default };
        match read(value.trim()) {
            Ok(value) => value,
            Err(expected) => {
                self.errors.push(SettingError::Unreadable { name, value, expected });
                default
            }
        }
    }

    /// A comma-separated list, without empty entries and white space around entries.
    fn list(&self, name: &str) -> Vec<String> {
        let value = (self.lookup)(name).unwrap_or_default();
        value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(Into::into).collect()
    }

    fn handler(&self) -> Option<HandlerFunction> {
        Some(HandlerFunction {
            name: (self.lookup)("AWS_LAMBDA_FUNCTION_NAME")?,
            region: (self.lookup)("AWS_REGION")?,
        })
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be on or off".into()),
    }
}

fn ceilings(text: &str) -> Result<Vec<u64>, String> {
    let ceilings: Result<_, _> = text.split(',').map(|ceiling| seconds(ceiling.trim())).collect();
    ceilings.map_err(|_| "must be whole seconds or durations, such as 20s,5m,30m,2h".into())
}

fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number".into())
}

fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
