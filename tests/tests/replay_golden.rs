//! Three runs, each decision of them, byte for byte: a change of any rule shows here as a change of
//! text. After checking that it is the change you meant, rewrite them with
//! `UPDATE_GOLDEN=1 cargo test -p comeback-tests --test replay_golden`.

use std::path::Path;
use std::time::Duration;

use comeback_engine::{Jitter, Policy, Settings, Style};
use comeback_timelapse::{Scenario, TARGET_ARN, Trace, run};

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

fn check(name: &str, scenario: &Scenario, settings: Settings) {
    let settings = Settings { target_functions: vec![TARGET_ARN.into()], ..settings };
    let policy = Policy::new(settings).expect("a valid policy");
    let mut trace = Trace::default();
    let summary = run(scenario, &policy, &mut trace).expect("a valid scenario");
    let summary = serde_json::to_string_pretty(&summary).expect("a summary is plain JSON");
    let actual = format!("{}{summary}\n", trace.text());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/replays").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &actual).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the golden file can be read");
    let differs = actual.lines().zip(expected.lines()).enumerate().find(|(_, (new, old))| new != old);
    if let Some((line, (new, old))) = differs {
        panic!("{name}, line {}:\n  was {old}\n  is  {new}", line + 1);
    }
    assert!(
        actual == expected,
        "{name} has {} lines, not {}",
        actual.lines().count(),
        expected.lines().count()
    );
}

#[test]
fn an_outage_with_full_jitter() {
    check("outage-full-jitter.txt", &Scenario { events: 20, ..Scenario::default() }, Settings::default());
}

#[test]
fn three_retries_with_decorrelated_jitter_inline() {
    let scenario = Scenario {
        events: 20,
        outage: minutes(10),
        arrival_spread: minutes(12),
        duration: minutes(60),
        ..Scenario::default()
    };
    let settings = Settings {
        jitter: Jitter::Decorrelated,
        envelope: Style::Inline,
        max_retries: 3,
        base_backoff: 60,
        ..Settings::default()
    };
    check("decorrelated-inline-three-retries.txt", &scenario, settings);
}

#[test]
fn failures_at_random_at_the_in_flight_limit_without_jitter() {
    let scenario = Scenario {
        events: 12,
        outage: minutes(2),
        arrival_spread: minutes(2),
        failure_rate: 0.85,
        in_flight_limit: 4,
        duration: minutes(120),
        ..Scenario::default()
    };
    let settings = Settings { jitter: Jitter::None, max_age: 1_800, ..Settings::default() };
    check("no-jitter-in-flight-limit.txt", &scenario, settings);
}
