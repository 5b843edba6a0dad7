//! Parses the wait that a `Retry-After` header or the message of a `RetryAfter` error requests.

use alloc::format;
use core::fmt;
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum length of a string that requests a wait, in bytes.
const LONGEST_TEXT: usize = 64;

const NANOS_A_SECOND: u128 = 1_000_000_000;
/// The largest bare number that is read as seconds: 14 days, the longest time that SQS keeps a message.
const LONGEST_NUMBER: u128 = 1_209_600;
/// The smallest bare number that is read as an epoch time in seconds: a time in 2001.
const EPOCH_SECONDS: u128 = 1_000_000_000;
/// The smallest bare number that is read as an epoch time in milliseconds.
const EPOCH_MILLIS: u128 = 1_000_000_000_000;

/// The units of a duration such as `1h 30m`, in nanoseconds, from the longest to the shortest.
const UNITS: [(&str, u128); 5] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];
/// The units before the `T` of an ISO 8601 duration, in nanoseconds.
const ISO_DAYS: [(&str, u128); 2] = [("W", 604_800_000_000_000), ("D", 86_400_000_000_000)];
/// The units after the `T` of an ISO 8601 duration, in nanoseconds.
const ISO_TIME: [(&str, u128); 3] = [("H", 3_600_000_000_000), ("M", 60_000_000_000), ("S", 1_000_000_000)];

/// The reason why a string cannot be parsed as a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnreadableWait {
    /// The string does not begin with a duration or a date.
    NotAWait,
    /// The string is a bare number that is too large for seconds (over 14 days) and too small for an epoch time.
    AmbiguousNumber,
    /// The string is an epoch time over 14 days away, so the number may mean something else.
    DistantNumber,
    /// The string has years or months, which have no fixed length, or a capital `M` (as in `15M`), which may mean
    /// minutes.
    YearsOrMonths,
}

impl UnreadableWait {
    /// Describes why the string does not request a valid wait, without quoting the string.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotAWait => "it does not begin with a duration or a date",
            Self::AmbiguousNumber => "its number is over 14 days of seconds, and too small for an epoch time",
            Self::DistantNumber => "its number is an epoch time over 14 days away",
            Self::YearsOrMonths => "years and months have no fixed length (minutes are a lower-case m)",
        }
    }
}

impl fmt::Display for UnreadableWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl core::error::Error for UnreadableWait {}

/// Parses the wait that a string requests, counted from `now`. A time in the past gives a wait of zero. Text after a
/// `;` is ignored.
///
/// | form | examples |
/// |---|---|
/// | seconds, up to 14 days; a fraction is rounded up | `900`, `64.57`, `0,5` |
/// | an epoch time at most 14 days away, in seconds (at least 10⁹) or milliseconds (at least 10¹²) | `1789404414`, `1789404414145` |
/// | a duration with the units d, h, m, s and ms, each at most once and in this order; only the last number may have a fraction | `15m`, `1h 30m`, `1m30.5s`, `500ms` |
/// | an ISO 8601 duration without years or months | `PT15M`, `P1DT12H`, `P2W` |
/// | an RFC 3339 time, with or without seconds | `2026-09-14T16:46:54.145Z`, `2026-09-14T18:46+0200` |
/// | an HTTP date in any of its three forms, with GMT, UTC or a numeric zone | `Mon, 14 Sep 2026 16:46:54 GMT` |
///
/// ```
/// use comeback_backoff::requested_wait;
/// use std::time::{Duration, SystemTime};
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_789_400_814);
/// assert_eq!(requested_wait("15m; the shop is closed", now), Ok(Duration::from_secs(900)));
/// assert_eq!(requested_wait("2026-09-14T16:46:54Z", now), Ok(Duration::from_secs(3_600)));
/// assert!(requested_wait("15M", now).is_err());
/// ```
///
/// # Errors
///
/// Fails for any other string, including a number outside these ranges.
pub fn requested_wait(text: &str, now: SystemTime) -> Result<Duration, UnreadableWait> {
    let text = text.split(';').next().unwrap_or_default().trim_ascii();
    if text.len() > LONGEST_TEXT {
        return Err(UnreadableWait::NotAWait);
    }
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = |moment: Option<Duration>| {
        moment.map(|moment| moment.saturating_sub(now)).ok_or(UnreadableWait::NotAWait)
    };
    match text.as_bytes() {
        [b'P', ..] => iso_duration(&text[1..]).map(duration),
        [_, _, _, _, b'-', ..] => until(rfc3339(text)),
        [b'0'..=b'9', ..] => match Decimal::read(text) {
            Some((number, "")) => bare_number(number, now),
            _ => sum(text, &UNITS).map(duration),
        },
        _ => until(http_date(text)),
    }
}

/// Returns the wait that a number without a unit requests: seconds, or an epoch time in seconds or milliseconds.
fn bare_number(number: Decimal, now: Duration) -> Result<Duration, UnreadableWait> {
    let seconds = number.times(NANOS_A_SECOND);
    if seconds <= LONGEST_NUMBER * NANOS_A_SECOND {
        return Ok(duration(seconds.div_ceil(NANOS_A_SECOND) * NANOS_A_SECOND));
    }
    if number.whole < EPOCH_SECONDS {
        return Err(UnreadableWait::AmbiguousNumber);
    }
    let moment = if number.whole < EPOCH_MILLIS { seconds } else { number.times(NANOS_A_SECOND / 1_000) };
    let wait = moment.saturating_sub(now.as_nanos());
    if wait > LONGEST_NUMBER * NANOS_A_SECOND {
        return Err(UnreadableWait::DistantNumber);
    }
    Ok(duration(wait))
}

/// Converts the part of an ISO 8601 duration after the `P` into nanoseconds.
fn iso_duration(text: &str) -> Result<u128, UnreadableWait> {
    let Some((days, time)) = text.split_once('T') else { return sum(text, &ISO_DAYS) };
    let time = sum(time, &ISO_TIME)?;
    match days {
        "" => Ok(time),
        _ if days.contains(['.', ',']) => Err(UnreadableWait::NotAWait),
        _ => Ok(sum(days, &ISO_DAYS)?.saturating_add(time)),
    }
}

/// Adds up numbers with units, each unit at most once and in the order of `units`. Only the last may have a fraction.
fn sum(text: &str, units: &[(&str, u128)]) -> Result<u128, UnreadableWait> {
    let (mut rest, mut left, mut sum) = (text, units, 0_u128);
    loop {
        let (number, after) = Decimal::read(rest).ok_or(UnreadableWait::NotAWait)?;
        let after = after.trim_ascii_start();
        let name = after.split(|it: char| !it.is_ascii_alphabetic()).next().unwrap_or_default();
        let Some(place) = left.iter().position(|(unit, _)| *unit == name) else {
            return Err(match name.as_bytes() {
                _ if units.iter().any(|(unit, _)| *unit == name) => UnreadableWait::NotAWait,
                [b'y' | b'Y' | b'M', ..] | [b'm', b'o', ..] => UnreadableWait::YearsOrMonths,
                _ => UnreadableWait::NotAWait,
            });
        };
        sum = sum.saturating_add(number.times(left[place].1));
        rest = after[name.len()..].trim_ascii_start();
        if rest.is_empty() {
            return Ok(sum);
        }
        if number.has_fraction {
            return Err(UnreadableWait::NotAWait);
        }
        left = &left[place + 1..];
    }
}

#[derive(Clone, Copy)]
struct Decimal {
    /// The part before the decimal separator; `u64::MAX` if it does not fit in 64 bits.
    whole: u128,
    /// The part after the decimal separator, in billionths, rounded up.
    billionths: u128,
    has_fraction: bool,
}

impl Decimal {
    /// Splits a string into the number at its start and the rest.
    fn read(text: &str) -> Option<(Self, &str)> {
        let (whole, rest) = digits(text)?;
        let (fraction, rest) = match rest.strip_prefix(['.', ',']) {
            Some(after) => digits(after)?,
            None => ("", rest),
        };
        let number = Self {
            whole: whole.parse().unwrap_or(u64::MAX).into(),
            billionths: billionths(fraction),
            has_fraction: !fraction.is_empty(),
        };
        Some((number, rest))
    }

    /// Multiplies this number by `unit`, and rounds the product up.
    const fn times(self, unit: u128) -> u128 {
        self.whole * unit + (self.billionths * unit).div_ceil(NANOS_A_SECOND)
    }
}

/// Splits off the digits at a string's start. Returns `None` if the string does not start with a digit.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Converts the digits after a decimal separator into billionths, rounded up.
fn billionths(digits: &str) -> u128 {
    let (kept, cut) = digits.split_at(digits.len().min(9));
    let kept =
        kept.bytes().chain([b'0'; 9]).take(9).fold(0, |sum, digit| 10 * sum + u128::from(digit - b'0'));
    kept + u128::from(cut.bytes().any(|digit| digit != b'0'))
}

/// Parses a time such as `2026-09-14T16:46:54.145+02:00` into a duration since the epoch.
fn rfc3339(text: &str) -> Option<Duration> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?.strip_prefix(['T', 't', ' '])?);
    let (minutes, rest) = (rest.get(..5)?, rest.get(5..)?);
    let (seconds, rest) = match rest.strip_prefix(':') {
        Some(after) => (after.get(..2)?, after.get(2..)?),
        None => ("00", rest),
    };
    let (fraction, zone) = match rest.strip_prefix(['.', ',']) {
        Some(after) => digits(after)?,
        None => ("", rest),
    };
    let offset = if matches!(zone, "Z" | "z") { 0 } else { numeric_offset(zone)? };
    let moment = humantime::parse_rfc3339_weak(&format!("{date}T{minutes}:{seconds}")).ok()?;
    Some(at_offset(moment, offset)?.saturating_add(duration(billionths(fraction))))
}

/// Parses an HTTP date into a duration since the epoch.
fn http_date(text: &str) -> Option<Duration> {
    let (date, zone) = text.rsplit_once(' ')?;
    let offset = if matches!(zone, "GMT" | "UTC") { Some(0) } else { numeric_offset(zone) };
    let Some(offset) = offset else { return at_offset(httpdate::parse_http_date(text).ok()?, 0) };
    let with_zone = httpdate::parse_http_date(&format!("{date} GMT"));
    // The asctime form has no zone of its own.
    let asctime = || httpdate::parse_http_date(date).ok().filter(|_| !date.ends_with("GMT"));
    at_offset(with_zone.ok().or_else(asctime)?, offset)
}

/// Parses an offset such as `+0200`, `+02:00` or `+02` into seconds east of UTC.
fn numeric_offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = (zone.get(1..3)?, zone.get(3..)?);
    let minutes = if minutes.is_empty() { "00" } else { minutes.strip_prefix(':').unwrap_or(minutes) };
    let number = |text: &str, most| {
        let number: i64 = text.parse().ok()?;
        (text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit()) && number <= most).then_some(number)
    };
    Some(sign * (number(hours, 23)? * 3_600 + number(minutes, 59)? * 60))
}

/// Converts the time shown by a clock that is `offset` seconds ahead of UTC into a duration since the epoch.
fn at_offset(shown: SystemTime, offset: i64) -> Option<Duration> {
    let shown = shown.duration_since(UNIX_EPOCH).ok()?;
    let shift = Duration::from_secs(offset.unsigned_abs());
    Some(if offset > 0 { shown.saturating_sub(shift) } else { shown + shift })
}

/// Converts nanoseconds into a duration, at most `Duration::MAX`.
fn duration(nanos: u128) -> Duration {
    match u64::try_from(nanos / NANOS_A_SECOND) {
        Ok(seconds) => Duration::new(seconds, (nanos % NANOS_A_SECOND) as u32),
        Err(_) => Duration::MAX,
    }
}
