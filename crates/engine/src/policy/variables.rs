//! The policy's variables as text: one reading for the handler's environment and the CLI's flags,
//! so that both understand and refuse the same values with the same words.

use std::time::Duration;

use crate::{HandlerFunction, Policy, SettingError, Settings};

impl Policy {
    /// Reads each policy variable through `lookup`; one that is not set has its default.
    ///
    /// # Errors
    ///
    /// Every variable that was refused.
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
    /// The variable's value. One that cannot be read is noted, and its default stands in so that
    /// the others are still checked.
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

    /// Comma-separated; white space around entries and empty entries do not count.
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

/// Whole seconds: `86400`, or with units `24h`, `14d`, `1h 30m`.
///
/// # Errors
///
/// Says what a duration must be.
pub fn seconds(text: &str) -> Result<u64, String> {
    // humantime panics where a sum ends a nanosecond before u64's end. Ten digits a number are years enough.
    let is_short = text.len() <= 64 && text.split(|it: char| !it.is_ascii_digit()).all(|run| run.len() <= 10);
    let duration = match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) if is_short => humantime::parse_duration(text).ok(),
        Err(_) => None,
    };
    duration
        .filter(|duration| duration.subsec_nanos() == 0)
        .map(|duration| duration.as_secs())
        .ok_or_else(|| "must be whole seconds, or a duration such as 90s, 24h or 14d".into())
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be on or off".into()),
    }
}

fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number".into())
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
