//! The lines of docs/envelope.md that targets copy, in three languages, run as they stand there against
//! the golden envelopes.
//!
//! | file | holds |
//! |---|---|
//! | `target` | the Rust lines |
//!
//! A golden file holds an `event`, the `request_id` of the invocation that receives it, and what to
//! `expect`: the `payload`, the `attempt` and the `idempotency_key`, or the words it `raises`. Python
//! and Node compare payloads as JSON, Rust byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lambda_runtime::{Context, Diagnostic};

// With the page's imports.
include!("target.rs");

/// The page with one fenced block for each language.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/envelope.md");

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/envelopes");

#[test]
fn the_python_lines_open_every_golden_envelope() {
    let check = r#"
import json, sys

def assert_clear(error, raised):
    """It is the snippet's own, and names what Comeback's own reader blames."""
    assert type(error) is ValueError and str(error).startswith("malformed envelope: "), repr(error)
    blamed = [name for name in raised.split("`")[1::2]] or [raised]
    assert any(name in str(error) for name in blamed), f"{error} for {raised}"

for path in sys.argv[1:]:
    golden = json.load(open(path, encoding="utf-8"))
    expect = golden["expect"]
    try:
        found = open_event(golden["event"], golden["request_id"])
    except Exception as error:
        assert "raises" in expect, f"{path}: {error!r}"
        assert_clear(error, expect["raises"])
    else:
        assert "raises" not in expect, f"{path}: {found}"
        wanted = expect["payload"], expect["attempt"], expect["idempotency_key"]
        assert json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True), f"{path}: {found}"
    print(path)
"#;
    assert_checks_every_golden_file("python3", "-c", &(block("python") + check));
}

#[test]
fn the_node_lines_open_every_golden_envelope() {
    let check = r#"
const assert = require("node:assert");
for (const path of process.argv.slice(1)) {
  const { event, request_id, expect } = JSON.parse(require("node:fs").readFileSync(path, "utf8"));
  if ("raises" in expect) {
    const blamed = expect.raises.split("`").filter((_, place) => place % 2 === 1);
    const isClear = (error) =>
      error.message.startsWith("malformed envelope: ") && blamed.some((name) => error.message.includes(name));
    assert.throws(() => openEvent(event, request_id), isClear, path);
  } else {
    const wanted = { payload: expect.payload, attempt: expect.attempt, key: expect.idempotency_key };
    assert.deepStrictEqual(openEvent(event, request_id), wanted, path);
  }
  console.log(path);
}
"#;
    assert_checks_every_golden_file("node", "-e", &(block("javascript") + check));
}

#[test]
fn the_rust_lines_are_the_ones_compiled_here() {
    assert_eq!(block("rust"), include_str!("target.rs"));
}

#[test]
fn the_rust_lines_need_what_the_page_says() {
    let named = |line: &str| line.split_once(" = ").map(|(name, _)| name.replace('-', "_"));
    let needed: Vec<String> = block("toml").lines().filter_map(named).collect();
    assert_eq!(needed, ["comeback_envelope", "lambda_runtime", "serde", "serde_json", "tokio"]);
    let used = |name: &&String| include_str!("target.rs").contains(&format!("{name}::"));
    assert!(needed.iter().all(|name| used(&name)), "{needed:?}");
}

#[tokio::test]
async fn the_rust_lines_take_a_retry_and_fail_for_a_malformed_envelope() {
    let invoke = async |event: &str| {
        let event = RawValue::from_string(event.to_owned()).expect("JSON");
        handler(LambdaEvent::new(event, Context::default())).await.map_err(|error| error.to_string())
    };
    let retry =
        r#"{"_retry_metadata": {"attempt": 2, "initial_timestamp": 1}, "_original_payload": {"order": 17}}"#;
    assert_eq!(invoke(retry).await, Ok(()));
    let malformed = retry.replace("_original_payload", "payload");
    assert_eq!(invoke(&malformed).await, Err("`_original_payload` is missing".to_owned()));
}

#[test]
fn the_page_says_which_error_type_a_boxed_error_has() {
    let boxed = Diagnostic::from(Error::from("anything")).error_type;
    let page = fs::read_to_string(PAGE).expect("the page");
    assert!(page.contains(&format!("`{boxed}`")), "{boxed}");
}

/// As the page's Rust lines open it.
#[test]
fn the_rust_reader_opens_every_golden_envelope_byte_for_byte() {
    for path in golden_files() {
        let golden = object(&fs::read_to_string(&path).expect("a golden file"));
        let mut expect = object(golden["expect"].get());
        let request_id = text(&golden["request_id"]);

        let found = open(&golden["event"]).map_err(|malformed| malformed.to_string()).map(|opened| {
            let key = serde_json::to_string(opened.idempotency_key(&request_id)).expect("text");
            [opened.payload.get().to_owned(), opened.attempt().to_string(), key]
        });

        let wanted = match expect.remove("raises") {
            Some(words) => Err(text(&words)),
            None => Ok(["payload", "attempt", "idempotency_key"].map(|key| expect[key].get().to_owned())),
        };
        assert_eq!(found, wanted, "{}", path.display());
    }
}

/// Runs `source` with the golden files as arguments; it prints the name of each that holds.
fn assert_checks_every_golden_file(program: &str, flag: &str, source: &str) {
    let files = golden_files();
    let run = Command::new(program).arg(flag).arg(source).args(&files).output();
    let run = run.unwrap_or_else(|error| panic!("this test needs {program} on the PATH: {error}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let checked = String::from_utf8(run.stdout).expect("paths in UTF-8");
    assert_eq!(checked.lines().map(Path::new).collect::<Vec<_>>(), files);
}

fn golden_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(GOLDEN).expect("the golden envelopes");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no golden envelopes in {GOLDEN}");
    files
}

/// The page's only block in `language`, without its fences.
fn block(language: &str) -> String {
    let page = fs::read_to_string(PAGE).expect("the page");
    let fence = format!("\n```{language}\n");
    let mut parts = page.split(&fence).skip(1);
    let (Some(part), None) = (parts.next(), parts.next()) else {
        panic!("{PAGE} must have exactly one ```{language} block");
    };
    let (block, _) = part.split_once("```").expect("a closing fence");
    block.to_owned()
}

fn object(json: &str) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(json).expect("an object")
}

fn text(json: &RawValue) -> String {
    serde_json::from_str(json.get()).expect("a string")
}
