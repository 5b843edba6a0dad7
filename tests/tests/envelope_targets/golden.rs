//! Tests that the readers in all languages agree on the golden envelopes. A golden file has an `event`, the
//! `request_id` of the invocation that receives it, and the expected result: `expect` has either the `payload`,
//! `attempt` and `idempotency_key` or, in `raises`, words from the reader's error. Python and Node.js compare payloads
//! as JSON, and Rust compares them byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use comeback_envelope::open;
use serde_json::value::RawValue;

use crate::page;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/envelopes");

#[test]
fn python_file_opens_every_golden_envelope() {
    let check = r#"
import json, sys
from comeback_envelope import open_event

def assert_clear(error, raised):
    """It is the file's own, and names what Comeback's own reader blames."""
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
    assert_checks_every_golden_file("python3", "-c", check);
}

#[test]
fn node_file_opens_every_golden_envelope() {
    let check = r#"
const assert = require("node:assert");
const { openEvent } = require("./comeback-envelope.cjs");
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
    assert_checks_every_golden_file("node", "-e", check);
}

/// Opens each golden envelope with the crate `comeback-envelope`.
#[test]
fn rust_reader_opens_every_golden_envelope() {
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

/// Results of the three readers for bytes that JSON parsers read differently: `refused`, `not JSON`, or the payload,
/// attempt and key. If all three agree, the result is under `all`; otherwise, `listed` is the sentence of
/// `docs/envelope.md` that describes the difference.
const READERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/envelopes/readers.json");

#[test]
fn rust_reader_agrees_with_its_cases() {
    let page = fs::read_to_string(comeback_tests::root().join("docs/envelope.md")).expect("the page");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let cases: Vec<Box<RawValue>> =
        serde_json::from_str(&fs::read_to_string(READERS).expect("the cases")).expect("JSON");
    assert!(cases.len() > 30);
    for case in &cases {
        let case = object(case.get());
        let event = text(&case["event"]);
        let found = match serde_json::from_str::<&RawValue>(&event) {
            Err(_) => "\"not JSON\"".to_owned(),
            Ok(event) => open(event).map_or("\"refused\"".to_owned(), |opened| {
                let key = serde_json::to_string(opened.idempotency_key("r")).expect("text");
                format!("[{}, {}, {key}]", opened.payload, opened.attempt())
            }),
        };
        let without_space =
            |json: &str| json.replace(char::is_whitespace, "").replace("\\ud83d\\ude00", "😀");
        let wanted = case.get("all").or(case.get("rust")).expect("what Rust says");
        assert_eq!(without_space(&found), without_space(wanted.get()), "{event}");
        assert_eq!(case.contains_key("all"), !case.contains_key("listed"), "{event}");
        if let Some(listed) = case.get("listed") {
            assert!(page.contains(&text(listed)), "docs/envelope.md does not list {listed}");
        }
    }
}

#[test]
fn python_file_agrees_with_its_cases() {
    let check = r#"
import json, sys
from comeback_envelope import open_event

for case in json.load(open(sys.argv[1], encoding="utf-8")):
    try:
        found = json.dumps(open_event(json.loads(case["event"]), "r")).replace("[NaN", '["NaN"')
    except json.JSONDecodeError:
        found = '"not JSON"'
    except ValueError:
        found = '"refused"'
    wanted = case["all"] if "all" in case else case["python"]
    assert json.loads(found) == wanted, f"{case['event']}: {found}"
"#;
    assert_passes("python3", "-c", check, &[READERS.into()]);
}

#[test]
fn node_file_agrees_with_its_cases() {
    let check = r#"
const assert = require("node:assert");
const { openEvent } = require("./comeback-envelope.cjs");
const read = (text) => {
  try {
    const { payload, attempt, key } = openEvent(JSON.parse(text), "r");
    return [payload, attempt, key];
  } catch (error) {
    return error instanceof SyntaxError ? "not JSON" : "refused";
  }
};
for (const { event, all, node } of JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))) {
  assert.deepStrictEqual(read(event), all ?? node, event);
}
"#;
    assert_passes("node", "-e", check, &[READERS.into()]);
}

/// Runs `source` in a folder with the files that docs/envelope.md copies, and passes it the golden files as arguments.
/// The program must print the name of each file that passes.
fn assert_checks_every_golden_file(program: &str, flag: &str, source: &str) {
    let files = golden_files();
    let checked = assert_passes(program, flag, source, &files);
    assert_eq!(checked.lines().map(Path::new).collect::<Vec<_>>(), files);
}

/// Runs `source` in a folder with the files that docs/envelope.md copies, asserts success and returns the output.
fn assert_passes(program: &str, flag: &str, source: &str, arguments: &[PathBuf]) -> String {
    let function = page::function(&format!("golden-{program}-{}", arguments.len()));
    let run = Command::new(program).arg(flag).arg(source).args(arguments).current_dir(function).output();
    let run = run.unwrap_or_else(|error| panic!("this test needs {program} on the PATH: {error}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8")
}

fn golden_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(GOLDEN).expect("the golden envelopes");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = paths.filter(|path| path != Path::new(READERS)).collect();
    files.sort();
    assert!(!files.is_empty(), "no golden envelopes in {GOLDEN}");
    files
}

fn object(json: &str) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(json).expect("an object")
}

fn text(json: &RawValue) -> String {
    serde_json::from_str(json.get()).expect("a string")
}
