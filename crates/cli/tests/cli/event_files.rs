//! `comeback replay FILE` and `comeback event FILE`.

use serde_json::Value;

use crate::support::*;

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
fn a_message_without_an_id_keeps_its_whole_batch_as_the_handler_does() {
    let folder = scratch();
    let sample = std::fs::read_to_string(repository().join("events/first-failure.json")).expect("a sample");
    let mut event: Value = serde_json::from_str(&sample).expect("JSON");
    let mut nameless = event["Records"][0].clone();
    nameless["messageId"] = Value::Null;
    event["Records"].as_array_mut().expect("records").push(nameless);
    let file = folder.path().join("nameless.json");
    std::fs::write(&file, event.to_string()).expect("a scratch file can be written");
    let json: Value =
        serde_json::from_str(&stdout(comeback(&["replay", "--json", plain(&file)]))).expect("JSON");
    let handled = &json[0]["handled"];
    assert_eq!(handled["calls"], serde_json::json!([]), "nothing is done");
    let id = "ac0cc4b9-406c-5db5-80f1-400cbb736fc1";
    assert_eq!(handled["batch_item_failures"], serde_json::json!([id, ""]));
    for decision in handled["decisions"].as_array().expect("decisions") {
        assert_eq!(decision["step"], Value::Null);
        assert_eq!(decision["why"], "a message has no messageId; the whole batch is kept");
    }
    let text = stdout(comeback(&["replay", plain(&file)]));
    assert!(text.contains(&format!("batchItemFailures: {id}, \"\"\n")), "{text}");
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
fn without_room_a_message_is_sent_again_and_waits_until_the_same_moment() {
    let text = stdout(comeback(&["replay", "events/first-failure.json", "--hide-up-to", "0"]));
    let expected = r#"
    first receive; its backoff ends at 2026-09-14T15:46:55.187Z
  → sqs:SendMessageBatch (retry queue)
    ac0cc4b9-406c-5db5-80f1-400cbb736fc1 with a delay of 1 s
    Comeback={"message_id":"ac0cc4b9-406c-5db5-80f1-400cbb736fc1","sent":1789400814187,"first_receive":1789400814233,"receives":1,"moves":1}
  batchItemFailures: none; SQS deletes every message
"#;
    assert!(text.contains(expected), "{text}");
    // A copy of early-return.json's message is due when that message is.
    let moved = ["replay", "--at", "2026-09-14T16:02:00Z", "events/moved-message.json"];
    let hidden = stdout(comeback(&moved));
    let due = "moved 2 times; its backoff ends at 2026-09-14T16:16:48.233Z\n";
    assert!(hidden.contains(due) && hidden.contains(" for 889 s\n"), "{hidden}");
    let json = stdout(comeback(&[&moved[..], &["--hide-up-to", "0", "--json"]].concat()));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let decision = &json[0]["handled"]["decisions"][0];
    assert_eq!((&decision["visibility_timeout"], &decision["delay"]), (&Value::Null, &889.into()));
    let call = &json[0]["handled"]["calls"][0];
    assert_eq!(call["operation"], "sqs:SendMessageBatch (retry queue)");
    let comeback = call["copies"][0]["comeback"].as_str().expect("text");
    assert!(comeback.contains(r#""message_id":"4741e6aa-b04c-5b84-b546-81019587b4e3""#), "{comeback}");
    assert!(comeback.ends_with(r#""receives":2,"moves":3}"#), "{comeback}");
}

#[test]
fn an_attribute_that_is_ignored_is_named() {
    let text = stdout(comeback(&["replay", "events/garbled-attribute.json"]));
    let expected = "; the attribute Comeback is unreadable: EOF while parsing an object at line 1 column 70: it is \
                    ignored, and the message counts as a new one\n";
    assert!(text.contains("\n    first receive; its backoff ends at ") && text.contains(expected), "{text}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = scratch();
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{\n  \"Records\": [\n").expect("a scratch file can be written");
    let output = comeback(&["replay", "events/not-json.json", plain(&broken)]);
    let message =
        format!("error: {}: not JSON: EOF while parsing a list at line 3 column 0\n", broken.display());
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
    let folder = scratch();
    let file = folder.path().join("now.json");
    std::fs::write(&file, &copy).expect("a scratch file can be written");
    let replayed = stdout(comeback(&["replay", plain(&file)]));
    assert!(replayed.contains("reinvoke, retry 1"), "{replayed}");
    let again = stdout(comeback(&["event", plain(&file)]));
    let sent = |json: &str| -> u64 {
        let event: Value = serde_json::from_str(json).expect("JSON");
        let sent = event["Records"][0]["attributes"]["SentTimestamp"].as_str().expect("a string");
        sent.parse().expect("a number")
    };
    assert!(sent(&again) - sent(&copy) < 60_000, "shifted by the seconds since, not by years");
}

#[test]
fn a_moment_that_is_none_is_refused() {
    for command in ["replay", "event"] {
        let output = comeback(&[command, "--at", "yesterday", "events/not-json.json"]);
        let (code, text) = failed(&output);
        let message = "error: invalid value 'yesterday' for '--at <TIME>': must be a time such as 2026-09-14T15:46:54Z\n";
        assert_eq!(code, 2);
        assert!(text.starts_with(message), "{text}");
    }
}

#[test]
fn only_sqs_events_can_be_shifted() {
    let output = comeback(&["event", "events/target-order.json"]);
    let message =
        "error: events/target-order.json: not an SQS event: a payload for the target has no times to shift\n";
    assert_eq!(failed(&output), (1, message));
}
