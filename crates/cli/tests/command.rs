//! The compiled command: what it prints, and how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn comeback(arguments: &[&str]) -> Output {
    comeback_with(arguments, &[])
}

fn comeback_with(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comeback"))
        .args(arguments)
        .current_dir(repository())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .output()
        .expect("the command runs")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file that is gone with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).expect("a scratch file can be written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Standard output of a run that worked.
fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Exit code and standard error of one that did not, which then printed nothing else.
fn failed(output: &Output) -> (i32, &str) {
    assert_eq!(output.stdout, b"", "{output:?}");
    (output.status.code().expect("an exit code"), std::str::from_utf8(&output.stderr).expect("text"))
}

#[test]
fn json_has_what_is_documented_and_the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        stdout(comeback(&["replay", "--json", "--events", "30", "--max-retries", "9", "--seed", seed]))
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
        "retries",
        "attempts",
        "recovery_delay_ms",
        "peak_in_flight",
        "in_flight_limit",
        "peak_visible",
        "api_calls",
        "handler_gb_seconds",
        "target_gb_seconds",
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
    assert_eq!(json["repeat"], "comeback replay --seed 5 --events 30 --max-retries 9 --json");
}

#[test]
fn chaos_counts_each_fault_and_the_same_seed_gives_the_same_bytes() {
    let run = |arguments: &[&str]| {
        stdout(comeback(&[&["replay", "--chaos", "--json", "--events", "60"], arguments].concat()))
    };
    let json = run(&["--seed", "3"]);
    assert_eq!(json, run(&["--seed=3"]));
    assert_ne!(json, run(&["--seed", "4"]));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let struck = json["faults"]["struck"].as_object().expect("an object");
    assert_eq!(struck.len(), 23, "all but the end of retention: {struck:?}");
    assert!(struck["clock_skew"].as_u64() > Some(0));
    assert!(json["faults"]["duplicate_retries"].is_u64());
    // The command that a run prints is one that repeats it.
    let repeat = json["repeat"].as_str().expect("text");
    let words: Vec<&str> = repeat.split(' ').skip(1).collect();
    assert_eq!(serde_json::from_str::<Value>(&stdout(comeback(&words))).expect("JSON"), json);
}

#[test]
fn one_fault_in_its_window_replaces_that_of_the_mix() {
    let run = |arguments: &[&str]| -> Value {
        let output = comeback(&[&["replay", "--json", "--events", "40"], arguments].concat());
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
        stdout(comeback(&[&["replay", "--chaos", "--events", "20", "--for", "6h"], arguments].concat()))
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
    assert_eq!(all["repeat"], "comeback replay --seed 5 --events 20 --for 6h --chaos --json --seeds 3");
    let text = run(&["--seed", "5", "--seeds", "3"]);
    let repeat = "\nrepeat with: comeback replay --seed 5 --events 20 --for 6h --chaos --seeds 3\n";
    for line in ["; 3 seeds from 5 on\n", "seeds without a broken invariant", "duplicate_delivery", repeat] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_summary_is_for_people() {
    let text = stdout(comeback(&["replay", "--events", "30", "--outage", "30m", "--failure-rate", "0.5"]));
    assert!(text.starts_with(
        "30 events arrive within 30m; their target is down for the first 30m; 50 % of the invocations fail after that; seed 1\n"
    ));
    for label in [
        "delivered",
        "dead-lettered",
        "waiting",
        "attempts per event",
        "recovery delay after the outage",
        "retries made",
        "peak in flight",
        "virtual time",
        "wall time",
        "retries per second",
        "sqs:ReceiveMessage",
        "total",
        "a row is 1h",
        "repeat with: comeback replay --seed 1 --events 30 --outage 30m --failure-rate 0.5\n",
    ] {
        assert!(text.contains(label), "{label}: {text}");
    }
    assert!(text.contains(" of 120,000 (0.0 %)"), "{text}");
}

#[test]
fn colours_only_where_they_belong() {
    let text =
        |environment: &[(&str, &str)]| stdout(comeback_with(&["replay", "--events", "3"], environment));
    assert!(!text(&[]).contains('\u{1b}'), "standard output is no terminal here");
    assert!(text(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!text(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn csv_has_a_line_a_minute() {
    let file = Scratch::new("minutes.csv", "");
    let json = stdout(comeback(&["replay", "--events", "30", "--for", "6h", "--json", "--csv", file.path()]));
    let csv = std::fs::read_to_string(&file.0).expect("the file was written");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "minute,retries,delivered,dead_lettered,in_flight,visible");
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
    let output = comeback(&["replay", "--events", "1", "--csv", "no/such/directory.csv"]);
    assert_eq!(
        failed(&output),
        (1, "error: no/such/directory.csv: No such file or directory (os error 2)\n")
    );
}

#[test]
fn everything_refused_is_said_at_once_in_the_handlers_words() {
    let output = comeback(&[
        "replay",
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
            ["replay", "--events", "7", "events/not-json.json"],
            "error: --events is for the simulation, which runs without FILE\n",
        ),
        (
            ["replay", "--at", "2026-09-14T15:46:54Z", "--json"],
            "error: --at is for recorded events: name at least one FILE\n",
        ),
        (
            ["replay", "--at", "yesterday", "events/not-json.json"],
            "error: invalid value 'yesterday' for '--at <TIME>': must be a time such as 2026-09-14T15:46:54Z\n",
        ),
        (
            ["replay", "--chaos", "--seeds=7", "events/not-json.json"],
            "error: --chaos, --seeds is for the simulation, which runs without FILE\n",
        ),
        (
            ["replay", "--seeds", "7", "--csv=minutes.csv"],
            "error: the argument '--seeds <N>' cannot be used with '--csv <FILE>'\n",
        ),
        (
            ["replay", "--fault", "clock_skew", "--json"],
            "error: invalid value 'clock_skew' for '--fault <NAME=RATE[@FROM..UNTIL]>': must be NAME=RATE or NAME=RATE@FROM..UNTIL, such as invoke_throttled=0.1@2h..4h\n",
        ),
        (
            ["replay", "--fault", "clock_skew=1.5", "--json"],
            "error: --fault is clock_skew=1.5; it must be a rate of 0 to 1, within a window that is not empty\n",
        ),
        (
            ["replay", "--outage", "soon", "--json"],
            "error: invalid value 'soon' for '--outage <TIME>': must be whole seconds, or a duration such as 200ms, 90s or 3h\n",
        ),
    ] {
        let output = comeback(&arguments);
        let (code, text) = failed(&output);
        assert_eq!(code, 2);
        assert!(text.starts_with(message), "{text}");
    }
}

#[test]
fn every_sample_is_replayed_under_its_name() {
    let samples = std::fs::read_dir(repository().join("events")).expect("events/ is a directory");
    let mut files: Vec<String> = samples
        .map(|entry| format!("events/{}", entry.expect("a readable entry").file_name().display()))
        .filter(|file| file.ends_with(".json"))
        .collect();
    files.sort();
    let mut arguments = vec!["replay"];
    arguments.extend(files.iter().map(String::as_str));
    let text = stdout(comeback(&arguments));
    for file in &files {
        assert!(text.lines().any(|line| line.starts_with(file.as_str())), "{file}");
    }
    arguments.push("--json");
    let json: Value = serde_json::from_str(&stdout(comeback(&arguments))).expect("JSON");
    let reported: Vec<&str> =
        json.as_array().expect("an array").iter().filter_map(|r| r["file"].as_str()).collect();
    assert_eq!(reported, files);
}

#[test]
fn a_decision_is_shown_with_its_reason_its_calls_and_the_answer() {
    let text = stdout(comeback(&["replay", "events/first-failure.json", "events/target-null.json"]));
    let expected = "\
events/first-failure.json at 2026-09-14T15:46:54.187Z
  ac0cc4b9-406c-5db5-80f1-400cbb736fc1: defer, retry 1 of arn:aws:lambda:eu-west-1:123456789012:function:flaky-target:$LATEST
    first receive; its backoff ends at 2026-09-14T15:46:55.187Z
  → sqs:ChangeMessageVisibilityBatch
    ac0cc4b9-406c-5db5-80f1-400cbb736fc1 for 1 s
  batchItemFailures: ac0cc4b9-406c-5db5-80f1-400cbb736fc1

events/target-null.json: not an SQS event: a payload for the target; nothing for the handler to do

";
    assert_eq!(text, expected);
}

#[test]
fn the_clock_the_policy_and_the_allow_list_can_be_set() {
    let early = ["replay", "--at", "2026-09-14T16:00:00Z", "events/early-return.json"];
    assert!(
        stdout(comeback(&early))
            .contains("receive 2, back early; its backoff ends at 2026-09-14T16:16:48.233Z")
    );
    let refused = ["replay", "--non-retryable-errors", "Order*", "events/non-retryable-error.json"];
    assert!(stdout(comeback(&refused)).contains("dead_letter non_retryable_error"));
    let payroll = "arn:aws:lambda:eu-west-1:123456789012:function:payroll";
    let allowed = ["replay", "--target-functions", payroll, "events/target-not-allowed.json"];
    assert!(stdout(comeback(&allowed)).contains("defer, retry 1"));
    let inline = ["replay", "--envelope", "inline", "events/second-receive.json"];
    assert!(stdout(comeback(&inline)).contains(r#""style":"inline"},"order":7"#));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let broken = Scratch::new("broken.json", "{\n  \"Records\": [\n");
    let output = comeback(&["replay", "events/not-json.json", broken.path()]);
    let message =
        format!("error: {}: not JSON: EOF while parsing a list at line 3 column 0\n", broken.path());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), message);
    let output = comeback(&["replay", "nowhere.json"]);
    assert_eq!(failed(&output), (1, "error: nowhere.json: No such file or directory (os error 2)\n"));
}

#[test]
fn a_copy_of_an_event_happens_now() {
    let copy = stdout(comeback(&["event", "events/verbatim-payload.json"]));
    let original =
        std::fs::read_to_string(repository().join("events/verbatim-payload.json")).expect("a sample");
    assert_eq!(copy.len(), original.len());
    assert_ne!(copy, original);
    let payload =
        r#"\"big\": 12345678901234567890123, \"one\": 1.0, \"huge\": 1E400, \"twice\": 1, \"twice\": 2"#;
    assert!(copy.contains(payload), "{copy}");
    // Replayed, it is due at the moment it was made for: within the last second or so.
    let file = Scratch::new("now.json", &copy);
    let replayed = stdout(comeback(&["replay", file.path()]));
    assert!(replayed.contains("reinvoke, retry 1"), "{replayed}");
    let again = stdout(comeback(&["event", file.path()]));
    let sent = |json: &str| -> u64 {
        let event: Value = serde_json::from_str(json).expect("JSON");
        let sent = event["Records"][0]["attributes"]["SentTimestamp"].as_str().expect("a string");
        sent.parse().expect("a number")
    };
    assert!(sent(&again) - sent(&copy) < 60_000, "shifted by the seconds since, not by years");
}

#[test]
fn only_sqs_events_can_be_shifted() {
    let output = comeback(&["event", "events/target-order.json"]);
    let message =
        "error: events/target-order.json: not an SQS event: a payload for the target has no times to shift\n";
    assert_eq!(failed(&output), (1, message));
}

#[test]
fn help_shows_examples() {
    for (command, example) in [("replay", "comeback replay events/*.json"), ("event", "cargo lambda invoke")]
    {
        let text = stdout(comeback(&[command, "--help"]));
        assert!(text.contains("Examples:") && text.contains(example), "{text}");
    }
}
