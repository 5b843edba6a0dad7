//! Tests for `comeback replay FILE…` and `comeback replay --shift-to-now FILE`.

use serde_json::Value;

use crate::support::*;

fn handled(line: &str) -> Value {
    json(line)["files"][0]["handled"].take()
}

#[test]
fn a_decision_is_shown_with_its_reason_its_calls_and_the_answer() {
    let text = printed("replay events/first-failure.json");
    let expected = "\
events/first-failure.json at 2026-09-14T15:46:54.187Z
  ac0cc4b9-406c-5db5-80f1-400cbb736fc1: defer, retry 1 of arn:aws:lambda:eu-west-1:123456789012:function:flaky-target:$LATEST
    first receive; its backoff ends at 2026-09-14T15:46:56.187Z
  → sqs:ChangeMessageVisibilityBatch
    ac0cc4b9-406c-5db5-80f1-400cbb736fc1 for 2 s
  batchItemFailures: ac0cc4b9-406c-5db5-80f1-400cbb736fc1

";
    assert_eq!(text, expected);
}

#[test]
fn the_clock_the_policy_and_the_allow_list_can_be_set() {
    for (arguments, expected) in [
        (
            "--at 2026-09-14T16:00:00Z events/early-return.json",
            "receive 2, back early; its backoff ends at 2026-09-14T16:39:27.233Z",
        ),
        ("--non-retryable-errors Order* events/non-retryable-error.json", "dead_letter non_retryable_error"),
        (
            "--target-functions arn:aws:lambda:eu-west-1:123456789012:function:orders events/target-not-allowed.json",
            "dead_letter target_not_allowed",
        ),
        ("events/target-not-allowed.json", "defer, retry 1"),
        ("--envelope inline events/second-receive.json", r#""style":"inline"},"order":7"#),
        ("--policies 'flaky-target MAX_RETRIES=0' events/first-failure.json", "dead_letter max_retries"),
    ] {
        let text = printed(&format!("replay {arguments}"));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_function_that_a_file_names_is_allowed_and_named() {
    let note = |line: &str| {
        let output = comeback(line);
        assert!(output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let allowed =
        "note: allowed, because the files name them: payroll:$LATEST; --target-functions narrows that\n";
    assert_eq!(note("replay events/target-not-allowed.json"), allowed);
    assert_eq!(note("replay --json events/target-not-allowed.json"), allowed);
    assert_eq!(note("replay events/first-failure.json"), "", "the samples' own");
    assert_eq!(
        note(
            "replay --target-functions arn:aws:lambda:eu-west-1:123456789012:function:payroll events/target-not-allowed.json"
        ),
        ""
    );
    let note_about = |name: &str| {
        let arn = format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
        let record = format!(r#"{{"requestContext":{{"functionArn":"{arn}"}},"requestPayload":7}}"#);
        String::from_utf8_lossy(&comeback_reading("replay -", record).stderr).into_owned()
    };
    assert_eq!(note_about("flaky-target:live"), "");
    assert!(note_about("flaky-target-eu").contains("name them: flaky-target-eu;"), "another function");
    assert_eq!(note_about("a b"), "", "a name that no function has is not allowed");
}

#[test]
fn standard_input_is_replayed() {
    let sample = std::fs::read_to_string(repository().join("events/first-failure.json")).expect("a sample");
    let output = comeback_reading("replay - --json", &sample);
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["files"][0]["file"], "-");
    assert_eq!(said["files"][0]["handled"]["decisions"][0]["step"], "defer");
    let empty = comeback_reading("replay -", "");
    assert_eq!(empty.status.code(), Some(2));
    let why = "error: -: it is empty, which `aws sqs receive-message` prints for an empty queue\n";
    assert_eq!(String::from_utf8_lossy(&empty.stderr), why);
    let utf16 = comeback_reading("replay -", b"\xff\xfe{\0}\0");
    let why = "error: -: it is UTF-16, as Windows PowerShell's `>` writes; save it as UTF-8\n";
    assert_eq!((utf16.status.code(), &*String::from_utf8_lossy(&utf16.stderr)), (Some(2), why));
}

#[test]
fn an_entry_that_matches_no_function_is_a_warning() {
    let entries = "--policies 'flaky-target MAX_AGE=2h;flacky MAX_AGE=2h'";
    for (line, whose) in [
        (format!("replay events/first-failure.json {entries}"), "of these events"),
        (
            format!("simulate --events 1 --target flaky-target {entries}"),
            "of the run; name its functions with --target",
        ),
    ] {
        let output = comeback(&line);
        let expected = format!("warning: POLICIES entry \"flacky MAX_AGE=2h\" matches no function {whose}\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{line}");
        assert!(output.status.success());
    }
}

#[test]
fn a_moved_message_is_due_at_the_same_moment() {
    let text = printed("replay events/first-failure.json --hide-up-to 0");
    let expected = r#"
    first receive; its backoff ends at 2026-09-14T15:46:56.187Z
  → sqs:ChangeMessageVisibilityBatch
    ac0cc4b9-406c-5db5-80f1-400cbb736fc1 for 4260 s
  → sqs:SendMessageBatch (retry queue)
    ac0cc4b9-406c-5db5-80f1-400cbb736fc1 with a delay of 2 s
    Comeback={"message_id":"ac0cc4b9-406c-5db5-80f1-400cbb736fc1","sent":1789400814187,"first_receive":1789400814233,"receives":1,"moves":1}
  batchItemFailures: none, so SQS deletes every message
"#;
    assert!(text.contains(expected), "{text}");
    // The moved copy of the message in early-return.json is due at the same time as the original.
    let moved = "replay --at 2026-09-14T16:02:00Z events/moved-message.json";
    let hidden = printed(moved);
    let due = "moved 2 times; its backoff ends at 2026-09-14T16:39:27.233Z\n";
    assert!(hidden.contains(due) && hidden.contains(" for 2248 s\n"), "{hidden}");
    let handled = handled(&format!("{moved} --hide-up-to 0"));
    let decision = &handled["decisions"][0];
    assert_eq!((&decision["visibility_timeout"], &decision["delay"]), (&Value::Null, &750.into()));
    let call = &handled["calls"][1];
    assert_eq!(call["operation"], "sqs:SendMessageBatch (retry queue)", "after its message is hidden");
    let comeback = call["copies"][0]["comeback"].as_str().expect("text");
    assert!(comeback.contains(r#""message_id":"4741e6aa-b04c-5b84-b546-81019587b4e3""#), "{comeback}");
    assert!(comeback.ends_with(r#""receives":2,"moves":3}"#), "{comeback}");
}

#[test]
fn an_attribute_that_is_ignored_is_named() {
    let text = printed("replay events/garbled-attribute.json");
    let expected = "; the attribute Comeback is unreadable: EOF while parsing an object at line 1 column 70: \
                    it is ignored, so the message counts as new\n";
    assert!(text.contains("\n    first receive; its backoff ends at ") && text.contains(expected), "{text}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = scratch();
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{\n  \"Records\": [\n").expect("a scratch file can be written");
    let error =
        format!("error: {}: not JSON: EOF while parsing a list at line 3 column 0\n", broken.display());
    assert_eq!(failed(&format!("replay events/not-json.json {}", broken.display())), (2, error));
    let missing = "error: nowhere.json: No such file or directory (os error 2)\n".to_owned();
    assert_eq!(failed("replay nowhere.json"), (1, missing));
}

/// The test's file is the output of `aws sqs receive-message` without any attributes, in UTF-8 with a byte-order mark.
#[test]
fn receive_message_output_is_replayed_and_shifted() {
    let event: Value = serde_json::from_str(&read("events/first-failure.json")).expect("JSON");
    let message = &event["Records"][0];
    let [id, body] = ["messageId", "body"].map(|member| message[member].as_str().expect("text"));
    let received = serde_json::json!({"Messages": [{"MessageId": id, "ReceiptHandle": "h", "MD5OfBody": "0", "Body": body}]});
    let folder = scratch();
    let file = folder.path().join("received.json");
    std::fs::write(&file, format!("\u{feff}{received}")).expect("a scratch file can be written");
    let text = printed(&format!("replay {}", file.display()));
    let expected = "\n  the file lacks SQS's times; assumed: each message was sent when its event failed, and this is \
                    its first receive\n  ac0cc4b9-406c-5db5-80f1-400cbb736fc1: defer, retry 1 of ";
    assert!(text.contains(expected), "{text}");
    let report = &json(&format!("replay {}", file.display()))["files"][0];
    assert_eq!(
        (&report["times_assumed"], &report["handled"]["at"]),
        (&true.into(), &"2026-09-14T15:46:54.145Z".into())
    );
    let shifted = folder.path().join("now.json");
    std::fs::write(&shifted, printed(&format!("replay --shift-to-now {}", file.display())))
        .expect("writable");
    let report = &json(&format!("replay {}", shifted.display()))["files"][0];
    assert_eq!(
        (&report["times_assumed"], &report["handled"]["decisions"][0]["step"]),
        (&false.into(), &"defer".into())
    );
}

#[test]
fn a_copy_of_an_event_happens_now() {
    let copy = printed("replay --shift-to-now events/verbatim-payload.json");
    let original = read("events/verbatim-payload.json");
    assert_eq!(copy.len(), original.len());
    assert_ne!(copy, original);
    let payload =
        r#"\"big\": 12345678901234567890123, \"one\": 1.0, \"huge\": 1E400, \"twice\": 1, \"twice\": 2"#;
    assert!(copy.contains(payload), "{copy}");
    // The message was due when it was copied, so a replay a moment later finds it due.
    let folder = scratch();
    let file = folder.path().join("now.json");
    std::fs::write(&file, &copy).expect("a scratch file can be written");
    let replayed = printed(&format!("replay {}", file.display()));
    assert!(replayed.contains("reinvoke, retry 1"), "{replayed}");
    let again = printed(&format!("replay --shift-to-now {}", file.display()));
    let sent = |json: &str| -> u64 {
        let event: Value = serde_json::from_str(json).expect("JSON");
        let sent = event["Records"][0]["attributes"]["SentTimestamp"].as_str().expect("a string");
        sent.parse().expect("a number")
    };
    assert!(sent(&again) - sent(&copy) < 60_000, "shifted by the seconds since, not by years");
}

#[test]
fn refusals_name_the_mistake() {
    let error =
        "error: invalid value 'yesterday' for '--at <TIME>': must be a time such as 2026-09-14T15:46:54Z\n";
    assert_refused("replay --at yesterday events/not-json.json", error);
    for flag in ["", "--shift-to-now"] {
        let payload = "error: events/payloads/order.json: it is not an SQS event, the output of `aws sqs \
                       receive-message`, a message or a failure record: ";
        assert_refused(&format!("replay {flag} events/payloads/order.json"), payload);
    }
    let two = "replay --shift-to-now events/first-failure.json events/not-json.json";
    assert_refused(two, "error: --shift-to-now takes one file\n");
    assert_refused(
        &format!("{two} --json"),
        "error: the argument '--shift-to-now' cannot be used with '--json'\n",
    );
}

#[test]
fn a_wait_that_is_ignored_is_named_with_the_reason() {
    let folder = scratch();
    let file = folder.path().join("event.json");
    let asked = read("events/asks-for-a-wait.json");
    for (message, ignored) in [
        (
            "15M; busy",
            "\"15M\" is ignored: years and months have no fixed length (minutes are a lower-case m)",
        ),
        ("4102444800", "\"4102444800\" is ignored: its number is an epoch time over 14 days away"),
        ("0", "\"0\" is ignored: its time is not after the failure"),
    ] {
        let asked = asked.replace("15m; the warehouse is closed for stocktaking", message);
        std::fs::write(&file, asked).expect("a scratch file can be written");
        let text = printed(&format!("replay {}", file.display()));
        let expected = format!("; its RetryAfter {ignored}\n");
        assert!(text.contains("first receive; its backoff ends at ") && text.contains(&expected), "{text}");
    }
    let read = printed("replay events/asks-for-a-wait.json");
    assert!(!read.contains("ignored"), "{read}");
}
