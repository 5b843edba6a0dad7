//! The error types.

use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// Error for a refused setting. The message names the setting, its value and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackoffError(String);

impl BackoffError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for BackoffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BackoffError {}

/// Error from `give_up` on a rung of a [`ladder!`](crate::ladder), with the last call's error as its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryError<E> {
    /// The error from the last call.
    pub error: E,
    /// The number of calls made, including the first.
    pub attempts: u64,
    /// The total time waited between calls.
    pub waited: Duration,
}

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
    fn retry_error_has_figures_and_source() {
        let (error, waited) = (Error::from(ErrorKind::TimedOut), Duration::from_millis(1_350));
        let error = RetryError { error, attempts: 4, waited };
        assert_eq!(error.to_string(), "gave up after 4 calls and 1.35s of waiting");
        assert_eq!(error.source().unwrap().to_string(), "timed out");
        let at_once = RetryError { error: "busy", attempts: 1, waited: Duration::ZERO };
        assert_eq!(at_once.to_string(), "gave up after 1 call and 0ns of waiting");
    }
}
