//! Events per second, minute, hour or day, as text.

use std::ops::RangeInclusive;

use crate::text::numbers::rounded;

/// The units, and how many seconds each is.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

/// From one event in three years to more than Lambda accepts anywhere. What is beyond is a slip.
const SENSIBLE: RangeInclusive<f64> = 0.001 / 86_400.0..=1_000_000.0;

/// Reads `10`, `10/s`, `600/m`, `20000/h` or `0.5/d`, in events a second.
pub(crate) fn read(text: &str) -> Result<f64, String> {
    let (count, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, seconds)| seconds);
    let rate = count.trim().parse::<f64>().ok().zip(seconds).map(|(count, seconds)| count / seconds);
    rate.filter(|rate| SENSIBLE.contains(rate)).ok_or_else(|| {
        "must be a rate such as 10/s, 600/m, 20000/h or 1000000/d; at least 0.001/d, at most 1000000/s".into()
    })
}

/// Writes a rate with as many digits as matter: `1.58 a second`, `5,690 an hour`.
pub(crate) fn text(per_second: f64) -> String {
    let names = ["a second", "a minute", "an hour", "a day"];
    // The shortest time in which there is at least one.
    let readable = UNITS.iter().zip(names).find(|((_, seconds), _)| per_second * seconds >= 1.0);
    let ((_, seconds), name) = readable.unwrap_or((&UNITS[3], names[3]));
    format!("{} {name}", rounded(per_second * seconds))
}

/// Writes a rate for the command line: as whole events in the shortest time that has at least ten, or in a day.
pub(crate) fn flag(per_second: f64) -> String {
    let (unit, seconds) = UNITS.iter().find(|(_, seconds)| per_second * seconds >= 10.0).unwrap_or(&UNITS[3]);
    format!("{}/{unit}", (per_second * seconds).round().max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates() {
        for (text, per_second) in
            [("10", 10.0), ("10/s", 10.0), ("0.5", 0.5), ("600/m", 10.0), ("7200 / h", 2.0), ("86400/d", 1.0)]
        {
            assert_eq!(read(text), Ok(per_second), "{text}");
        }
        for refused in [
            "", "0", "-1", "many", "10/w", "10/", "/s", "inf", "NaN", "10/s/s", "1e300", "1000001",
            "0.0009/d",
        ] {
            let expected = "must be a rate such as 10/s, 600/m, 20000/h or 1000000/d; at least 0.001/d, at most 1000000/s";
            assert_eq!(read(refused), Err(expected.into()), "{refused}");
        }
    }

    #[test]
    fn flags_are_read_as_nearly_the_same_rate() {
        let rates = [100.4, 10.0, 9.0, 0.092_59, 0.000_2, 0.000_001];
        let flags = ["100/s", "10/s", "540/m", "333/h", "17/d", "1/d"];
        assert_eq!(rates.map(flag), flags);
        assert!(flags.iter().all(|flag| read(flag).is_ok()));
    }

    #[test]
    fn writes_the_time_in_which_there_is_one() {
        let texts = [12.0, 1.0, 0.5, 0.01, 0.0001, 0.000_001].map(text);
        assert_eq!(
            texts,
            ["12 a second", "1 a second", "30 a minute", "36 an hour", "8.64 a day", "0.0864 a day"]
        );
    }
}
