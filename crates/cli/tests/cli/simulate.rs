//! `comeback simulate`: what it prints, and how it ends.

use serde_json::Value;

use crate::support::*;

#[test]
fn json_has_what_is_documented_and_the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        stdout(comeback(&["simulate", "--json", "--events", "30", "--max-retries", "9", "--seed", seed]))
    };
    let json = run("5");
    assert_eq!(json, run("5"));
    assert_ne!(json, run("6"));
    let members: Vec<&str> = json
        .lines()
        .filter(|line| line.starts_with("  \""))
        .map(|line| line.split('"').nth(1).expect("a key"))
        .collect();
    let documented = [
        "seed",
        "events",
        "virtual_seconds",
        "delivered",
        "dead_lettered",
        "waiting",
        "not_arrived",
        "retries",
        "attempts",
        "recovery_delay_ms",
        "peak_in_flight",
        "in_flight_limit",
        "peak_visible",
        "peak_delayed",
        "moves",
        "moves_with_room",
        "api_calls",
        "handler_gb_seconds",
        "target_gb_seconds",
        "log_bytes",
        "cost_usd",
        "repeat",
    ];
    assert_eq!(members, documented);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let given_up: u64 =
        json["dead_lettered"].as_object().expect("an object").values().filter_map(Value::as_u64).sum();
    assert!(json["dead_lettered"]["max_retries"].as_u64() > Some(0), "{json}");
    let number = |key: &str| json[key].as_u64().expect("a number");
    assert_eq!(number("delivered") + given_up + number("waiting"), 30);
    assert_eq!(json["api_calls"]["lambda:Invoke (target)"], json["retries"]);
    assert_eq!(
        json["repeat"],
        "cargo run --release -p comeback -- simulate --seed 5 --events 30 --max-retries 9 --json"
    );
}

#[test]
fn chaos_counts_each_fault_and_the_same_seed_gives_the_same_bytes() {
    let run = |arguments: &[&str]| {
        stdout(comeback(&[&["simulate", "--chaos", "--json", "--events", "60"], arguments].concat()))
    };
    let json = run(&["--seed", "3"]);
    assert_eq!(json, run(&["--seed=3"]));
    assert_ne!(json, run(&["--seed", "4"]));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let struck = json["faults"]["struck"].as_object().expect("an object");
    assert_eq!(struck.len(), 39, "all but the end of retention: {struck:?}");
    assert!(struck["clock_skew"].as_u64() > Some(0));
    assert!(json["faults"]["duplicate_retries"].is_u64() && json["faults"]["duplicate_moves"].is_u64());
    // The command that a run prints is one that repeats it.
    let repeat = json["repeat"].as_str().expect("text");
    let arguments =
        repeat.strip_prefix("cargo run --release -p comeback -- ").expect("it runs from a checkout");
    let words: Vec<&str> = arguments.split(' ').collect();
    assert_eq!(serde_json::from_str::<Value>(&stdout(comeback(&words))).expect("JSON"), json);
}

#[test]
fn one_fault_in_its_window_replaces_that_of_the_mix() {
    let run = |arguments: &[&str]| -> Value {
        let output = comeback(&[&["simulate", "--json", "--events", "40"], arguments].concat());
        serde_json::from_str(&stdout(output)).expect("JSON")
    };
    let outage = run(&["--fault", "handler_outage=1@1h..90m", "--fault", "retention_ended=0.05"]);
    let struck = outage["faults"]["struck"].as_object().expect("an object");
    assert_eq!(struck.keys().collect::<Vec<_>>(), ["handler_outage", "retention_ended"]);
    assert!(outage["dead_lettered"]["expired"].as_u64() > Some(0), "{outage}");
    let calm = run(&["--chaos", "--fault", "clock_skew=0"]);
    assert_eq!(calm["faults"]["struck"]["clock_skew"], 0);
}

#[test]
fn many_seeds_are_added_up() {
    let run = |arguments: &[&str]| {
        let chaos = ["simulate", "--chaos", "--events", "20", "--for", "6h", "--hide-up-to", "0"];
        stdout(comeback(&[&chaos, arguments].concat()))
    };
    let json = |text: String| -> Value { serde_json::from_str(&text).expect("JSON") };
    let all = json(run(&["--json", "--seed", "5", "--seeds", "3"]));
    let each: Vec<Value> = ["5", "6", "7"].map(|seed| json(run(&["--json", "--seed", seed]))).into();
    assert_eq!((&all["first_seed"], &all["seeds"], &all["events"]), (&5.into(), &3.into(), &60.into()));
    let sum = |of: &dyn Fn(&Value) -> u64| each.iter().map(of).sum::<u64>();
    for member in ["delivered", "waiting", "retries"] {
        assert_eq!(all[member], sum(&|one| one[member].as_u64().expect("a number")), "{member}");
    }
    for (fault, count) in all["faults"]["struck"].as_object().expect("an object") {
        assert_eq!(*count, sum(&|one| one["faults"]["struck"][fault].as_u64().expect("a number")), "{fault}");
    }
    for duplicates in ["duplicate_retries", "duplicate_dead_letters", "duplicate_moves"] {
        let each = sum(&|one| one["faults"][duplicates].as_u64().expect("a number"));
        assert_eq!(all["faults"][duplicates], each, "{duplicates}");
    }
    assert_eq!(
        all["repeat"],
        "cargo run --release -p comeback -- simulate --seed 5 --events 20 --for 6h --chaos --hide-up-to 0 --json --seeds 3"
    );
    let text = run(&["--seed", "5", "--seeds", "3"]);
    let repeat = "\nrepeat with: cargo run --release -p comeback -- simulate --seed 5 --events 20 --for 6h --chaos --hide-up-to 0 --seeds 3\n";
    for line in ["; 3 seeds from 5 on\n", "seeds without a broken invariant", "duplicate_delivery", repeat] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_highest_seed_has_successors() {
    let json = |arguments: &[&str]| -> Value {
        let small = ["simulate", "--json", "--events", "5", "--max-retries", "2"];
        serde_json::from_str(&stdout(comeback(&[&small, arguments].concat()))).expect("JSON")
    };
    let highest = "18446744073709551615";
    let all = json(&["--seed", highest, "--seeds", "3"]);
    assert_eq!(all["events"], 15);
    let each = [highest, "0", "1"].map(|seed| json(&["--seed", seed])["retries"].as_u64().expect("a number"));
    assert_eq!(all["retries"], each.iter().sum::<u64>());
}

#[test]
fn events_that_have_not_arrived_are_counted_as_such_with_a_warning() {
    let arguments = ["simulate", "--events", "50", "--outage", "12h", "--for", "3h"];
    let warned = |more: &[&str]| {
        let output = comeback(&[&arguments, more].concat());
        let (text, warning) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
        (text.expect("text"), warning.expect("text"))
    };
    let (json, warning) = warned(&["--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let number = |key: &str| json[key].as_u64().expect("a number");
    assert!((25..45).contains(&number("not_arrived")), "a quarter of them arrives: {json}");
    assert_eq!((number("waiting") + number("not_arrived"), number("delivered")), (50, 0));
    let expected = format!(
        "warning: {} events have not arrived: the run ends after 3h (--for), and events arrive within 12h (--arrival-spread)\n",
        number("not_arrived")
    );
    assert_eq!(warning, expected);
    let (text, warning) = warned(&[]);
    assert!(text.contains(&format!("│ not arrived                ┆ {} ", number("not_arrived"))), "{text}");
    assert_eq!(warning, expected);
    let (text, warning) = warned(&["--seeds", "2"]);
    assert!(text.contains("│ not arrived ") && warning.starts_with("warning: "), "{text}{warning}");
    let whole = comeback(&["simulate", "--events", "5"]);
    assert_eq!(whole.stderr, b"");
    assert!(!stdout(whole).contains("not arrived"));
}

#[test]
fn moves_have_rows_where_there_were_some() {
    let row = |label: &str, count: u64| format!("│ {label:<27} ┆ {count} ");
    let run = |more: &[&str]| comeback(&[&["simulate", "--events", "50", "--for", "6h"], more].concat());
    let some = run(&["--hide-up-to", "0"]);
    assert_eq!(some.stderr, b"", "none of them could have been hidden");
    let (json, text) = (stdout(run(&["--hide-up-to", "0", "--json"])), stdout(some).replace(',', ""));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let moves = json["moves"].as_u64().expect("a number");
    assert!(moves > 100, "{json}");
    for (label, count) in [("sent again with a delay", moves), ("  although there was room", 0)] {
        assert!(text.contains(&row(label, count).replace(',', "")), "{label}: {text}");
    }
    assert!(!stdout(run(&[])).contains("sent again"));
}

#[test]
fn the_wrong_number_of_pollers_is_warned_of() {
    let warning = |arguments: &[&str]| {
        let output = comeback(&[&["simulate", "--json"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let many = ["--events", "4000", "--outage", "10m", "--for", "20m", "--handler-run-time", "5s"];
    let few = warning(&[&many[..], &["--maximum-concurrency", "2"]].concat());
    let expected = " messages were visible, and not received although fewer were in flight than can be: 2 pollers are too few";
    assert!(few.starts_with("warning: for ") && few.contains(expected) && few.lines().count() == 1, "{few}");
    let enough = ["--maximum-concurrency", "1000", "--hide-up-to", "always"];
    assert_eq!(warning(&[&many[..], &enough].concat()), "");
    let shared = warning(&["--events", "50", "--hide-up-to", "500", "--maximum-concurrency", "1000"]);
    assert!(shared.contains(": 1,000 pollers share that room") && shared.lines().count() == 1, "{shared}");
}

#[test]
fn large_payloads_cost_a_request_for_each_64_kib() {
    let cost = |size: &str| -> (Value, f64) {
        let arguments = ["simulate", "--json", "--events", "20", "--outage", "10m", "--for", "2h"];
        let json = stdout(comeback(&[&arguments[..], &["--payload-size", size]].concat()));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let usd = json["cost_usd"].as_f64().expect("a number");
        (json, usd)
    };
    let ((small, few), (large, many)) = (cost("0"), cost("200000"));
    assert_eq!(small["api_calls"], large["api_calls"], "as many calls");
    // 200,000 bytes and the rest of a record are four chunks: three requests more for each send and receive.
    let calls = |name: &str| small["api_calls"][name].as_f64().expect("a number");
    let sends = calls("sqs:SendMessage");
    let least = 3.0 * 0.4e-6 * (sends + sends * 2.0);
    assert!(many - few > least * 0.95 && many - few < least * 1.2, "{} more, {least} at least", many - few);
}

#[test]
fn tables_fit_80_columns() {
    let long =
        ["--events", "40", "--outage", "20h", "--for", "14d", "--max-age", "14d", "--base-backoff", "10h"];
    for arguments in [
        &["simulate", "--events", "100"][..],
        &["simulate", "--chaos", "--events", "30"],
        &["simulate", "--chaos", "--events", "30", "--seeds", "2"],
        &[&["simulate"], &long[..]].concat(),
        &["schedule", "--max-age", "14d", "--events", "300"],
        &["schedule", "--jitter", "decorrelated", "--max-age", "14d", "--events", "300"],
        &["contention", "--clients", "10,1000", "--runs", "1"],
    ] {
        let text = stdout(comeback(arguments));
        let tables = text.lines().filter(|line| line.starts_with(['│', '┌', '╞', '└']));
        let widest = tables.clone().max_by_key(|line| line.chars().count()).expect("a table");
        assert!(widest.chars().count() <= 80, "{arguments:?}: {widest}");
    }
}

#[test]
fn the_summary_is_for_people() {
    let text = stdout(comeback(&["simulate", "--events", "30", "--outage", "30m", "--failure-rate", "0.5"]));
    assert!(text.starts_with(
        "30 events arrive within 30m; their target is down for the first 30m; 50 % of the invocations fail after that; seed 1\n"
    ));
    for label in [
        "delivered",
        "dead-lettered",
        "waiting",
        "attempts per event",
        "recovery after the outage",
        "retries made",
        "peak in flight",
        "virtual time",
        "wall time",
        "retries a second",
        "sqs:ReceiveMessage",
        "total",
        "a row is 1h",
        "repeat with: cargo run --release -p comeback -- simulate --seed 1 --events 30 --outage 30m --failure-rate 0.5\n",
    ] {
        assert!(text.contains(label), "{label}: {text}");
    }
    assert!(text.contains(" of 120,000 (0.0 %)"), "{text}");
}

#[test]
fn colours_only_where_they_belong() {
    let text =
        |environment: &[(&str, &str)]| stdout(comeback_with(&["simulate", "--events", "3"], environment));
    assert!(!text(&[]).contains('\u{1b}'), "standard output is no terminal here");
    assert!(text(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!text(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn csv_has_a_line_a_minute() {
    let folder = scratch();
    let file = folder.path().join("minutes.csv");
    let json =
        stdout(comeback(&["simulate", "--events", "30", "--for", "6h", "--json", "--csv", plain(&file)]));
    let csv = std::fs::read_to_string(&file).expect("the file was written");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "minute,retries,delivered,dead_lettered,in_flight,visible,delayed");
    assert_eq!(lines.len(), 1 + 6 * 60 + 1);
    let retries: u64 = lines[1..]
        .iter()
        .map(|line| line.split(',').nth(1).expect("a cell").parse::<u64>().expect("a number"))
        .sum();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["retries"], retries);
}

#[test]
fn a_csv_that_cannot_be_written_is_named() {
    let output = comeback(&["simulate", "--events", "1", "--csv", "no/such/directory.csv"]);
    assert_eq!(
        failed(&output),
        (1, "error: no/such/directory.csv: No such file or directory (os error 2)\n")
    );
}

#[test]
fn everything_refused_is_said_at_once_in_the_handlers_words() {
    let output = comeback(&[
        "simulate",
        "--max-age",
        "59s",
        "--max-retries",
        "many",
        "--base-backoff",
        "2h",
        "--max-backoff",
        "1h",
        "--jitter",
        "wild",
        "--envelope",
        "box",
        "--events",
        "0",
        "--failure-rate",
        "1.5",
    ]);
    let (code, text) = failed(&output);
    let mut lines: Vec<&str> = text.trim_start_matches("error: ").lines().map(str::trim).collect();
    lines.sort_unstable();
    let expected = [
        "--events is 0; it must be 1 to 10000000",
        "--failure-rate is 1.5; it must be 0 to 1",
        "BASE_BACKOFF is 7200 s; it must be 1 s to MAX_BACKOFF (3600 s)",
        "ENVELOPE is \"box\"; it must be wrap or inline",
        "JITTER is \"wild\"; it must be full, equal, decorrelated or none",
        "MAX_AGE is 59 s; it must be 60 s to 1209600 s (14 days)",
        "MAX_RETRIES is \"many\"; it must be a whole number",
    ];
    assert_eq!((code, lines), (2, expected.to_vec()));
}

#[test]
fn flags_that_do_not_go_together_are_named() {
    for (arguments, message) in [
        (
            ["--seeds", "7", "--csv=minutes.csv"],
            "error: the argument '--seeds <N>' cannot be used with '--csv <FILE>'\n",
        ),
        (
            ["--fault", "clock_skew", "--json"],
            "error: invalid value 'clock_skew' for '--fault <NAME=RATE[@FROM..UNTIL]>': must be NAME=RATE or NAME=RATE@FROM..UNTIL, such as invoke_throttled=0.1@2h..4h\n",
        ),
        (
            ["--fault", "clock_skew=1.5", "--json"],
            "error: --fault is clock_skew=1.5; it must be a rate of 0 to 1, within a window that is not empty\n",
        ),
        (
            ["--retry-after", "0", "--json"],
            "error: --retry-after is 0ns; it must be whole seconds, 1 s to 14 days\n",
        ),
        (
            ["--outage", "soon", "--json"],
            "error: invalid value 'soon' for '--outage <TIME>': must be whole seconds, or a duration such as 200ms, 90s or 3h\n",
        ),
    ] {
        let output = comeback(&[&["simulate"], &arguments[..]].concat());
        let (code, text) = failed(&output);
        assert_eq!(code, 2);
        assert!(text.starts_with(message), "{text}");
    }
}
