//! Parses and prints durations.

use std::time::Duration;

use comeback_engine::Timestamp;

/// Parses a duration such as `200ms`, `90s`, `3h` or `1h 30m`. A plain number is in seconds.
pub fn read(text: &str) -> Result<Duration, String> {
    comeback_engine::duration(text.trim())
        .ok_or_else(|| "must be whole seconds, or a duration such as 200ms, 90s or 3h".into())
}

/// Formats a duration for people to read, such as `47h 5m` or `2d 4h`. Truncates it to whole seconds. If it is shorter
/// than a minute, truncates it to whole milliseconds instead.
pub fn text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        return humantime::format_duration(Duration::from_millis(duration.as_millis() as u64)).to_string();
    }
    let (days, hours) =
        if seconds < 2 * 86_400 { (0, seconds / 3_600) } else { (seconds / 86_400, seconds / 3_600 % 24) };
    let parts = [(days, 'd'), (hours, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    parts.join(" ")
}

/// Rounds and formats seconds with at most two units: `2.5s`, `34s`, `9m 5s`, `3h 7m`, `2d 4h`.
pub fn short(seconds: f64) -> String {
    if seconds < 9.95 {
        let tenths = (seconds * 10.0).round() / 10.0;
        return format!("{tenths}s");
    }
    let seconds = seconds.round() as u64;
    let unit = match seconds {
        0..3_600 => 1,
        3_600..172_800 => 60,
        _ => 3_600,
    };
    text(Duration::from_secs((seconds + unit / 2) / unit * unit))
}

/// Formats the time left until `at`, rounded up to whole seconds.
pub fn until(at: Timestamp, now: Timestamp) -> String {
    short(at.since(now).as_secs_f64().ceil())
}

/// Formats the time that has passed since `at`, rounded down to whole seconds.
pub fn since(at: Timestamp, now: Timestamp) -> String {
    short(now.since(at).as_secs_f64().floor())
}

/// Formats a duration for a command line, so that [`read`] parses it back exactly.
pub fn flag(duration: Duration) -> String {
    let short = text(duration).replace(' ', "");
    if read(&short) == Ok(duration) {
        return short;
    }
    let (whole, rest) = (Duration::from_secs(duration.as_secs()), duration.subsec_nanos());
    let rest = humantime::format_duration(Duration::from_nanos(rest.into()));
    format!("{}{rest}", text(whole)).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_seconds_and_units() {
        let ms = |text| read(text).map(|duration| duration.as_millis());
        assert_eq!(ms("90"), Ok(90_000));
        assert_eq!(ms("90s"), Ok(90_000));
        assert_eq!(ms("3h"), Ok(10_800_000));
        assert_eq!(ms("250ms"), Ok(250));
        assert_eq!(ms("1h 30m"), Ok(5_400_000));
        for refused in ["", "soon", "-1", "1.5", "3 parsecs", "15M", "18446744073709551615s1000000000ns"] {
            let expected = "must be whole seconds, or a duration such as 200ms, 90s or 3h";
            assert_eq!(ms(refused), Err(expected.into()), "{refused}");
        }
    }

    #[test]
    fn short_durations_are_rounded() {
        let texts = [1.0, 2.4969, 9.94, 9.96, 59.4, 59.6, 61.0, 3_599.6, 4_139.0, 172_800.0, 190_000.0];
        let expected = ["1s", "2.5s", "9.9s", "10s", "59s", "1m", "1m 1s", "1h", "1h 9m", "2d", "2d 5h"];
        assert_eq!(texts.map(short), expected);
    }

    #[test]
    fn flags_are_read_as_they_were_written() {
        let year = 86_400_000 * 365;
        let flags = [0, 90_000, 90_001, 10_800_000, 200, year, year + 1].map(Duration::from_millis);
        assert_eq!(flags.map(flag), ["0s", "1m30s", "1m30s1ms", "3h", "200ms", "365d", "365d1ms"]);
        assert_eq!(flags.map(|duration| read(&flag(duration))), flags.map(Ok));
    }

    #[test]
    fn writes_no_more_digits_than_matter() {
        assert_eq!(text(Duration::from_micros(1_234_567)), "1s 234ms");
        assert_eq!(text(Duration::from_millis(3_723_900)), "1h 2m 3s");
        assert_eq!(text(Duration::from_secs(86_400)), "24h");
        assert_eq!(text(Duration::from_secs(14 * 86_400 + 60)), "14d 1m");
        assert_eq!(text(Duration::ZERO), "0s");
    }
}
