//! Tests how the console's pages look: axe-core checks them at every size, and the pictures in README.md and
//! docs/console.md are up to date.
//!
//! `UPDATE_SCREENSHOT=1 cargo test -p comeback-tests --test operate -- console_pages` updates the pictures.

use base64::Engine as _;
use comeback_engine::Timestamp;
use comeback_tests::{Look, MiniStack, Operator, Stack, eventually, plain_target, root, scratch};
use serde_json::json;

use crate::console::browser::{Browser, Running, WIDE};
use crate::dead::{of_handler, put};
use crate::failures::{record, send};
use crate::world::World;

const STACK: &str = "shop";
/// Width of a window on a small phone, in CSS pixels.
const NARROW: u32 = 360;
/// Functions that fail, each with an error and the number of waiting events.
const FAILING: [(&str, &str, usize); 4] = [
    ("checkout", "PaymentTimeout", 24),
    ("invoicing", "PdfServiceDown", 11),
    ("invoicing", "Timeout", 4),
    ("thumbnails", "SlowDown", 9),
];

/// Checks every page, for a stack with an incident and for a stack that does not exist.
pub(crate) async fn console_pages_are_accessible_and_pictured(world: &World) {
    let arns = ["checkout", "invoicing", "thumbnails"].map(MiniStack::function_arn).join(",");
    // They wait for at least half an hour.
    let parameters = format!("TargetFunctions={arns} BaseBackoff=3600 MaxBackoff=3600 Jitter=equal");
    let stack = world.deploy(STACK, &parameters).await;
    let ministack = world.ministack().await;
    let operator = Operator::of(ministack);
    happen(ministack, &stack, &operator).await;

    let running = Running::start(&operator, "looks", &format!("--stack {STACK}")).await;
    let mut browser = Browser::signed_in(&running, "looks").await;
    browser.visit("/waiting");
    browser.sees("every event", |text| text.contains("48 waiting events in the handler's log")).await;
    let event = browser.ask("return document.querySelector('main a[href^=\"/event\"]').getAttribute('href')");
    let event = event.as_str().expect("an address").to_owned();
    let mut pages = pages_of(&mut browser);
    pages.extend([event, "/function?name=thumbnails".into(), "/pause".into()]);
    pages.push("/resume?plan=yes&function=thumbnails".into());
    for page in &pages {
        looks_well(&mut browser, page);
    }
    browser.chromium.look(WIDE);
    browser.visit("/");
    assert_is_pictured(&mut browser, "console-overview");
    browser.visit("/waiting");
    assert_is_pictured(&mut browser, "console-waiting");

    let running = Running::start(&operator, "lost", "--stack no-such-stack").await;
    let mut browser = Browser::signed_in(&running, "lost").await;
    for page in pages_of(&mut browser) {
        looks_well(&mut browser, &page);
        let text = browser.text();
        let is_said = text.contains("no-such-stack") && text.contains("--stack");
        assert!(is_said || page == "/lab", "{page} says what is missing, and what helps: {text}");
    }
}

/// Paths of the pages in the navigation.
fn pages_of(browser: &mut Browser) -> Vec<String> {
    let links =
        browser.ask("return [...document.querySelectorAll('nav a')].map(it => it.getAttribute('href'))");
    links.as_array().expect("a list").iter().map(|it| it.as_str().expect("a text").to_owned()).collect()
}

fn looks_well(browser: &mut Browser, page: &str) {
    for look in [WIDE, Look { dark: true, ..WIDE }, Look { width: NARROW, ..WIDE }] {
        browser.chromium.look(look);
        browser.visit(page);
        browser.assert_accessible(&format!("{page}, {look:?}"));
        let width = browser.ask(
            "document.querySelectorAll('details').forEach(it => it.open = true);
             return document.documentElement.scrollWidth",
        );
        assert_eq!(width, look.width, "{page} is wider than the window");
    }
}

/// Makes an incident: functions fail, one of them is paused, and some events are dead-lettered. The test writes the
/// invocation records itself, so no function runs.
async fn happen(ministack: &MiniStack, stack: &Stack, operator: &Operator) {
    for function in ["checkout", "invoicing", "thumbnails"] {
        plain_target(ministack, function).await;
    }
    let mut records = Vec::new();
    for (function, error, count) in FAILING {
        records.extend((0..count).map(|n| record(function, error, &format!("{function}-{error}-{n}"))));
    }
    send(ministack, stack, &records).await;
    let invoicing = MiniStack::function_arn("invoicing");
    let dead_letters: Vec<_> =
        (0..6).map(|n| of_handler(&invoicing, &format!("given-up-{n}"), "PdfServiceDown")).collect();
    put(ministack, stack, &dead_letters).await;
    measure(ministack, stack);
    let pause = "--reason 'bucket policy rollout' --for 2h --yes";
    drop(operator.comeback(&format!("pause thumbnails --stack {STACK} {pause}")).ended(0));
    let all_wait = async || {
        let found = operator.comeback(&format!("waiting --stack {STACK} --json")).json(0);
        (found["found"] == 48).then_some(())
    };
    eventually("the events to wait", all_wait).await;
}

/// Writes the metrics that CloudWatch would have after a quiet day with an outage two hours ago, because MiniStack
/// counts nothing.
fn measure(ministack: &MiniStack, stack: &Stack) {
    let name = |output: &str| stack.output(output).rsplit('/').next().expect("a name").to_owned();
    let now = ministack.shell().run("date +%s").unwrap_or_else(|error| panic!("{error}"));
    let now: u64 = now.trim().parse().expect("seconds since 1970");
    let (mut data, mut of_handler) = (Vec::new(), Vec::new());
    for point in 1..=288 {
        // The outage, and the recovery after it.
        let [sent, retried, dead] = match point {
            12..=26 => [40 + point % 7, 12 + point % 5, 0],
            4..=11 => [3, 61 - 4 * point % 11, u64::from(point == 6) * 6],
            _ => [point % 4, point % 3, 0],
        };
        let at = Timestamp::from_secs(now - point * 300).to_string();
        for (queue, metric, value) in [
            ("RetryQueueUrl", "NumberOfMessagesSent", sent),
            ("RetryQueueUrl", "NumberOfMessagesDeleted", retried),
            ("DeadLetterQueueUrl", "NumberOfMessagesSent", dead),
        ] {
            let dimensions = [json!({"Name": "QueueName", "Value": name(queue)})];
            data.push(
                json!({"MetricName": metric, "Dimensions": dimensions, "Timestamp": at, "Value": value}),
            );
        }
        let dimensions = [json!({"Name": "FunctionName", "Value": stack.output("RetryHandlerName")})];
        for (metric, value) in [("Invocations", sent + retried), ("Errors", 0), ("Throttles", 0)] {
            of_handler.push(
                json!({"MetricName": metric, "Dimensions": dimensions, "Timestamp": at, "Value": value}),
            );
        }
    }
    for (namespace, data) in [("AWS/SQS", data), ("AWS/Lambda", of_handler)] {
        let file = scratch("console-measured").join("data.json");
        std::fs::write(&file, json!(data).to_string()).expect("a file can be written");
        let put =
            format!("aws cloudwatch put-metric-data --namespace {namespace} --metric-data \"file://$DATA\"");
        ministack.shell().with("DATA", &file).run(&put).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Asserts that the picture `docs/NAME.png` shows this page. Times, counts and pixels differ from run to run, so this
/// compares only the words that were on the page when the picture was taken.
fn assert_is_pictured(browser: &mut Browser, name: &str) {
    const HEIGHT: u32 = 1_130;
    let clip = json!({"x": 0, "y": 0, "width": WIDE.width, "height": HEIGHT, "scale": 0.75});
    let shot = browser.chromium.call(
        "Page.captureScreenshot",
        json!({"format": "png", "clip": clip, "captureBeyondViewport": true}),
    );
    let base64 = base64::engine::general_purpose::STANDARD;
    let png = base64.decode(shot["data"].as_str().expect("text")).expect("base64");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{} bytes", png.len());
    let words = browser.ask(&format!("const height = {HEIGHT}; {WORDS}"));
    let words = words.as_str().expect("a text");
    let (picture, golden) =
        (root().join(format!("docs/{name}.png")), root().join(format!("tests/golden/pictures/{name}.txt")));
    if std::env::var_os("UPDATE_SCREENSHOT").is_some() {
        std::fs::write(&picture, &png).expect("the picture can be written");
        std::fs::write(&golden, words).expect("its text can be written");
    }
    let kept = std::fs::read(&picture).expect("the picture is there");
    assert!(kept.starts_with(b"\x89PNG") && kept.len() < 400_000, "{} bytes", kept.len());
    let kept = std::fs::read_to_string(&golden).expect("the picture's text is there");
    assert_eq!(kept, words, "docs/{name}.png is out of date: run this test with UPDATE_SCREENSHOT=1");
}

/// JavaScript that returns the words of the page's headings, labels and buttons, without figures.
const WORDS: &str = r#"
    const elements = document.querySelectorAll("nav a, h1, h2, h3, label, dt, th[scope=col], main button, .keys li");
    const shown = [...elements].filter(it => it.checkVisibility() && it.getBoundingClientRect().bottom <= height);
    return shown.map(it => it.textContent.trim().replace(/\s+/g, " ").replace(/\d+/g, "0")).join("\n") + "\n";
"#;
