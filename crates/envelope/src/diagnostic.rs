use std::error::Error;

use lambda_runtime::Diagnostic;

use crate::directive::{NonRetryable, RetryAfter};

/// What `lambda_runtime` writes for a boxed error that may be, or may have been caused by, a [`RetryAfter`] or a
/// [`NonRetryable`]. Of any other error it is `lambda_runtime`'s own, in which all boxed errors have one name.
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
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
    while let Some(error) = cause {
        if let Some(directive) = directive(error) {
            return directive;
        }
        cause = error.source();
    }
    Diagnostic::from(error)
}

fn directive(error: &(dyn Error + 'static)) -> Option<Diagnostic> {
    let retry_after = || error.downcast_ref::<RetryAfter>().cloned().map(Diagnostic::from);
    let non_retryable = || error.downcast_ref::<NonRetryable>().cloned().map(Diagnostic::from);
    retry_after().or_else(non_retryable)
}

impl From<RetryAfter> for Diagnostic {
    fn from(error: RetryAfter) -> Self {
        Self { error_type: RetryAfter::ERROR_TYPE.to_owned(), error_message: error.to_string() }
    }
}

impl From<NonRetryable> for Diagnostic {
    fn from(error: NonRetryable) -> Self {
        Self { error_type: NonRetryable::ERROR_TYPE.to_owned(), error_message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fmt;

    use lambda_runtime::Diagnostic;

    use super::diagnostic;
    use crate::{NonRetryable, RetryAfter};

    /// As libraries wrap a cause in what they were doing.
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

    fn written(error: impl Into<lambda_runtime::Error>) -> [String; 2] {
        let Diagnostic { error_type, error_message } = diagnostic(error.into());
        [error_type, error_message]
    }

    #[test]
    fn a_boxed_directive_keeps_its_name_and_message() {
        assert_eq!(written(RetryAfter::seconds(900).because("closed")), ["RetryAfter", "900; closed"]);
        assert_eq!(written(NonRetryable::new("cancelled")), ["NonRetryable", "cancelled"]);
    }

    #[test]
    fn a_directive_may_be_the_cause_of_the_error() {
        let cause = Doing("asks the shop", RetryAfter::seconds(60).into());
        assert_eq!(written(Doing("ships", cause.into())), ["RetryAfter", "60"]);
    }

    #[test]
    fn another_error_is_written_as_ever() {
        let plain = Diagnostic::from(lambda_runtime::Error::from("no stock"));
        assert_eq!(diagnostic("no stock".into()), plain);
    }
}
