//! Two errors that let a function control its own retries: [`RetryAfter`] and [`NonRetryable`].

use std::error::Error;
use std::fmt::{self, Display};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An error that fails the invocation and sets the time of the next retry.
///
/// The retry handler adds up to a tenth of the wait as jitter. The retry counts towards `MAX_RETRIES`. It is due
/// earlier if the event would otherwise exceed `MAX_AGE`. A wait of zero or a time in the past is ignored, and the
/// ordinary backoff applies.
///
/// ```
/// use comeback_envelope::RetryAfter;
///
/// assert_eq!(RetryAfter::seconds(900).to_string(), "900");
/// assert_eq!(RetryAfter::seconds(900).because("the shop is closed").to_string(), "900; the shop is closed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAfter(Directive);

impl RetryAfter {
    /// The `errorType` of this error.
    pub const ERROR_TYPE: &str = "RetryAfter";

    /// Requests a retry after the given number of seconds, counted from the failure.
    #[must_use]
    pub fn seconds(seconds: u64) -> Self {
        // A larger number without a unit might be a date, so the handler ignores it.
        const MOST_WITHOUT_UNIT: u64 = 14 * 86_400;
        let unit = if seconds > MOST_WITHOUT_UNIT { "s" } else { "" };
        Self::written(format!("{seconds}{unit}"))
    }

    /// Requests a retry after the given wait, counted from the failure and rounded up to a whole second.
    #[must_use]
    pub fn wait(wait: Duration) -> Self {
        Self::seconds(rounded_up(wait))
    }

    /// Requests a retry at the given time, rounded up to a whole second and limited to the years 1970 to 9999.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// use comeback_envelope::RetryAfter;
    ///
    /// let reopens = UNIX_EPOCH + Duration::from_millis(1_789_400_813_500);
    /// assert_eq!(RetryAfter::at(reopens).to_string(), "2026-09-14T15:46:54Z");
    /// ```
    #[must_use]
    pub fn at(moment: SystemTime) -> Self {
        /// 9999-12-31T23:59:59Z, the last second with a four-digit year.
        const LAST: u64 = 253_402_300_799;
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        let moment = UNIX_EPOCH + Duration::from_secs(rounded_up(since).min(LAST));
        Self::written(humantime::format_rfc3339_seconds(moment).to_string())
    }

    /// Adds a reason, in plain text, to the error's message, and so to the function's log and any dead-letter.
    #[must_use]
    pub fn because(self, reason: impl Display) -> Self {
        Self::written(format!("{self}; {reason}"))
    }

    const fn written(message: String) -> Self {
        Self(Directive { error_type: Self::ERROR_TYPE, message })
    }
}

fn rounded_up(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// An error that fails the invocation and prevents retries.
///
/// The retry handler dead-letters the event with the reason `non_retryable_error` and this error's message.
///
/// ```
/// use comeback_envelope::NonRetryable;
///
/// assert_eq!(NonRetryable::new("order 17 was cancelled").to_string(), "order 17 was cancelled");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonRetryable(Directive);

impl NonRetryable {
    /// The `errorType` of this error.
    pub const ERROR_TYPE: &str = "NonRetryable";

    /// Creates the error with a reason in plain text.
    #[must_use]
    pub fn new(reason: impl Display) -> Self {
        Self(Directive { error_type: Self::ERROR_TYPE, message: reason.to_string() })
    }
}

impl Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Display for NonRetryable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for RetryAfter {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl Error for NonRetryable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// The content of a [`RetryAfter`] or [`NonRetryable`]. It is also the error's `source`, because a source can still be
/// found if anyhow or thiserror's `transparent` has wrapped the error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Directive {
    error_type: &'static str,
    message: String,
}

impl Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.error_type)
    }
}

impl Error for Directive {}

#[cfg(feature = "lambda_runtime")]
pub use with_lambda_runtime::diagnostic;

#[cfg(feature = "lambda_runtime")]
mod with_lambda_runtime {
    use std::error::Error;
    use std::iter::successors;

    use lambda_runtime::Diagnostic;

    use super::{Directive, NonRetryable, RetryAfter};

    const MOST_CAUSES: usize = 16;

    /// Converts a boxed error into the error that the runtime reports.
    ///
    /// If the error or one of its causes is a [`RetryAfter`] or [`NonRetryable`], that error is reported under its own
    /// name. Without this function, all boxed errors have the same name, so these two have no effect on the retries.
    ///
    /// Any other error keeps the name that the runtime gives it, and the messages of its causes are added to its own.
    ///
    /// ```
    /// use comeback_envelope::{RetryAfter, diagnostic};
    /// use lambda_runtime::Error;
    ///
    /// fn ship(open: bool) -> Result<(), Error> {
    ///     if !open {
    ///         return Err(RetryAfter::seconds(900).into());
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let written = ship(false).map_err(diagnostic).unwrap_err();
    /// assert_eq!((written.error_type.as_str(), written.error_message.as_str()), ("RetryAfter", "900"));
    /// ```
    pub fn diagnostic(error: lambda_runtime::Error) -> Diagnostic {
        let mut causes = successors(Some(&*error as &(dyn Error + 'static)), |cause| (*cause).source());
        match causes.find_map(|cause| cause.downcast_ref::<Directive>()) {
            Some(directive) => directive.clone().into(),
            None => {
                let said = with_causes(&*error);
                Diagnostic { error_message: said, ..error.into() }
            }
        }
    }

    /// Returns the error's message followed by those of its causes, without repetitions.
    fn with_causes(error: &(dyn Error + 'static)) -> String {
        let causes = successors(error.source(), |cause| (*cause).source()).take(MOST_CAUSES);
        causes.map(ToString::to_string).fold(error.to_string(), |said, cause| {
            if said.contains(&cause) { said } else { format!("{said}: {cause}") }
        })
    }

    impl From<Directive> for Diagnostic {
        fn from(Directive { error_type, message }: Directive) -> Self {
            Self { error_type: error_type.to_owned(), error_message: message }
        }
    }

    impl From<RetryAfter> for Diagnostic {
        fn from(error: RetryAfter) -> Self {
            error.0.into()
        }
    }

    impl From<NonRetryable> for Diagnostic {
        fn from(error: NonRetryable) -> Self {
            error.0.into()
        }
    }
}

#[cfg(all(test, feature = "lambda_runtime"))]
mod tests_with_lambda_runtime {
    use super::diagnostic;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failed {
        text: &'static str,
        source: Option<Box<Failed>>,
    }

    fn said(texts: &[&'static str]) -> String {
        let failed = texts.iter().rev().fold(None, |source, text| Some(Box::new(Failed { text, source })));
        diagnostic(failed.expect("a text").into()).error_message
    }

    #[test]
    fn error_text_has_each_cause_once() {
        assert_eq!(said(&["could not ship"]), "could not ship");
        let chain = ["could not ship", "the query failed", "column zip is missing"];
        assert_eq!(said(&chain), "could not ship: the query failed: column zip is missing");
        assert_eq!(said(&["no route: refused", "refused"]), "no route: refused");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::RetryAfter;

    fn at(seconds: u64) -> String {
        RetryAfter::at(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
    }

    #[test]
    fn waits_are_rounded_up_to_seconds() {
        for (wait, written) in [
            (Duration::ZERO, "0"),
            (Duration::from_secs(900), "900"),
            (Duration::from_millis(1), "1"),
            (Duration::from_millis(1_001), "2"),
            (Duration::MAX, "18446744073709551615s"),
        ] {
            assert_eq!(RetryAfter::wait(wait).to_string(), written);
        }
    }

    /// The clients in other languages must write the same messages, so all languages share these cases.
    #[test]
    fn shared_numbers_are_written_as_expected() {
        #[derive(serde::Deserialize)]
        struct Case {
            seconds: f64,
            message: String,
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/directives/written.json");
        let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for Case { seconds, message } in cases {
            assert_eq!(RetryAfter::wait(Duration::from_secs_f64(seconds)).to_string(), message);
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(253_402_300_799), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn years_are_clamped_to_four_digits() {
        assert_eq!(at(253_402_300_800), "9999-12-31T23:59:59Z");
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(RetryAfter::at(before).to_string(), "1970-01-01T00:00:00Z");
        let sooner = UNIX_EPOCH + Duration::from_nanos(1);
        assert_eq!(RetryAfter::at(sooner).to_string(), "1970-01-01T00:00:01Z");
    }
}

#[cfg(all(test, feature = "lambda_runtime"))]
mod diagnostic_tests {
    use std::error::Error;
    use std::fmt;

    use lambda_runtime::Diagnostic;

    use super::{NonRetryable, RetryAfter, diagnostic};

    /// Wraps another error and adds context, as many libraries do.
    #[derive(Debug)]
    struct Doing(&'static str, Box<dyn Error + Send + Sync>);

    impl fmt::Display for Doing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Doing {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&*self.1)
        }
    }

    /// An error that delegates to its inner error, like a transparent thiserror error or a boxed anyhow error.
    #[derive(Debug)]
    struct Transparent(NonRetryable);

    impl fmt::Display for Transparent {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl Error for Transparent {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.0.source()
        }
    }

    fn written(error: impl Into<lambda_runtime::Error>) -> [String; 2] {
        let Diagnostic { error_type, error_message } = diagnostic(error.into());
        [error_type, error_message]
    }

    #[test]
    fn directive_keeps_its_name_as_a_cause() {
        assert_eq!(written(RetryAfter::seconds(900).because("closed")), ["RetryAfter", "900; closed"]);
        assert_eq!(written(NonRetryable::new("cancelled")), ["NonRetryable", "cancelled"]);
        let cause = Doing("asks the shop", RetryAfter::seconds(60).into());
        assert_eq!(written(Doing("ships", cause.into())), ["RetryAfter", "60"]);
        assert_eq!(written(Transparent(NonRetryable::new("cancelled"))), ["NonRetryable", "cancelled"]);
    }

    #[test]
    fn another_error_is_written_as_usual() {
        let plain = Diagnostic::from(lambda_runtime::Error::from("no stock"));
        assert_eq!(diagnostic("no stock".into()), plain);
    }
}
