use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::borrow::ToOwned;
use std::string::String;
use std::time::SystemTime;

/// A `Retry-After` header: how long a server asks its client to wait. It is a number of seconds or an
/// HTTP date, in any of the three forms of HTTP dates.
///
/// Source: RFC 9110 § 10.2.3 and § 5.6.7, which know no third kind.
///
/// ```
/// use comeback_backoff::RetryAfter;
/// use std::time::{Duration, SystemTime};
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
/// let wait = |header: &str| header.parse::<RetryAfter>().map(|after| after.wait(now));
/// assert_eq!(wait("120"), Ok(Duration::from_secs(120)));
/// assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), Ok(Duration::from_secs(7)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// This long after the response.
    Delay(Duration),
    /// Not before this time.
    At(SystemTime),
}

impl RetryAfter {
    /// How long that is from `now`: zero for a date that has passed.
    pub fn wait(self, now: SystemTime) -> Duration {
        match self {
            Self::Delay(delay) => delay,
            Self::At(time) => time.duration_since(now).unwrap_or_default(),
        }
    }
}

/// The text is neither seconds nor an HTTP date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRetryAfter(String);

impl fmt::Display for UnreadableRetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retry-after is {:?}; it must be whole seconds or an HTTP date", self.0)
    }
}

impl core::error::Error for UnreadableRetryAfter {}

impl FromStr for RetryAfter {
    type Err = UnreadableRetryAfter;

    fn from_str(value: &str) -> Result<Self, UnreadableRetryAfter> {
        let trimmed = value.trim_matches([' ', '\t']);
        if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
            // Only digits, so nothing but a number over 64 bits fails, and users bound such a wait anyway.
            return Ok(Self::Delay(Duration::from_secs(trimmed.parse().unwrap_or(u64::MAX))));
        }
        httpdate::parse_http_date(trimmed).map(Self::At).map_err(|_| UnreadableRetryAfter(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::RetryAfter;

    /// 06 Nov 1994 08:49:37 GMT, RFC 9110's example.
    fn example() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn wait(header: &str, now: SystemTime) -> Duration {
        header.parse::<RetryAfter>().unwrap().wait(now)
    }

    #[test]
    fn seconds_do_not_depend_on_now() {
        assert_eq!(wait("120", example()), Duration::from_secs(120));
        assert_eq!(wait(" 0\t", example()), Duration::ZERO);
        assert_eq!(wait("99999999999999999999999", example()), Duration::from_secs(u64::MAX));
    }

    #[test]
    fn dates_of_all_three_forms_are_read() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(wait(date, example() - Duration::from_millis(1_500)), Duration::from_millis(1_500));
        }
    }

    #[test]
    fn a_date_that_has_passed_is_no_wait() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(wait(date, example() + Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn anything_else_is_refused() {
        for header in ["", "-1", "+5", "1.5", "soon", "5 s", "1994-11-06T08:49:37Z"] {
            assert_eq!(
                header.parse::<RetryAfter>().unwrap_err().to_string(),
                format!("retry-after is {header:?}; it must be whole seconds or an HTTP date")
            );
        }
    }
}
