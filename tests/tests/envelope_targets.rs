//! The lines of docs/envelope.md that targets copy, in three languages, run as they stand there against
//! the golden envelopes.
//!
//! A golden file holds an `event`, the `request_id` of the invocation that receives it, and what to
//! `expect`: the `payload`, the `attempt` and the `idempotency_key`, or the words it `raises`. Python
//! and Node compare payloads as JSON, Rust byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lambda_runtime::{Context, Error, LambdaEvent};
use serde_json::value::RawValue;

/// The page with one fenced block for each language.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/envelope.md");

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/envelopes");

#[test]
fn the_python_lines_open_every_golden_envelope() {
    let check = r#"
import json, sys
for path in sys.argv[1:]:
    golden = json.load(open(path, encoding="utf-8"))
    expect = golden["expect"]
    try:
        found = open_event(golden["event"], golden["request_id"])
    except Exception as error:
        assert "raises" in expect, f"{path}: {error!r}"
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
    assert.throws(() => openEvent(event, request_id), undefined, path);
  } else {
    const wanted = { payload: expect.payload, attempt: expect.attempt, key: expect.idempotency_key };
    assert.deepStrictEqual(openEvent(event, request_id), wanted, path);
  }
  console.log(path);
}
"#;
    assert_checks_every_golden_file("node", "-e", &(block("javascript") + check));
}

/// The page's Rust lines, and what an application would bring with it.
async fn handler(event: LambdaEvent<Box<RawValue>>) -> Result<Receipt, Error> {
    let opened = comeback_envelope::open(&event.payload)?;
    let key = opened.idempotency_key(&event.context.request_id);
    let order: Order = serde_json::from_str(opened.payload.get())?;
    ship(order, opened.attempt(), key).await
}

type Order = Box<RawValue>;
type Receipt = (String, String, String);

async fn ship(order: Order, attempt: u64, key: &str) -> Result<Receipt, Error> {
    Ok((order.get().to_owned(), attempt.to_string(), serde_json::to_string(key)?))
}

#[test]
fn the_rust_lines_are_the_ones_compiled_here() {
    assert!(include_str!("envelope_targets.rs").contains(&format!("\n{}\n", block("rust"))));
}

#[tokio::test]
async fn the_rust_lines_open_every_golden_envelope_byte_for_byte() {
    for path in golden_files() {
        let mut golden = object(&fs::read_to_string(&path).expect("a golden file"));
        let mut expect = object(golden["expect"].get());
        let mut context = Context::default();
        context.request_id = text(&golden["request_id"]);
        let event = LambdaEvent::new(golden.remove("event").expect("an event"), context);

        let found = handler(event).await.map_err(|malformed| malformed.to_string());

        let wanted = match expect.remove("raises") {
            Some(words) => Err(text(&words)),
            None => {
                Ok(["payload", "attempt", "idempotency_key"].map(|key| expect[key].get().to_owned()).into())
            }
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
