//! Runs a retry handler under AWS's Runtime Interface Emulator.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::repository::{root, scratch};
use crate::shell::{Shell, eventually, free_port, request};
use crate::stack::ARCHITECTURE;

const SAMPLE: &str = "events/target-not-allowed.json";

/// Checks a retry handler's response to a sample event under AWS's Runtime Interface Emulator.
pub async fn assert_runs_under_the_emulator(shell: &Shell, bootstrap: &Path, name: &str) {
    let directory = scratch(name);
    let emulator = directory.join("aws-lambda-rie");
    let find = ".tools/sam/bin/python -c 'import samcli; print(samcli.__path__[0])'";
    let found = shell.run(find).unwrap_or_else(|error| panic!("{error}"));
    fs::copy(format!("{}/local/rapid/aws-lambda-rie-{ARCHITECTURE}", found.trim()), &emulator)
        .expect("the emulator is there");
    fs::set_permissions(&emulator, Permissions::from_mode(0o755)).expect("it may be made executable");

    let (port, runtime_port) = (free_port(), free_port());
    let server = shell
        .clone()
        .with("TARGET_FUNCTIONS", "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target")
        .with("DEAD_LETTER_QUEUE_URL", "http://127.0.0.1:9/123456789012/dead-letters")
        .with("EMULATOR", &emulator)
        .with("BOOTSTRAP", bootstrap)
        .start(
            &format!(
                "exec \"$EMULATOR\" --log-level error --runtime-interface-emulator-address 127.0.0.1:{port} \
                 --runtime-api-address 127.0.0.1:{runtime_port} \"$BOOTSTRAP\""
            ),
            &directory.join("emulator.log"),
        )
        .expect("the emulator starts");
    let listens = async || TcpStream::connect(("127.0.0.1", port)).ok();
    eventually("the emulator to listen", listens).await;
    let event = fs::read_to_string(root().join(SAMPLE)).expect("the sample can be read");
    let answer = request("POST", port, "/2015-03-31/functions/function/invocations", &event);
    // Nothing listens at the dead-letter queue's address, so the handler must report the message as failed.
    assert_kept(&answer.unwrap_or_else(|error| panic!("{error}\n{}", server.log())), SAMPLE);
    assert!(server.log().contains(r#""reason":"target_not_allowed""#), "{}", server.log());
}

/// Asserts that a retry handler's response reports all messages in a sample event as failed, so that SQS keeps them.
pub fn assert_kept(answer: &str, sample: &str) {
    let sample = fs::read_to_string(root().join(sample)).expect("the sample can be read");
    let sample: Value = serde_json::from_str(&sample).expect("the sample is JSON");
    let records = sample["Records"].as_array().expect("the sample has records");
    let kept: Vec<_> = records.iter().map(|record| json!({"itemIdentifier": record["messageId"]})).collect();
    let answer: Value = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    assert_eq!(answer, json!({"batchItemFailures": kept}));
}
