use std::path::Path;
use std::process::Command;

use comeback_tests::root;
use serde_json::{Value, json};

use crate::page;
use crate::runtime_api::failure_in;

const CANCELLED: &str = r#"{"order":17,"status":"cancelled"}"#;

#[test]
fn python_writes_its_sample() {
    assert_writes_its_sample("python", |folder| {
        let mut python = Command::new(root().join(".tools/clients/bin/python"));
        python.args(["-m", "awslambdaric", "orders.handler"]).current_dir(folder);
        python
    });
}

/// Building the native part of AWS's runtime client requires CMake and a C++ compiler, so the test replaces that part
/// with `native_client.cjs`.
#[test]
fn node_writes_its_sample() {
    assert_writes_its_sample("node", |folder| {
        let mut node = Command::new("node");
        node.arg("--require").arg(root().join("tests/tests/envelope_targets/native_client.cjs"));
        node.arg(root().join("clients/node/node_modules/aws-lambda-ric/index.mjs")).arg("orders.handler");
        node.env("AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1", "true").current_dir(folder);
        node
    });
}

#[test]
fn rust_writes_its_sample() {
    assert_writes_its_sample("rust", |_| Command::new(env!("CARGO_BIN_EXE_documented_target")));
}

/// Runs the example from docs/envelope.md in a real Lambda runtime, and asserts that its error matches the sample in
/// `events/`.
fn assert_writes_its_sample(language: &str, runtime: impl Fn(&Path) -> Command) {
    let folder = page::function(&format!("runtime-{language}"));
    let fail = |request_id: &str, event: &str| {
        let mut command = runtime(&folder);
        // Lambda sets these variables, and runtimes require them.
        command.env("LAMBDA_TASK_ROOT", &folder).env("_HANDLER", "orders.handler");
        for name in ["FUNCTION_NAME", "FUNCTION_VERSION", "LOG_GROUP_NAME", "LOG_STREAM_NAME"] {
            command.env(format!("AWS_LAMBDA_{name}"), "orders");
        }
        command.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128").env("AWS_REGION", "eu-west-1");
        failure_in(command, request_id, event, &folder.join("runtime.log"))
    };
    let record = record(language);
    let request_id = record["requestContext"]["requestId"].as_str().expect("an id");
    let written = fail(request_id, &record["requestPayload"].to_string());
    assert_eq!(without_lines(written.clone()), without_lines(record["responsePayload"].clone()), "{written}");

    let cancelled = fail(request_id, CANCELLED);
    let [error_type, message] = ["errorType", "errorMessage"].map(|key| &cancelled[key]);
    assert_eq!([error_type, message], [&json!("NonRetryable"), &json!("order 17 was cancelled")]);
}

fn record(language: &str) -> Value {
    let path = root().join(format!("events/errors/{language}.json"));
    let sample = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let sample: Value = serde_json::from_str(&sample).expect("JSON");
    serde_json::from_str(sample["Records"][0]["body"].as_str().expect("a body"))
        .expect("an invocation record")
}

/// Empties a failure's stack trace, because its lines differ between versions of the runtime.
fn without_lines(mut failure: Value) -> Value {
    for key in ["stackTrace", "trace"] {
        if let Some(trace) = failure.get_mut(key) {
            assert!(trace.as_array().is_some_and(|lines| lines.iter().all(Value::is_string)), "{trace}");
            *trace = json!([]);
        }
    }
    failure
}
