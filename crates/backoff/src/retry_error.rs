use std::fmt;
use std::time::Duration;

/// An operation that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl<E: std::error::Error + 'static> std::error::Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
