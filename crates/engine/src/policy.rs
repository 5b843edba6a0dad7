//! A policy: settings that have passed every check.

use std::time::Duration;

use comeback_backoff::{Backoff, BackoffError, Jitter};
use wildmatch::WildMatch;

use crate::arn::FunctionPattern;
use crate::directive::error_names;
use crate::setting::{Kind, Setting, SettingError};
use crate::settings::{BACKOFF_RANGE, Settings};

/// The variables that must not be set together with `BACKOFFS`, which replaces them.
pub(crate) const REPLACED_BY_BACKOFFS: [&str; 2] = ["BASE_BACKOFF", "MAX_BACKOFF"];

/// [`Settings`] that have passed every check.
#[derive(Clone, Debug)]
pub struct Policy {
    settings: Settings,
    backoff: Backoff,
    non_retryable_errors: Vec<WildMatch>,
    target_functions: Vec<FunctionPattern>,
}

impl Policy {
    /// Checks all settings and creates a policy from them.
    ///
    /// # Errors
    ///
    /// Returns an error for every invalid setting.
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
        let mut errors = settings.refused();
        let mut target_functions = Vec::new();
        let mut refuse = |entry: &str, problem: &str| {
            errors.push(SettingError(format!("TARGET_FUNCTIONS entry {entry:?} {problem}")));
        };
        for entry in &settings.target_functions {
            match entry.parse::<FunctionPattern>() {
                Err(problem) => refuse(entry, &problem.to_string()),
                Ok(pattern) if settings.handler.as_ref().is_some_and(|handler| pattern.is(handler)) => {
                    refuse(entry, "is the retry handler itself, which cannot be its own target");
                }
                Ok(pattern) => target_functions.push(pattern),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let non_retryable_errors = settings.non_retryable_errors.iter().map(|glob| WildMatch::new(glob));
        Ok(Self {
            backoff: settings.backoff(),
            non_retryable_errors: non_retryable_errors.collect(),
            target_functions,
            settings,
        })
    }

    /// The settings that the policy was made from.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The value of `MAX_AGE`: the longest time from the first failure to a retry.
    pub const fn max_age(&self) -> Duration {
        Duration::from_secs(self.settings.max_age)
    }

    /// The backoff, in whole seconds.
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// Returns true if `TARGET_FUNCTIONS` allows the function and the function is not the handler itself.
    pub fn allows(&self, function_arn: &str) -> bool {
        self.entry_of(function_arn).is_some()
    }

    /// The entry of `TARGET_FUNCTIONS` that allows the function. `None` if no entry does, or if the function is the
    /// handler itself.
    pub fn entry_of(&self, function_arn: &str) -> Option<&FunctionPattern> {
        let is_handler = self.settings.handler.as_ref().is_some_and(|handler| handler.is(function_arn));
        self.target_functions.iter().find(|pattern| !is_handler && pattern.allows(function_arn))
    }

    /// Returns true if `TARGET_FUNCTIONS` is empty. The handler then keeps every message.
    pub const fn keeps_everything(&self) -> bool {
        self.target_functions.is_empty()
    }

    pub(crate) fn is_non_retryable(&self, error_type: &str) -> bool {
        let names = error_names(error_type);
        self.non_retryable_errors.iter().any(|glob| names.iter().any(|name| glob.matches(name)))
    }
}

/// Returns an exponential backoff in whole seconds, with this base and cap in seconds.
pub(crate) fn in_seconds(base: u64, cap: u64, jitter: Jitter) -> Backoff {
    whole_seconds(Backoff::exponential(Duration::from_secs(base), Duration::from_secs(cap)), jitter)
}

fn whole_seconds(backoff: Result<Backoff, BackoffError>, jitter: Jitter) -> Backoff {
    let backoff = backoff.and_then(|backoff| backoff.with_tick(Duration::from_secs(1))?.with_jitter(jitter));
    backoff.expect("BUG: checked settings, or constants in order")
}

impl Settings {
    fn backoff(&self) -> Backoff {
        if self.backoffs.is_empty() {
            return in_seconds(self.base_backoff, self.max_backoff, self.jitter);
        }
        let ceilings = self.backoffs.iter().copied().map(Duration::from_secs);
        whole_seconds(Backoff::list(ceilings), self.jitter)
    }

    fn refused(&self) -> Vec<SettingError> {
        let has_list = !self.backoffs.is_empty();
        let applies = |name: &str| !(has_list && REPLACED_BY_BACKOFFS.contains(&name));
        let out_of_range = self.out_of_range().filter(|(name, _)| applies(name)).map(|(_, error)| error);
        let of_backoff =
            if has_list { self.refused_list() } else { self.refused_base().into_iter().collect() };
        out_of_range.chain(of_backoff.into_iter().map(SettingError)).collect()
    }

    fn refused_base(&self) -> Option<String> {
        let Self { base_backoff: base, max_backoff, .. } = *self;
        // If `MAX_BACKOFF` is out of range, `BASE_BACKOFF` is checked against the end of that range, so that a valid
        // `BASE_BACKOFF` is not refused as well.
        let max = if BACKOFF_RANGE.contains(&max_backoff) { max_backoff } else { *BACKOFF_RANGE.end() };
        let way_out = if base > max { ": lower it, or raise MAX_BACKOFF" } else { "" };
        (!(1..=max).contains(&base))
            .then(|| format!("BASE_BACKOFF is {base} s; it must be 1 s to MAX_BACKOFF ({max} s){way_out}"))
    }

    fn refused_list(&self) -> Vec<String> {
        let Self { ref backoffs, jitter, .. } = *self;
        let kind = &Setting::named("BACKOFFS").kind;
        let Kind::SecondsList { range, entries, .. } = kind else { panic!("BUG: BACKOFFS is a list") };
        let outside = backoffs.iter().find(|ceiling| !range.contains(ceiling));
        let falling = backoffs.windows(2).find(|pair| pair[1] < pair[0]);
        let given = backoffs.len();
        let errors = [
            (given > *entries).then(|| format!("BACKOFFS has {given} ceilings; the maximum is {entries}")),
            outside.map(|it| format!("BACKOFFS has a ceiling of {it} s; each must be {}", kind.range())),
            falling.map(|pair| {
                let (from, to) = (pair[0], pair[1]);
                format!(
                    "BACKOFFS falls from {from} s to {to} s; no ceiling may be shorter than the one before it"
                )
            }),
            (jitter == Jitter::Decorrelated)
                .then(|| "JITTER is decorrelated; with BACKOFFS it must be full, equal or none".into()),
        ];
        errors.into_iter().flatten().collect()
    }
}

impl Policy {
    /// Reads the stack's policy from environment variables, which `lookup` returns by name. An unset variable has its
    /// default value.
    ///
    /// # Errors
    ///
    /// Returns an error for every invalid variable.
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
        let (settings, mut errors) = Settings::read(&lookup);
        let is_set = |name: &&str| lookup(name).is_some();
        if is_set(&"BACKOFFS") {
            let beside = REPLACED_BY_BACKOFFS.into_iter().filter(is_set);
            errors.extend(beside.map(|name| {
                let problem = "is set together with BACKOFFS, which replaces it; set only one of the two";
                SettingError(format!("{name} {problem}"))
            }));
        }
        if !is_set(&"TARGET_FUNCTIONS") {
            let problem = "TARGET_FUNCTIONS is not set; list the ARNs of the functions to retry, or set it empty \
                           to keep what arrives";
            errors.push(SettingError(problem.into()));
        }
        match Self::new(settings) {
            Ok(policy) if errors.is_empty() => Ok(policy),
            checked => Err(errors.into_iter().chain(checked.err().into_iter().flatten()).collect()),
        }
    }
}
