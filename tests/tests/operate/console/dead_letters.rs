//! Tests the console's dead-letter pages: reads and redrives one dead-letter, discards two, and imports them again.

use std::path::{Path, PathBuf};

use comeback_tests::{MiniStack, Operator, eventually, log_lines, scratch};
use serde_json::{Value, json};

use crate::console::browser::{Browser, Running};
use crate::dead::{dead_letters_of, of_handler, put};
use crate::world::World;

const STACK: &str = "console-dead";

pub(crate) async fn console_redrives_discards_and_imports_dead_letters(world: &World) {
    let stack = world.deploy(STACK, "BaseBackoff=1 MaxBackoff=1").await;
    let ministack = world.ministack().await;
    let arn = MiniStack::function_arn(stack.output("ExampleTargetName"));
    let dead_letters =
        [("mended", "Mended"), ("spoilt-1", "Spoilt"), ("spoilt-2", "Spoilt"), ("kept", "Kept")];
    put(ministack, &stack, &dead_letters.map(|(key, error)| of_handler(&arn, key, error))).await;
    let operator = Operator::of(ministack);
    let running = Running::start(&operator, "dead", &format!("--stack {STACK}")).await;
    let mut browser = Browser::signed_in(&running, "dead").await;

    // The console reads nothing before the user starts a scan, and does not keep payloads.
    browser.visit("/dead");
    browser.sees("that nothing was read", |text| text.contains("Nothing was read yet.")).await;
    assert_eq!(dead_letters_of(ministack, &stack).await, (4, 0));
    browser.follow("Scan").await;
    done(&mut browser).await;
    browser.visit("/dead");
    let shown = browser.sees("the groups", |text| text.contains("Mended") && text.contains("Spoilt")).await;
    assert!(!shown.contains("customer"), "{shown}");

    group(&mut browser, "Mended").await;
    browser.follow("Error, payload").await;
    browser.follow("Show payload").await;
    browser.sees("the payload", |text| text.contains("\"id\": \"mended\"")).await;
    browser.follow("Redrive …").await;
    let (first, plan) = (browser.tab(), browser.ask("return location.pathname + location.search"));
    let second = browser.open_tab();
    browser.visit(plan.as_str().expect("an address"));
    browser.switch_to(&first);
    browser.follow("Redrive").await;
    done(&mut browser).await;
    // The other tab still shows a plan for a dead-letter that is gone.
    browser.switch_to(&second);
    browser.follow("Redrive").await;
    browser.sees("that nothing is left to redrive", |text| text.contains("nothing to redrive")).await;
    browser.switch_to(&first);
    eventually("the redriven event to succeed", async || {
        let lines = log_lines(ministack, stack.target_logs()).await;
        let is_it = |line: &Value| line["message"] == "succeeded" && line["idempotency_key"] == "mended";
        lines.iter().any(is_it).then_some(())
    })
    .await;
    assert_eq!(dead_letters_of(ministack, &stack).await.0, 3);

    // The operator must type 2 to discard two dead-letters.
    browser.visit("/dead");
    group(&mut browser, "Spoilt").await;
    browser.follow("Discard …").await;
    browser.fill("To discard 2 dead-letters, type 2", "3");
    browser.follow("Discard").await;
    browser.sees("that 3 is wrong", |text| text.contains("Nothing was done")).await;
    assert_eq!(dead_letters_of(ministack, &stack).await.0, 3);
    browser.fill("To discard 2 dead-letters, type 2", "2");
    browser.follow("Discard").await;
    done(&mut browser).await;
    let discarded = written(&running.folder, "discarded-");
    assert_eq!(lines(&discarded), 2);

    export_the_rest(&mut browser, &running.folder).await;

    refuse_another_file(&mut browser, &running.folder).await;

    browser.visit("/dead");
    choose_file(&mut browser, &discarded);
    browser.follow("Upload").await;
    browser.sees("the question", |text| text.contains("Add 2 dead-letters to the dead-letter queue?")).await;
    browser.follow("Import").await;
    done(&mut browser).await;
    let function = stack.output("ExampleTargetName");
    let listed = operator.comeback(&format!("dead list --stack {STACK} --target {function} --json")).json(0);
    let mut keys: Vec<_> =
        listed["dead_letters"].as_array().expect("a list").iter().map(|it| &it["key"]).collect();
    keys.sort_by_key(|key| key.to_string());
    assert_eq!(keys, ["kept", "spoilt-1", "spoilt-2"]);
}

/// Asserts that the console refuses and deletes an upload without dead-letters.
async fn refuse_another_file(browser: &mut Browser, folder: &Path) {
    browser.visit("/dead");
    let other = scratch("console-other").join("other.jsonl");
    std::fs::write(&other, "{}\n").expect("a file can be written");
    choose_file(browser, &other);
    browser.follow("Upload").await;
    browser.sees("that it is refused", |text| text.contains("Refused")).await;
    assert!(!has_imports(folder), "the upload stays");
}

/// Exports the remaining dead-letter, and compares the download with the console's file in `folder`.
async fn export_the_rest(browser: &mut Browser, folder: &Path) {
    browser.visit("/dead");
    browser.follow("Scan").await;
    done(browser).await;
    browser.visit("/dead");
    browser.follow("Export").await;
    done(browser).await;
    let exported = written(folder, "exported-");
    let downloads = scratch("console-downloads");
    browser.chromium.download_to(&downloads);
    browser.press("Download").await;
    let name = exported.file_name().and_then(|name| name.to_str()).expect("a file's name");
    let downloaded = downloads.join(name);
    let whole = std::fs::read(&exported).expect("a file");
    let is_there = async || std::fs::read(&downloaded).is_ok_and(|read| read == whole).then_some(());
    eventually("the download", is_there).await;
    assert_eq!(lines(&downloaded), 1);
}

async fn done(browser: &mut Browser) {
    browser.sees("the end", |text| text.contains("Done.")).await;
}

/// Opens the list of dead-letters in the group with this error.
async fn group(browser: &mut Browser, error: &str) {
    browser.ask(&format!(
        "const rows = [...document.querySelectorAll('main tbody tr')];
         const row = rows.find(row => row.innerText.includes({}));
         window.isBefore = true;
         row.querySelector('a').click();",
        json!(error)
    ));
    browser.arrives(error).await;
}

fn has_imports(folder: &Path) -> bool {
    let mut files = std::fs::read_dir(folder).expect("the console's folder");
    files.any(|file| file.expect("a file").file_name().to_string_lossy().starts_with("imported-"))
}

/// The folder's only `.jsonl` file whose name begins with `begin`.
fn written(folder: &Path, begin: &str) -> PathBuf {
    let files =
        std::fs::read_dir(folder).expect("the console's folder").map(|file| file.expect("a file").path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(".jsonl")
    };
    let found: Vec<_> = files.filter(is_it).collect();
    let [file] = found.as_slice() else { panic!("{begin}: {found:?}") };
    file.clone()
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).expect("a file").lines().count()
}

fn choose_file(browser: &mut Browser, file: &Path) {
    let input = json!({"expression": "document.querySelector('input[type=file]')"});
    let input = browser.chromium.call("Runtime.evaluate", input);
    let chosen = json!({"files": [file.display().to_string()], "objectId": input["result"]["objectId"]});
    browser.chromium.call("DOM.setFileInputFiles", chosen);
}
