//! Tests for `comeback schedule`: what it prints, and the files it writes.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{self, *};

fn schedule(flags: &str) -> String {
    printed(&format!("schedule {flags}"))
}

fn json_of(flags: &str) -> Value {
    support::json(&format!("schedule {flags}"))
}

#[test]
fn default_policy_table_is_pinned() {
    let text = schedule("--events 1000 --seed 1");
    let expected = "\
MAX_AGE 24h, MAX_RETRIES 1000, BASE_BACKOFF 10s, MAX_BACKOFF 1h, JITTER full
1,000 events that fail every time, until dead-lettered; seed 1

┌───────┬─────────┬───────────┬────────┬─────────┬───────────────┬────────┐
│ retry ┆ ceiling ┆ mean wait ┆     p5 ┆     p95 ┆ since failure ┆ events │
╞═══════╪═════════╪═══════════╪════════╪═════════╪═══════════════╪════════╡
│     1 ┆     10s ┆      5.5s ┆     1s ┆     10s ┆          5.5s ┆  100 % │
│     2 ┆     20s ┆       11s ┆     1s ┆     19s ┆           16s ┆  100 % │
│     3 ┆     40s ┆       21s ┆     2s ┆     39s ┆           37s ┆  100 % │
│     4 ┆  1m 20s ┆       40s ┆     5s ┆  1m 16s ┆        1m 18s ┆  100 % │
│     5 ┆  2m 40s ┆    1m 22s ┆     8s ┆  2m 33s ┆        2m 40s ┆  100 % │
│     6 ┆  5m 20s ┆    2m 37s ┆    18s ┆   5m 4s ┆        5m 17s ┆  100 % │
│     7 ┆ 10m 40s ┆    5m 20s ┆    27s ┆  10m 6s ┆       10m 37s ┆  100 % │
│     8 ┆ 21m 20s ┆   10m 48s ┆     1m ┆ 20m 14s ┆       21m 25s ┆  100 % │
│     9 ┆ 42m 40s ┆   20m 50s ┆ 1m 50s ┆ 40m 37s ┆       42m 15s ┆  100 % │
│    10 ┆      1h ┆   30m 21s ┆ 2m 26s ┆ 56m 57s ┆        1h 13m ┆  100 % │
│    11 ┆      1h ┆   30m 41s ┆  3m 5s ┆ 56m 56s ┆        1h 43m ┆  100 % │
";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| schedule(&format!("--json --events 300 --seed {seed}"));
    let json = run(5);
    assert_eq!(json, run(5));
    assert_ne!(json, run(6));
    assert_eq!(members(&json), ["policy", "seed", "events", "retries_made", "dead_lettered", "retries"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["policy"]["max_backoff_seconds"], 3_600);
    assert_eq!(json["dead_lettered"]["max_age"], 300);
    assert_eq!(json["retries"][8]["ceiling_seconds"], 2_560);
    assert_eq!(json["retries"][9]["ceiling_seconds"], 3_600);
}

#[test]
fn every_variable_counts() {
    let waits = |flags: &str| -> Vec<u64> {
        let json = json_of(&format!("--events 2 --jitter none {flags}"));
        let retries = json["retries"].as_array().expect("an array");
        retries.iter().map(|retry| retry["wait_seconds"]["p95"].as_u64().expect("seconds")).collect()
    };
    let cut = "the last is cut to end a tenth of MAX_AGE before its end";
    assert_eq!(waits("--max-age 100s"), [10, 20, 40, 20], "{cut}");
    assert_eq!(waits("--base-backoff 3s --max-backoff 10s --max-retries 4"), [3, 6, 10, 10]);
    assert_eq!(waits("--non-retryable-errors Target*"), [0; 0]);
    assert_eq!(waits("--envelope inline --max-retries 2"), [10, 20]);
}

#[test]
fn a_functions_schedule_follows_its_entry() {
    let entries =
        "--max-retries 9 --policies 'orders:$LATEST MAX_RETRIES=2; export BACKOFFS=20s,5m,2h' --events 2";
    let of = |target: &str| json_of(&format!("{entries} {target}"))["policy"].take();
    let (stack, orders, export) = (of(""), of("--target orders"), of("--target export"));
    assert_eq!([&stack, &orders, &export].map(|policy| number(policy, "max_retries")), [9, 2, 9]);
    assert_eq!(
        [&stack["backoffs_seconds"], &export["backoffs_seconds"]],
        [&json!([]), &json!([20, 300, 7_200])]
    );
    assert_eq!(json_of("--backoffs 20s,5m --events 2")["policy"]["backoffs_seconds"], json!([20, 300]));
}

#[test]
fn decorrelated_jitter_has_no_ceiling() {
    let flags = "--jitter decorrelated --max-retries 2 --events 50";
    let text = schedule(flags);
    assert!(text.contains("│     2 ┆       - ┆ "), "{text}");
    let json = json_of(flags);
    assert_eq!(json["retries"][1]["ceiling_seconds"], Value::Null);
    assert_eq!(json["dead_lettered"]["max_retries"], 50);
}

#[test]
fn a_policy_without_retries_says_why() {
    let text = schedule("--max-retries 0 --events 7");
    assert!(text.ends_with("\n0 retries, each event; dead-lettered as max_retries (7)\n"), "{text}");
}

/// Flags that give each event 14 retries. Without hiding, the waits take 30 moves: one for each of the first ten,
/// then 2, 3, 5 and 10.
const FOURTEEN_RETRIES: &str =
    "--events 2 --jitter none --max-retries 14 --base-backoff 1s --max-backoff 43170s";

#[test]
fn a_rate_shows_waiting_events_and_their_cost() {
    // The tests in `pages` check the text for a rate at which some waiting events are hidden.
    let none_hidden = schedule(&format!("{FOURTEEN_RETRIES} --rate 10 --hide-up-to 0"));
    assert!(
        none_hidden.contains("can wait. None is hidden (HIDE_UP_TO).\nThe other 164,000 "),
        "{none_hidden}"
    );
    let expected = "
At 1 a minute, each failing event waits 4h 33m on average: 273 at once, when as many are dead-lettered as arrive.
Any number of events can wait. HIDE_UP_TO has room for all of them: none is sent again.
It takes a MAXIMUM_CONCURRENCY of at least 2, if the handler takes 100ms for a batch of ten.
";
    let under = schedule(&format!("{FOURTEEN_RETRIES} --rate 60/h"));
    assert!(under.ends_with(expected), "{under}");
    let json = json_of(&format!("{FOURTEEN_RETRIES} --rate 10 --hide-up-to 45000"));
    let moves = json["in_flight"]["moves"].clone();
    let expected = json!({
        "events_per_second": 10.0,
        "mean_wait_seconds": 16_383.0,
        "waiting": 163_830.0,
        "in_flight": 45_000.0,
        "in_flight_at_most": 90_000.0,
        "in_flight_limit": 120_000,
        "full_after_seconds": null,
        "highest_events_per_second": null,
        "moves": moves,
        "pollers": 6,
    });
    assert_eq!(json["in_flight"], expected);
    // 45,000 hidden messages save 50 of 300 moves a second.
    assert_eq!((&moves["delayed"], &moves["per_second"]), (&118_830.0.into(), &250.0.into()));
    let none = schedule("--events 2 --max-retries 0 --rate 5");
    assert!(
        none.contains("\nAt 5 a second, no failing event waits: each is dead-lettered at once.\n"),
        "{none}"
    );
}

#[test]
fn hiding_always_shows_when_the_limit_is_reached() {
    let always = format!("{FOURTEEN_RETRIES} --hide-up-to always --rate");
    let over = schedule(&format!("{always} 10"));
    let expected = "
At 10 a second, each failing event is in flight for 4h 33m on average: 164,000 at once, 1.37 times SQS's limit of 120,000.
This policy has room for 7.32 a second.
The limit is reached 3h 20m after the target goes down.
From then on, SQS delivers a message only when another leaves: retries come late, without an error, and events
reach MAX_AGE with fewer of them. Nothing is lost unless that lasts for 14 days. Lower HIDE_UP_TO: the other
messages are then sent again with a delay, without a limit.
It takes a MAXIMUM_CONCURRENCY of at least 3, if the handler takes 100ms for a batch of ten.
";
    assert!(over.ends_with(expected), "{over}");
    let expected = "
At 1 a minute, each failing event is in flight for 4h 33m on average: 273 at once, 0.228 % of SQS's limit of 120,000.
This policy has room for 7.32 a second.
It takes a MAXIMUM_CONCURRENCY of at least 2, if the handler takes 100ms for a batch of ten.
";
    let under = schedule(&format!("{always} 60/h"));
    assert!(under.ends_with(expected), "{under}");
    let in_flight = &json_of(&format!("{always} 10"))["in_flight"];
    assert_eq!(in_flight["full_after_seconds"], 12_000.0);
    assert_eq!(in_flight["highest_events_per_second"], 120_000.0 / 16_383.0);
    let moves = json!({
        "delayed": 0.0, "per_second": 0.0, "usd_per_hour": 0.0, "usd_per_million_event_hours": null,
    });
    assert_eq!(in_flight["moves"], moves);
}

#[test]
fn retries_without_a_row_are_counted() {
    let some = schedule("--base-backoff 1s --max-backoff 1s --max-retries 100 --events 2");
    assert!(some.contains("┘\n21 of 100 retries shown; --json prints all\n\n"), "{some}");
    assert!(!schedule("--events 20 --max-age 4h").contains("have a row"));
}

#[test]
fn refused_values_are_named() {
    for (line, error) in [
        ("schedule --rate -3/s", "invalid value '-3/s' for '--rate <EVENTS>': must be a rate such as 10/s, "),
        (
            "contention --clients 20000 --strategy none",
            "20000 clients with strategy none: must be at most 10000",
        ),
        ("schedule --events 0", "--events is 0; it must be 1 to 100000\n"),
        (
            "schedule --policies 'export MAX_AGE=2h' --target exports",
            "--target is exports, which no entry of --policies matches",
        ),
    ] {
        assert_refused(line, &format!("error: {error}"));
    }
}

#[test]
fn the_picture_is_written_to_a_file_or_a_folder() {
    let scratch = scratch();
    let plot = |path: &Path, flags: &str| schedule(&format!("--plot {} {flags}", path.display()));
    let file = scratch.path().join("of/mine.svg");
    let long = "--events 20 --base-backoff 1s --max-backoff 43170s";
    plot(&file, long);
    let folder = scratch.path().join("plots");
    plot(&folder, long);
    let svg = std::fs::read_to_string(folder.join("schedule.svg")).expect("it was written");
    assert_eq!(svg, std::fs::read_to_string(&file).expect("it was written"));
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for text in
        ["MAX_AGE", "MAX_BACKOFF 11h 59m 30s", "logarithmic scale", "retries on average", "10m", "24h"]
    {
        assert!(svg.contains(text), "{text} is not in the picture");
    }
    // The chart can be drawn with no retries, and with very many.
    plot(&file, "--max-retries 0 --events 1");
    plot(&file, "--base-backoff 1s --max-backoff 1s --max-retries 3000 --events 2");
    let svg = std::fs::read_to_string(&file).expect("it was written");
    assert!(svg.len() < 400_000 && !svg.contains("logarithmic"), "{} bytes", svg.len());
    let output = comeback(&format!("schedule --events 1 --plot {}/below", file.display()));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mine.svg/below: "));
}
