//! Tests for `comeback simulate`: what it prints, and its exit codes.

use serde_json::Value;

use crate::support::*;

#[test]
fn json_is_as_documented_and_the_same_for_the_same_seed() {
    let run = |seed| printed(&format!("simulate --json --events 30 --max-retries 9 --seed {seed}"));
    let text = run(5);
    assert_eq!(text, run(5));
    assert_ne!(text, run(6));
    let documented = "seed events virtual_seconds delivered dead_lettered waiting not_arrived retries attempts \
        recovery_delay_ms peak_in_flight in_flight_limit peak_visible peak_delayed moves moves_with_room api_calls \
        handler_gb_seconds target_gb_seconds log_bytes cost_usd repeat";
    assert_eq!(members(&text).join(" "), documented);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let dead_lettered: u64 =
        json["dead_lettered"].as_object().expect("an object").values().filter_map(Value::as_u64).sum();
    assert!(json["dead_lettered"]["max_retries"].as_u64() > Some(0), "{json}");
    assert_eq!(number(&json, "delivered") + dead_lettered + number(&json, "waiting"), 30);
    assert_eq!(json["api_calls"]["lambda:Invoke (target)"], json["retries"]);
    let repeat = "cargo run --release -p comeback -- simulate --seed 5 --events 30 --max-retries 9 --json";
    assert_eq!(json["repeat"], repeat);
}

#[test]
fn chaos_counts_each_fault_and_repeats() {
    let run = |seed| printed(&format!("simulate --chaos --json --events 60 --seed {seed}"));
    let text = run(3);
    assert_ne!(text, run(4));
    let chaos: Value = serde_json::from_str(&text).expect("JSON");
    let struck = chaos["faults"]["struck"].as_object().expect("an object");
    assert_eq!(struck.len(), 38, "all but the end of retention: {struck:?}");
    assert!(struck["clock_skew"].as_u64() > Some(0));
    assert!(chaos["faults"]["duplicate_retries"].is_u64() && chaos["faults"]["duplicate_moves"].is_u64());
    // A run prints the command that repeats it.
    let repeat = chaos["repeat"].as_str().expect("text");
    let repeat = repeat.strip_prefix("cargo run --release -p comeback -- ").expect("it runs from a checkout");
    assert_eq!(printed(repeat), text);
}

#[test]
fn a_fault_replaces_that_of_the_mix() {
    let outage = json("simulate --events 40 --fault handler_outage=1@1h..90m --fault retention_ended=0.2");
    let struck = outage["faults"]["struck"].as_object().expect("an object");
    assert_eq!(struck.keys().collect::<Vec<_>>(), ["handler_outage", "retention_ended"]);
    assert!(outage["dead_lettered"]["expired"].as_u64() > Some(0), "{outage}");
    let calm = json("simulate --events 40 --chaos --fault clock_skew=0");
    assert_eq!(calm["faults"]["struck"]["clock_skew"], 0);
}

#[test]
fn many_seeds_are_added_up() {
    let start = "simulate --chaos --events 20 --for 6h --hide-up-to 0";
    let all = json(&format!("{start} --seed 5 --seeds 3"));
    let each = [5, 6, 7].map(|seed| json(&format!("{start} --seed {seed}")));
    assert_eq!((&all["first_seed"], &all["seeds"], &all["events"]), (&5.into(), &3.into(), &60.into()));
    let sum = |of: &dyn Fn(&Value) -> &Value| {
        each.iter().map(|one| of(one).as_u64().expect("a count")).sum::<u64>()
    };
    for member in ["delivered", "waiting", "retries"] {
        assert_eq!(all[member], sum(&|one| &one[member]), "{member}");
    }
    for (fault, count) in all["faults"]["struck"].as_object().expect("an object") {
        assert_eq!(*count, sum(&|one| &one["faults"]["struck"][fault]), "{fault}");
    }
    for duplicates in ["duplicate_retries", "duplicate_dead_letters", "duplicate_moves"] {
        assert_eq!(all["faults"][duplicates], sum(&|one| &one["faults"][duplicates]), "{duplicates}");
    }
    let repeat =
        "cargo run --release -p comeback -- simulate --seed 5 --events 20 --for 6h --chaos --hide-up-to 0";
    assert_eq!(all["repeat"], format!("{repeat} --json --seeds 3"));
    let text = printed(&format!("{start} --seed 5 --seeds 3"));
    for line in ["; 3 seeds from 5 on\n", "seeds without a broken invariant", "duplicate_delivery"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.ends_with(&format!("\nrepeat with: {repeat} --seeds 3\n")), "{text}");
}

#[test]
fn the_highest_seed_has_successors() {
    let run = |flags: &str| json(&format!("simulate --events 5 --max-retries 2 --seed {flags}"));
    let all = run("18446744073709551615 --seeds 3");
    assert_eq!(all["events"], 15);
    let each = ["18446744073709551615", "0", "1"].map(|seed| number(&run(seed), "retries"));
    assert_eq!(all["retries"], each.iter().sum::<u64>());
}

#[test]
fn events_that_have_not_arrived_are_counted_with_a_warning() {
    let warned = |flags: &str| {
        let output = comeback(&format!("simulate --events 50 --outage 12h --for 3h {flags}"));
        let (text, warning) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
        (text.expect("text"), warning.expect("text"))
    };
    let (text, warning) = warned("--json");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let missing = number(&json, "not_arrived");
    assert!((25..45).contains(&missing), "a quarter of them arrives: {json}");
    assert_eq!((number(&json, "waiting") + missing, number(&json, "delivered")), (50, 0));
    let expected = format!(
        "warning: {missing} events have not arrived: the run ends after 3h (--for), but events arrive over \
         12h (--arrival-spread)\n",
    );
    assert_eq!(warning, expected);
    let (text, warning) = warned("");
    assert!(text.contains(&format!("│ not arrived               ┆ {missing} ")), "{text}");
    assert_eq!(warning, expected);
    let (text, warning) = warned("--seeds 2");
    assert!(text.contains("│ not arrived ") && warning.starts_with("warning: "), "{text}{warning}");
    let whole = comeback("simulate --events 5");
    assert_eq!(whole.stderr, b"");
    assert!(!String::from_utf8_lossy(&whole.stdout).contains("not arrived"));
}

#[test]
fn moves_have_rows_if_there_were_any() {
    let start = "simulate --events 50 --for 6h";
    let some = comeback(&format!("{start} --hide-up-to 0"));
    assert_eq!(some.stderr, b"", "none of them could have been hidden");
    let text = String::from_utf8(some.stdout).expect("text").replace(',', "");
    let moves = number(&json(&format!("{start} --hide-up-to 0")), "moves");
    assert!(moves > 100, "{moves}");
    for (label, count) in [("sent again with a delay", moves), ("  although there was room", 0)] {
        assert!(text.contains(&format!("│ {label:<27} ┆ {count} ").replace(',', "")), "{label}: {text}");
    }
    assert!(!printed(start).contains("sent again"));
}

#[test]
fn large_payloads_cost_a_request_for_each_64_kib() {
    let run = |size| json(&format!("simulate --events 20 --outage 10m --for 2h --payload-size {size}"));
    let (small, large) = (run(0), run(200_000));
    assert_eq!(small["api_calls"], large["api_calls"], "as many calls");
    // A payload of 200,000 bytes and the rest of its record fill four chunks of 64 KiB. Each send and each receive
    // therefore costs three additional requests.
    let sends = small["api_calls"]["sqs:SendMessage"].as_f64().expect("a number");
    let least = 3.0 * 0.4e-6 * (sends + sends * 2.0);
    let [few, many] = [small, large].map(|run| run["cost_usd"].as_f64().expect("a number"));
    assert!(many - few > least * 0.95 && many - few < least * 1.2, "{} more, {least} at least", many - few);
}

#[test]
fn tables_fit_80_columns() {
    for line in [
        "simulate --events 100",
        "simulate --chaos --events 30",
        "simulate --chaos --events 30 --seeds 2",
        "simulate --events 40 --outage 20h --for 14d --max-age 14d --base-backoff 10h --max-backoff 43170s",
        "schedule --max-age 14d --events 300",
        "schedule --jitter decorrelated --max-age 14d --events 300",
        "contention --clients 10,1000 --runs 1",
    ] {
        let text = printed(line);
        let tables = text.lines().filter(|line| line.starts_with(['│', '┌', '╞', '└']));
        let widest = tables.max_by_key(|line| line.chars().count()).expect("a table");
        assert!(widest.chars().count() <= 80, "{line}: {widest}");
    }
}

#[test]
fn the_summary_is_for_people() {
    let text = printed("simulate --events 30 --outage 30m --failure-rate 0.5");
    assert!(text.starts_with(
        "30 events arrive within 30m; their target is down for the first 30m; 50 % of the invocations fail after that; seed 1\n\
         repeat with: cargo run --release -p comeback -- simulate --seed 1 --events 30 --outage 30m --failure-rate 0.5\n"
    ), "{text}");
    // The report's tests check the other figures.
    for label in ["waiting", "wall time", "retries a second", "total", "a row is 1h", " of 120,000 (0.0 %)"] {
        assert!(text.contains(label), "{label}: {text}");
    }
}

#[test]
fn colours_only_where_they_belong() {
    for line in ["simulate --events 3", "schedule --events 3"] {
        let is_coloured =
            |environment: &[(&str, &str)]| comeback_with(line, environment).stdout.contains(&0x1b);
        assert!(!is_coloured(&[]), "standard output is no terminal here");
        assert!(is_coloured(&[("CLICOLOR_FORCE", "1")]));
        assert!(!is_coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    }
}

#[test]
fn csv_has_a_line_a_minute() {
    let folder = scratch();
    let file = folder.path().join("minutes.csv");
    let json = json(&format!("simulate --events 30 --for 6h --csv {}", file.display()));
    let csv = std::fs::read_to_string(&file).expect("the file was written");
    let (head, lines) = csv.split_once('\n').expect("lines");
    assert_eq!(head, "minute,retries,delivered,dead_lettered,in_flight,visible,delayed");
    assert_eq!(lines.lines().count(), 6 * 60 + 1);
    let retries = lines.lines().map(|line| line.split(',').nth(1).expect("a cell"));
    assert_eq!(json["retries"], retries.map(|count| count.parse::<u64>().expect("a number")).sum::<u64>());
    let missing = "error: no/such/directory.csv: No such file or directory (os error 2)\n".to_owned();
    assert_eq!(failed("simulate --events 1 --csv no/such/directory.csv"), (1, missing));
}

#[test]
fn every_refusal_is_reported_at_once_in_the_handlers_words() {
    let (code, text) = failed(
        "simulate --max-age 59s --max-retries many --base-backoff 2h --max-backoff 1h --jitter wild --envelope box \
         --events 0 --failure-rate 1.5",
    );
    let mut lines: Vec<&str> = text.trim_start_matches("error: ").lines().map(str::trim).collect();
    lines.sort_unstable();
    let expected = [
        "--events is 0; it must be 1 to 10000000",
        "--failure-rate is 1.5; it must be 0 to 1",
        "BASE_BACKOFF is 7200 s; it must be 1 s to MAX_BACKOFF (3600 s): lower it, or raise MAX_BACKOFF",
        "ENVELOPE is \"box\"; it must be wrap or inline",
        "JITTER is \"wild\"; it must be full, equal, decorrelated or none",
        "MAX_AGE is 59 s; it must be 60 s to 1209600 s (14 days)",
        "MAX_RETRIES is \"many\"; it must be a whole number",
    ];
    assert_eq!((code, lines), (2, expected.to_vec()));
}

#[test]
fn refused_flags_are_named() {
    for (flags, error) in [
        ("--seeds 7 --csv=minutes.csv", "the argument '--seeds <N>' cannot be used with '--csv <FILE>'\n"),
        (
            "--fault clock_skew",
            "invalid value 'clock_skew' for '--fault <NAME=RATE[@FROM..UNTIL]>': must be ",
        ),
        ("--retry-after 0", "--retry-after is 0ns; it must be whole seconds, 1 s to 14 days\n"),
    ] {
        assert_refused(&format!("simulate {flags}"), &format!("error: {error}"));
    }
}
