use std::time::Duration;

use comeback_backoff::{Backoff, Jitter};
use comeback_envelope::Style;
use wildmatch::WildMatch;

use crate::function_arn::{BadPattern, FunctionPattern, HandlerFunction};

/// `MAX_AGE` in seconds: from a minute, the margin of the last retry, to SQS's longest retention.
pub const MAX_AGE_RANGE: std::ops::RangeInclusive<u64> = 60..=14 * 24 * 3_600;
/// `MAX_RETRIES`: a bound on what one event may cost.
pub const MAX_RETRIES_RANGE: std::ops::RangeInclusive<u64> = 0..=10_000;
/// `BASE_BACKOFF` and `MAX_BACKOFF` in seconds. SQS counts its 12 hours from the receive and
/// refuses 43,200 s in practice, hence 30 s less.
pub const BACKOFF_RANGE: std::ops::RangeInclusive<u64> = 1..=12 * 3_600 - 30;

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
    /// `NON_RETRYABLE_ERRORS`: `errorType` globs, `*` and `?`.
    pub non_retryable_errors: Vec<String>,
    /// `TARGET_FUNCTIONS`: function ARNs, `*` allowed in the name.
    pub target_functions: Vec<String>,
    /// The handler itself, where it runs as a Lambda.
    pub handler: Option<HandlerFunction>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_age: 86_400,
            // EventBridge's figure; with these defaults age ends first, after about 18 retries.
            max_retries: 185,
            base_backoff: 1,
            max_backoff: 43_170,
            jitter: Jitter::Full,
            envelope: Style::Wrap,
            non_retryable_errors: Vec::new(),
            target_functions: Vec::new(),
            handler: None,
        }
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
    /// No entry at all.
    #[error("TARGET_FUNCTIONS is empty; name at least one function ARN that may be re-invoked")]
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

/// How retries are made: [`Settings`] that were found valid.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) max_age: Duration,
    pub(crate) max_retries: u64,
    pub(crate) backoff: Backoff,
    pub(crate) envelope: Style,
    non_retryable_errors: Vec<WildMatch>,
    target_functions: Vec<FunctionPattern>,
    handler: Option<HandlerFunction>,
}

impl Policy {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// All that was refused, not only the first.
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
        let mut errors = refused_numbers(&settings);
        let mut target_functions = Vec::new();
        if settings.target_functions.is_empty() {
            errors.push(SettingError::NoTargetFunctions);
        }
        for entry in settings.target_functions {
            match entry.parse::<FunctionPattern>() {
                Err(problem) => errors.push(SettingError::TargetFunction { entry, problem }),
                Ok(pattern) if settings.handler.as_ref().is_some_and(|handler| pattern.is(handler)) => {
                    errors.push(SettingError::HandlerAsTarget(entry));
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
            backoff: Backoff {
                base: settings.base_backoff,
                cap: settings.max_backoff,
                jitter: settings.jitter,
            },
            envelope: settings.envelope,
            non_retryable_errors: settings.non_retryable_errors.iter().map(|g| WildMatch::new(g)).collect(),
            target_functions,
            handler: settings.handler,
        })
    }

    /// Whether `TARGET_FUNCTIONS` allows the function, and it is not the handler.
    pub fn allows(&self, function_arn: &str) -> bool {
        self.target_functions.iter().any(|pattern| pattern.allows(function_arn))
            && !self.handler.as_ref().is_some_and(|handler| handler.is(function_arn))
    }

    /// Whether an error of this type goes straight to the dead-letter queue.
    pub(crate) fn is_non_retryable(&self, error_type: &str) -> bool {
        self.non_retryable_errors.iter().any(|glob| glob.matches(error_type))
    }
}

fn refused_numbers(settings: &Settings) -> Vec<SettingError> {
    let Settings { max_age, max_retries, base_backoff: base, max_backoff: max, .. } = *settings;
    let checks = [
        (MAX_AGE_RANGE.contains(&max_age), SettingError::MaxAge(max_age)),
        (MAX_RETRIES_RANGE.contains(&max_retries), SettingError::MaxRetries(max_retries)),
        (BACKOFF_RANGE.contains(&max), SettingError::MaxBackoff(max)),
        ((1..=max).contains(&base), SettingError::BaseBackoff { base, max }),
    ];
    checks.into_iter().filter(|(valid, _)| !valid).map(|(_, error)| error).collect()
}
