use core::fmt;
use core::time::Duration;

/// An operation that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retried<T> {
    /// What the last call returned.
    pub value: T,
    /// Calls made, the first included.
    pub attempts: u64,
    /// The time waited between them, in all.
    pub waited: Duration,
}

/// An operation that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryError<E> {
    /// The error of the last call.
    pub error: E,
    /// Calls made, the first included.
    pub attempts: u64,
    /// The time waited between them, in all.
    pub waited: Duration,
}

/// Says only when it was given up; the error itself is the source.
impl<E> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = if self.attempts == 1 { "call" } else { "calls" };
        write!(f, "gave up after {} {calls} and {:?} of waiting", self.attempts, self.waited)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::io::{Error, ErrorKind};
    use std::time::Duration;

    use super::RetryError;

    #[test]
    fn the_error_says_how_it_was_given_up_and_leads_to_its_source() {
        let waited = Duration::from_millis(1_350);
        let error = RetryError { error: Error::from(ErrorKind::TimedOut), attempts: 4, waited };
        assert_eq!(error.to_string(), "gave up after 4 calls and 1.35s of waiting");
        assert_eq!(error.source().unwrap().to_string(), "timed out");
        let at_once = RetryError { error: "busy", attempts: 1, waited: Duration::ZERO };
        assert_eq!(at_once.to_string(), "gave up after 1 call and 0ns of waiting");
    }
}
