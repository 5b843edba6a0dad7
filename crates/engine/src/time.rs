//! Points in time, and functions that parse durations.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use chrono::DateTime;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 9999-12-31T23:59:59Z, in seconds since the epoch. A later time is a mistake, such as milliseconds read as seconds.
pub(crate) const LATEST: u64 = 253_402_300_799;

/// A point in time, in milliseconds since the epoch.
///
/// Arithmetic saturates, because timestamps come from untrusted messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time that is this many milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The time that is this many seconds after the epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// Parses an RFC 3339 date and time that is not before the epoch; `None` for any other string.
    ///
    /// ```
    /// use comeback_engine::Timestamp;
    ///
    /// let time = Timestamp::from_rfc3339("2026-09-14T15:46:54.145Z");
    /// assert_eq!(time, Some(Timestamp::from_millis(1_789_400_814_145)));
    /// ```
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let time = DateTime::parse_from_rfc3339(text).ok()?;
        u64::try_from(time.timestamp_millis()).ok().map(Self)
    }

    /// This time in milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This time in whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000
    }

    /// This time, rounded up to a whole second.
    #[must_use]
    pub const fn rounded_up_to_secs(self) -> Self {
        Self::from_secs(self.0.div_ceil(1_000))
    }

    /// Returns the time that is `duration` later. A fraction of a millisecond is dropped.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Returns this time minus `duration`, or the epoch if the result would be earlier.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The duration from `earlier` to this time; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match i64::try_from(self.0).ok().and_then(DateTime::from_timestamp_millis) {
            Some(time) => write!(f, "{}", time.format("%Y-%m-%dT%H:%M:%S%.3fZ")),
            None => write!(f, "{} ms after the epoch", self.0),
        }
    }
}

/// Writes the time in RFC 3339 format, in which a year has four digits. A time after the year 9999 becomes `null`.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.as_secs() > LATEST { serializer.serialize_none() } else { serializer.collect_str(self) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::from_rfc3339(&text)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"an RFC 3339 time"))
    }
}

/// Parses a duration in whole seconds: a number such as `86400`, or with units, as in `24h` or `1h 30m`.
///
/// # Errors
///
/// Fails with a message that says how a duration must be written.
pub fn seconds(text: &str) -> Result<u64, String> {
    duration(text)
        .filter(|duration| duration.subsec_nanos() == 0)
        .map(|duration| duration.as_secs())
        .ok_or_else(|| "must be whole seconds, or a duration such as 90s, 24h or 14d".into())
}

/// Parses a duration: a number of seconds, or numbers with units up to weeks, such as `200ms`. Returns `None` for any
/// other string.
///
/// Months are refused, because `15M` probably means 15 minutes.
///
/// ```
/// use std::time::Duration;
/// use comeback_engine::duration;
///
/// assert_eq!(duration("1h 30m"), Some(Duration::from_secs(5_400)));
/// assert_eq!(duration("15M"), None);
/// ```
pub fn duration(text: &str) -> Option<Duration> {
    // humantime panics on sums close to `u64::MAX`, so numbers are limited to ten digits.
    let is_short = text.len() <= 64 && text.split(|it: char| !it.is_ascii_digit()).all(|run| run.len() <= 10);
    let mut units = text.split(|it: char| !it.is_ascii_alphabetic());
    let is_long = units.any(|unit| unit == "M" || unit.starts_with("mon") || unit.starts_with('y'));
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) if is_short && !is_long => humantime::parse_duration(text).ok(),
        Err(_) => None,
    }
}

/// The duration in whole seconds, rounded up so that no wait ends early.
pub const fn ceil_secs(duration: Duration) -> u64 {
    duration.as_secs() + (duration.subsec_nanos() > 0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_lambdas_format() {
        let text = "2026-09-14T15:46:54.145Z";
        assert_eq!(Timestamp::from_rfc3339(text).unwrap().to_string(), text);
        assert_eq!(Timestamp::from_rfc3339("yesterday"), None);
        assert_eq!(Timestamp::from_rfc3339("1969-12-31T23:59:59.999Z"), None);
    }

    #[test]
    fn a_moment_after_the_year_9999_is_null_in_json() {
        let json = |secs| serde_json::to_string(&Timestamp::from_secs(secs)).unwrap();
        assert_eq!(json(LATEST), r#""9999-12-31T23:59:59.000Z""#);
        assert_eq!([json(LATEST + 1), json(u64::MAX)], ["null", "null"]);
    }

    #[test]
    fn saturates_at_both_ends() {
        let last = Timestamp::from_secs(u64::MAX);
        assert_eq!(last.saturating_add(Duration::MAX), last);
        assert_eq!(Timestamp::from_millis(1).since(last), Duration::ZERO);
        assert_eq!(last.to_string(), "18446744073709551615 ms after the epoch");
    }
}
