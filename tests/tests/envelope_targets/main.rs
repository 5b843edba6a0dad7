//! Tests that targets in three languages open events and request retries, with the code from docs/envelope.md.

mod golden;
mod page;
mod runtime_api;
mod runtimes;

use std::process::Command;

use comeback_tests::pages;
use lambda_runtime::{Context, Diagnostic};

// The Rust code in docs/envelope.md, with its imports.
include!("target.rs");

#[test]
fn compiled_rust_lines_are_the_pages() {
    assert_eq!(page::block("rust"), include_str!("target.rs"));
}

#[test]
fn rust_lines_use_every_listed_dependency() {
    let named = |line: &str| line.split_once(" = ").map(|(name, _)| name.replace('-', "_"));
    let needed: Vec<String> = page::block("toml").lines().filter_map(named).collect();
    assert_eq!(needed, ["comeback_envelope", "lambda_runtime", "serde", "serde_json", "tokio"]);
    let used = |name: &&String| include_str!("target.rs").contains(&format!("{name}::"));
    assert!(needed.iter().all(|name| used(&name)), "{needed:?}");
}

#[tokio::test]
async fn rust_lines_take_a_retry_and_refuse_a_malformed_envelope() {
    let invoke = async |event: &str| {
        let event = RawValue::from_string(event.to_owned()).expect("JSON");
        handler(LambdaEvent::new(event, Context::default())).await.map_err(|error| error.to_string())
    };
    let retry = r#"{"_retry_metadata": {"attempt": 2, "initial_timestamp": 1},
        "_original_payload": {"order": 17, "status": "new"}}"#;
    assert_eq!(invoke(retry).await, Ok(()));
    let malformed = retry.replace("_original_payload", "payload");
    assert_eq!(invoke(&malformed).await, Err("`_original_payload` is missing".to_owned()));
}

#[test]
fn page_has_the_error_type_of_a_boxed_error() {
    let boxed = Diagnostic::from(Error::from("anything")).error_type;
    assert!(page::text().contains(&format!("`{boxed}`")), "{boxed}");
}

#[test]
fn the_readme_raises_both_directives() {
    let readme = pages::read("README.md");
    let (_, section) = readme.split_once("\n## In your function\n").expect("the section");
    let (_, block) = section.split_once("\n```python\n").expect("its Python lines");
    let (lines, _) = block.split_once("```").expect("a closing fence");
    let raised: Vec<String> = lines.lines().map(raised_by).collect();
    assert_eq!(raised, ["RetryAfter: 900; order 17 is held\n", "NonRetryable: order 17 was cancelled\n"]);
}

fn raised_by(line: &str) -> String {
    let script = format!(
        "from comeback_envelope import NonRetryable, RetryAfter\ntry:\n    {line}\n\
         except Exception as error:\n    print(type(error).__name__, error, sep=': ')"
    );
    let run = Command::new("python3").args(["-c", &script]).current_dir(page::function("readme")).output();
    String::from_utf8(run.expect("python3 runs").stdout).expect("text")
}
