//! | file | holds |
//! |---|---|
//! | `settings` | [`Settings`]: the values as they are set, with their defaults and ranges |
//! | `variables` | the same values as text, as the environment and the command's flags give them |
//! | `function_arn` | [`FunctionPattern`]: which functions may be invoked |

pub(crate) mod function_arn;
pub(crate) mod settings;
pub(crate) mod variables;

use std::time::Duration;

use comeback_backoff::Backoff;
use comeback_envelope::Style;
use wildmatch::WildMatch;

use crate::directive::simple_name::simple_name;
use function_arn::{FunctionPattern, HandlerFunction};
use settings::{HideUpTo, SettingError, Settings};

/// How retries are made: [`Settings`] that were found valid.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) max_age: Duration,
    pub(crate) max_retries: u64,
    pub(crate) backoff: Backoff,
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
        let mut errors = settings.refused_numbers();
        let mut target_functions = Vec::new();
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
            backoff: Backoff::new(settings.base_backoff, settings.max_backoff, settings.jitter),
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

    /// `MAX_RETRIES`: the retries of one chain at most. A chain is a failed event and its retries; a
    /// re-invocation that was accepted without an answer, and made again, starts another.
    pub const fn max_retries(&self) -> u64 {
        self.max_retries
    }

    /// `BASE_BACKOFF`, `MAX_BACKOFF` (both in seconds) and `JITTER`.
    pub const fn backoff(&self) -> Backoff {
        self.backoff
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

    /// Whether an error of this type goes straight to the dead-letter queue, by its whole type or its simple name.
    pub(crate) fn is_non_retryable(&self, error_type: &str) -> bool {
        let matches = |glob: &WildMatch| glob.matches(error_type) || glob.matches(simple_name(error_type));
        self.non_retryable_errors.iter().any(matches)
    }
}
