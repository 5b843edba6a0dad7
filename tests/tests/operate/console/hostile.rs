//! Tests that the browser never interprets markup in text from functions, operators, dead-letters or URLs.

use comeback_tests::{MiniStack, Operator, eventually};
use serde_json::{Value, json};

use crate::console::browser::{Browser, Running};
use crate::dead::put;
use crate::world::World;

const STACK: &str = "--stack console-hostile";
/// Three kinds of markup that would each set the variable `obeyed`, and a character that reverses the text after it.
const HOSTILE: &str =
    "'\"><img src=x onerror=\"obeyed=1\"><script>obeyed=2</script><svg onload=\"obeyed=3\">\u{202e}";
/// The first part of [`HOSTILE`], percent-encoded for use in a URL.
const ENCODED: &str =
    "%27%22%3E%3Cimg%20src%3Dx%20onerror%3D%22obeyed%3D1%22%3E%3Cscript%3Eobeyed%3D2%3C%2Fscript%3E";

pub(crate) async fn console_never_runs_what_it_shows(world: &World) {
    let stack = world.deploy("console-hostile", "BaseBackoff=600 MaxBackoff=600 Jitter=none").await;
    let ministack = world.ministack().await;
    let function = stack.output("ExampleTargetName");
    let operator = Operator::of(ministack);
    let event = json!({"fail": true, "error_type": HOSTILE, "error_message": HOSTILE, "note": HOSTILE});
    let key = ministack.invoke(function, &event.to_string()).await;
    let pause = operator.shell().clone().with("WHY", HOSTILE);
    let pause = pause.run(&format!("\"$COMEBACK\" pause {function} {STACK} --reason \"$WHY\" --yes"));
    pause.unwrap_or_else(|error| panic!("{error}"));
    let waits = async || {
        let found = operator.comeback(&format!("waiting {STACK} --json")).json(0);
        (found["found"] == 1).then_some(())
    };
    eventually("the event to wait", waits).await;

    let running = Running::start(&operator, "hostile", STACK).await;
    let mut browser = Browser::signed_in(&running, "hostile").await;
    for page in [
        "/".to_owned(),
        "/waiting".into(),
        format!("/event?id={key}"),
        format!("/event?id={key}&logs=yes"),
        format!("/function?name={function}"),
        format!("/pause?plan=yes&function={function}&for=1h"),
    ] {
        browser.visit(&page);
        shows_it(&mut browser, &page).await;
    }
    put(ministack, &stack, &dead_letters(&MiniStack::function_arn(function))).await;
    shows_dead_letters(&mut browser, function).await;
    for page in [
        format!("/function?name={function}"),
        format!("/function?name={ENCODED}"),
        format!("/event?id={ENCODED}"),
        format!("/waiting?function={ENCODED}&error={ENCODED}&within={ENCODED}"),
        format!("/pause?plan=yes&function={ENCODED}&reason={ENCODED}&for={ENCODED}"),
        format!("/lab?tab={ENCODED}&outage={ENCODED}&jitter={ENCODED}&beside={ENCODED}"),
        format!("/{ENCODED}?{ENCODED}"),
        format!("/enter?code={ENCODED}"),
    ] {
        browser.chromium.visit(&format!("{}{page}", running.origin()));
        is_harmless(&mut browser, &page);
    }
}

/// Three dead-letters: one full of hostile text, one that cannot be parsed, and one whose function's name is markup.
fn dead_letters(function_arn: &str) -> [(String, Option<&'static str>); 3] {
    let dead_letter = |function_arn: &str, key: String, note: String| {
        json!({
            "reason": "max_age", "detail": HOSTILE, "function_arn": function_arn, "retries_made": 7,
            "initial_timestamp": 1_789_400_814, "dead_lettered_at": 1_789_404_414, "origin_request_id": key,
            "error": {"type": HOSTILE, "message": HOSTILE}, "payload": {"note": HOSTILE, "long": note},
        })
        .to_string()
    };
    let long = format!("{HOSTILE}{}", "<b>\u{202e}\u{1b}[2J".repeat(40_000));
    let named_so = MiniStack::function_arn("<script>obeyed=4</script>");
    [
        (dead_letter(function_arn, format!("1{HOSTILE}"), long), None),
        (HOSTILE.into(), Some("<script>obeyed=5</script>")),
        (dead_letter(&named_so, format!("2{HOSTILE}"), String::new()), None),
    ]
}

async fn shows_dead_letters(browser: &mut Browser, function: &str) {
    browser.visit("/dead");
    browser.follow("Scan").await;
    browser.sees("the end of the scan", |text| text.contains("Done.")).await;
    let links = |browser: &mut Browser| {
        let links = browser.ask(
            "return [...document.querySelectorAll('main tbody td:first-child a:not(.button)')].map(it => it.getAttribute('href'))",
        );
        let links = links.as_array().expect("a list").iter();
        links.map(|it| it.as_str().expect("an address").to_owned()).collect::<Vec<_>>()
    };
    browser.visit("/dead");
    shows_it(browser, "/dead").await;
    let groups = links(browser);
    assert_eq!(groups.len(), 3, "{groups:?}");
    browser.visit("/dead/each");
    shows_it(browser, "/dead/each").await;
    let dead_letters = links(browser);
    assert_eq!(dead_letters.len(), 3, "{dead_letters:?}");
    for page in groups.iter().chain(&dead_letters) {
        browser.visit(page);
        is_harmless(browser, page);
    }
    browser.visit(&format!("/function?name={function}"));
    browser.sees("its dead-letters", |text| text.contains("max_age")).await;
    is_harmless(browser, "the function's page");
    let mut longest = 0;
    for dead_letter in &dead_letters {
        for how in ["Show details", "Show payload", "Show payload as received"] {
            browser.visit(dead_letter);
            browser.follow(how).await;
            is_harmless(browser, how);
            let text = browser.text();
            let has_payload = text.contains("\"note\"") || text.contains("Body\n");
            assert_eq!(has_payload, how.contains("payload"), "{how}: {}", text.len());
            assert!(!text.contains(['\u{202e}', '\u{1b}']), "{how} turns around what follows");
            longest = longest.max(text.len());
        }
    }
    assert!(longest > 400_000, "half a megabyte was asked for: {longest}");
    for action in ["Redrive …", "Discard …"] {
        browser.visit(&dead_letters[0]);
        browser.follow(action).await;
        is_harmless(browser, action);
    }
    browser.visit(&dead_letters[0]);
    browser.follow("Export").await;
    browser.sees("the end of the export", |text| text.contains("Done.")).await;
    is_harmless(browser, "an export");
}

/// Asserts that the page shows the hostile text, and that the browser interpreted none of its markup.
async fn shows_it(browser: &mut Browser, page: &str) {
    let text = browser.sees(page, |text| text.contains("obeyed=")).await;
    let turns = |character| matches!(character, '\u{202e}' | '\u{1b}');
    assert!(!text.contains(turns), "{page} turns around what follows: {text}");
    is_harmless(browser, page);
}

fn is_harmless(browser: &mut Browser, page: &str) {
    let obeyed = browser.ask(
        "const made = document.querySelectorAll('main img, main script, main b, main svg[onload], [onerror]').length;
         return [typeof obeyed, made]",
    );
    assert_eq!(obeyed, json!(["undefined", 0]), "{page}");
    // If the content security policy had to block a script or style, the browser must have parsed the text as markup.
    let stopped: Vec<&Value> =
        browser.chromium.console().into_iter().filter(|it| it.to_string().contains("Policy")).collect();
    assert_eq!(stopped, [&Value::Null; 0], "{page}");
}
