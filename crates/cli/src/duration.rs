use std::time::Duration;

/// Reads `200ms`, `90s`, `3h`, `1h 30m`, or plain seconds.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let duration = match text.trim().parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    duration.ok_or_else(|| "must be whole seconds, or a duration such as 200ms, 90s or 3h".into())
}

/// Writes one for people: milliseconds below a minute, whole seconds above, days from the third on.
pub(crate) fn text(duration: Duration) -> String {
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
        for refused in ["", "soon", "-1", "1.5", "3 parsecs"] {
            let expected = "must be whole seconds, or a duration such as 200ms, 90s or 3h";
            assert_eq!(ms(refused), Err(expected.into()), "{refused}");
        }
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
