//! Tests the parsing of requested waits against cases shared with all other implementations.

use std::path::Path;
use std::time::{Duration, SystemTime};

use comeback_backoff::{Hint, requested_wait};
use proptest::prelude::*;
use serde_json::Value;

/// Returns the test cases in `retry-after.json`, except those with a lone surrogate, which a Rust string cannot hold.
fn cases() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/directives/retry-after.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().map(|line| line.trim_end_matches(',')).filter(|line| line.starts_with("  {"));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn every_case_is_read_as_expected() {
    let cases = cases();
    assert!(cases.len() > 200, "only {} cases", cases.len());
    for case in &cases {
        let text = case["text"].as_str().unwrap();
        let failed_at = humantime::parse_rfc3339(case["failed_at"].as_str().unwrap()).unwrap();
        let read = requested_wait(text, failed_at);
        let wait = read.map(|wait| wait.as_secs_f64()).map_err(|why| why.to_string());
        let expected = case["wait"].as_f64().ok_or_else(|| case["ignored"].as_str().unwrap().to_owned());
        assert_eq!(wait, expected, "{text}");
        assert_eq!(Hint::retry_after(text, failed_at), read.map(Hint::new), "{text}");
    }
}

#[test]
fn white_space_is_ignored_and_length_limited() {
    let now = SystemTime::UNIX_EPOCH;
    assert_eq!(requested_wait(&format!("{}900", " ".repeat(1 << 20)), now), Ok(Duration::from_secs(900)));
    assert!(requested_wait(&"9".repeat(1 << 20), now).is_err());
    assert!(requested_wait(&format!("1{}", "s".repeat(64)), now).is_err());
}

/// Strings that all request the same wait, which is a whole number of milliseconds.
fn spellings(wait: Duration) -> [String; 4] {
    let (seconds, millis) = (wait.as_secs(), wait.subsec_millis());
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    [
        format!("{hours}h {minutes}m {rest}s {millis}ms"),
        format!("{hours}h{minutes}m{rest}.{millis:03}s"),
        format!("{seconds},{millis:03}s; because"),
        format!("PT{hours}H{minutes}M{rest}.{millis:03}S"),
    ]
}

proptest! {
    #[test]
    fn all_spellings_of_a_wait_are_equal(millis in 0..100_000_000_000_u64, now in 0..250_000_000_000_u64) {
        let (wait, now) = (Duration::from_millis(millis), SystemTime::UNIX_EPOCH + Duration::from_secs(now));
        for text in spellings(wait) {
            prop_assert_eq!(requested_wait(&text, now), Ok(wait), "{}", text);
        }
        if let Ok(bare) = requested_wait(&format!("{}.{:03}", wait.as_secs(), wait.subsec_millis()), now) {
            prop_assert!(bare >= wait && bare < wait + Duration::from_secs(1));
        }
    }

    #[test]
    fn a_moment_is_the_same_in_every_zone(second in 0..253_402_300_800_u64, minutes in -1_439..=1_439_i64) {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        let local = second as i64 + minutes * 60;
        prop_assume!((0..253_402_300_800).contains(&local));
        let local = SystemTime::UNIX_EPOCH + Duration::from_secs(local as u64);
        let zone = format!("{}{:02}{:02}", if minutes < 0 { '-' } else { '+' }, minutes.abs() / 60, minutes.abs() % 60);
        let http = httpdate::fmt_http_date(local).replace("GMT", &zone);
        let rfc3339 = humantime::format_rfc3339_seconds(local).to_string().replace('Z', &zone);
        let wait = Ok(moment.duration_since(SystemTime::UNIX_EPOCH).unwrap());
        prop_assert_eq!(requested_wait(&http, SystemTime::UNIX_EPOCH), wait, "{}", http);
        prop_assert_eq!(requested_wait(&rfc3339, SystemTime::UNIX_EPOCH), wait, "{}", rfc3339);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in prop_oneof![any::<String>(), "([0-9]{1,40}[.,]?[0-9]{0,12} ?(ms|s|m|h|d|M|y)?){1,4}", "P?[0-9T:.,+DWHMSZ-]{0,30}"],
        now in any::<u64>(),
    ) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now);
        let read = requested_wait(&text, now);
        prop_assert_eq!(requested_wait(&format!("{text};{text}"), now), requested_wait(text.split(';').next().unwrap(), now));
        prop_assert_eq!(requested_wait(&format!(" {text}"), now), read);
    }
}
