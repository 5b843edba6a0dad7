//! Formats and parses numbers and rates.

use std::ops::RangeInclusive;

/// The units of time for a rate, in seconds.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0)];

/// The accepted rates, in events per second: from one event in 1,000 days to more than Lambda accepts in any region. A
/// rate outside this range is probably a typo.
const SENSIBLE_RATES: RangeInclusive<f64> = 0.001 / 86_400.0..=1_000_000.0;

/// Formats a number with three significant digits: `0.0123`, `1.58`, `837,000`.
pub fn rounded(number: f64) -> String {
    if number <= 0.0 {
        return "0".into();
    }
    let digits = 2 - number.log10().floor() as i32;
    let unit = 10f64.powi(-digits);
    let rounded = (number / unit).round() * unit;
    if digits > 0 {
        let text = format!("{rounded:.*}", digits as usize);
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    grouped(rounded.round() as u64)
}

/// Formats a whole number with commas between groups of three digits: `1,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count with its noun: `1 event`, `1,000 events`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// The first number in the series 1, 2, 5, 10, 20, 50, … that `is_enough` accepts.
pub fn round_step(is_enough: impl Fn(u64) -> bool) -> u64 {
    let steps = (0..).flat_map(|tens| [1, 2, 5].map(|n| n * 10u64.pow(tens)));
    steps.into_iter().find(|&step| is_enough(step)).expect("BUG: no step is enough")
}

/// Parses a number such as `3` or `0.5`. The caller checks the range.
pub fn read_number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "must be a number such as 3 or 0.5".into())
}

/// Parses a rate such as `10`, `10/s`, `600/m`, `20000/h` or `0.5/d`, and returns it in events per second.
pub fn read_rate(text: &str) -> Result<f64, String> {
    let (count, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, seconds)| seconds);
    let rate = count.trim().parse::<f64>().ok().zip(seconds).map(|(count, seconds)| count / seconds);
    rate.filter(|rate| SENSIBLE_RATES.contains(rate)).ok_or_else(|| {
        "must be a rate such as 10/s, 600/m, 20000/h or 1000000/d; at least 0.001/d, at most 1000000/s".into()
    })
}

/// Formats a rate for display: `1.58 a second`, `5,690 an hour`.
pub fn rate_text(per_second: f64) -> String {
    let names = ["a second", "a minute", "an hour", "a day"];
    // The shortest unit with at least one event.
    let readable = UNITS.iter().zip(names).find(|((_, seconds), _)| per_second * seconds >= 1.0);
    let ((_, seconds), name) = readable.unwrap_or((&UNITS[3], names[3]));
    format!("{} {name}", rounded(per_second * seconds))
}

/// Formats a rate for a command line as a whole number, such as `20/m`.
pub fn rate_flag(per_second: f64) -> String {
    let (unit, seconds) = UNITS.iter().find(|(_, seconds)| per_second * seconds >= 10.0).unwrap_or(&UNITS[3]);
    format!("{}/{unit}", (per_second * seconds).round().max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_three_digits() {
        let texts = [0.0, 0.012_34, 0.5, 1.0, 1.576, 9.996, 99.96, 123.4, 5_689.0, 837_123.0].map(rounded);
        assert_eq!(texts, ["0", "0.0123", "0.5", "1", "1.58", "10", "100", "123", "5,690", "837,000"]);
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        let texts = [0, 999, 1_000, 12_345, 123_456, 1_000_000].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "123,456", "1,000,000"]);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [1, 2, 3, 6, 11, 40, 51, 1_000].map(|n| round_step(|step| step >= n)),
            [1, 2, 5, 10, 20, 50, 100, 1_000]
        );
    }

    #[test]
    fn reads_numbers() {
        assert_eq!([read_number("3"), read_number("0.5")], [Ok(3.0), Ok(0.5)]);
        assert_eq!(read_number("abc"), Err("must be a number such as 3 or 0.5".into()));
    }

    #[test]
    fn reads_rates() {
        for (text, per_second) in
            [("10", 10.0), ("10/s", 10.0), ("0.5", 0.5), ("600/m", 10.0), ("7200 / h", 2.0), ("86400/d", 1.0)]
        {
            assert_eq!(read_rate(text), Ok(per_second), "{text}");
        }
        for refused in [
            "", "0", "-1", "many", "10/w", "10/", "/s", "inf", "NaN", "10/s/s", "1e300", "1000001",
            "0.0009/d",
        ] {
            let expected = "must be a rate such as 10/s, 600/m, 20000/h or 1000000/d; at least 0.001/d, at most 1000000/s";
            assert_eq!(read_rate(refused), Err(expected.into()), "{refused}");
        }
    }

    #[test]
    fn flags_are_read_as_nearly_the_same_rate() {
        let rates = [100.4, 10.0, 9.0, 0.092_59, 0.000_2, 0.000_001];
        let flags = ["100/s", "10/s", "540/m", "333/h", "17/d", "1/d"];
        assert_eq!(rates.map(rate_flag), flags);
        assert!(flags.iter().all(|flag| read_rate(flag).is_ok()));
    }

    #[test]
    fn rate_is_per_shortest_time_with_one_event() {
        let texts = [12.0, 1.0, 0.5, 0.01, 0.0001, 0.000_001].map(rate_text);
        assert_eq!(
            texts,
            ["12 a second", "1 a second", "30 a minute", "36 an hour", "8.64 a day", "0.0864 a day"]
        );
    }
}
