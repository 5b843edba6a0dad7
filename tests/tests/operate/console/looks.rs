//! Tests the console's pages in the demonstration: axe-core accepts each page, and the pictures in the documentation
//! are up to date.
//!
//! `UPDATE_SCREENSHOT=1 cargo test -p comeback-tests --test operate -- console_pages` updates the pictures.

use base64::Engine as _;
use comeback_tests::{Look, eventually, root};
use serde_json::json;

use crate::console::browser::{Browser, Running, WIDE};
use crate::world::World;

/// Width of a phone's viewport, in CSS pixels.
const NARROW: u32 = 390;

pub(crate) async fn console_pages_are_accessible_and_pictured(_: &World) {
    let running = Running::start_demonstration("looks").await;
    let mut browser = Browser::signed_in(&running, "looks").await;
    browser.follow("Stop the clock").await;
    browser.visit("/pause?plan=yes&function=thumbnails&reason=bucket%20policy%20rollout&for=2h");
    browser.follow("Pause").await;
    browser.sees("the pause", |text| text.contains("Done.")).await;
    browser.visit("/dead");
    browser.follow("Scan").await;
    browser.sees("the scan", |text| text.contains("Done.")).await;

    browser.visit("/waiting");
    let mut pages = vec![link(&mut browser, "/event").await];
    browser.visit("/dead");
    pages.push(link(&mut browser, "/dead/each").await);
    browser.visit("/dead/each");
    pages.push(link(&mut browser, "/dead/each/").await);
    pages.extend(pages_of(&mut browser));
    for page in [
        "/function?name=orders",
        "/pause?plan=yes&function=orders&reason=why",
        "/resume?plan=yes&function=thumbnails",
        "/retry?plan=yes&function=orders",
        "/event?id=none",
        "/none",
    ] {
        pages.push(page.into());
    }
    for page in &pages {
        looks_well(&mut browser, page);
    }
    for (page, name) in [("/", "console-overview"), ("/waiting", "console-waiting")] {
        for (theme, dark) in [("", false), ("-dark", true)] {
            browser.chromium.look(Look { dark, ..WIDE });
            browser.visit(page);
            assert_is_pictured(&mut browser, &format!("{name}{theme}"));
        }
    }
}

/// Waits for a link whose URL begins with `place`, and returns the URL.
async fn link(browser: &mut Browser, place: &str) -> String {
    let link = format!("document.querySelector('main a[href^=\"{place}\"]').getAttribute('href')");
    let address = async || browser.chromium.ask(&link).ok()?.as_str().map(ToOwned::to_owned);
    eventually(place, address).await
}

fn pages_of(browser: &mut Browser) -> Vec<String> {
    let links = browser
        .ask("return [...document.querySelectorAll('header nav a')].map(it => it.getAttribute('href'))");
    links.as_array().expect("a list").iter().map(|it| it.as_str().expect("a string").to_owned()).collect()
}

/// Asserts that the page fits and passes axe-core, in a wide light viewport and in a narrow dark one.
fn looks_well(browser: &mut Browser, page: &str) {
    for look in [WIDE, Look { width: NARROW, dark: true }] {
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

/// Asserts that the headings, labels and buttons on the page in `browser` have the same words as in
/// `docs/NAME.png`.
fn assert_is_pictured(browser: &mut Browser, name: &str) {
    const HEIGHT: u32 = 1_000;
    let clip = json!({"x": 0, "y": 0, "width": WIDE.width, "height": HEIGHT, "scale": 0.75});
    let shot = browser.chromium.call(
        "Page.captureScreenshot",
        json!({"format": "png", "clip": clip, "captureBeyondViewport": true}),
    );
    let base64 = base64::engine::general_purpose::STANDARD;
    let png = base64.decode(shot["data"].as_str().expect("text")).expect("base64");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{} bytes", png.len());
    let words = browser.ask(WORDS);
    let words = words.as_str().expect("a string");
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

/// JavaScript that returns the words of the page's headings, labels and buttons, with every number replaced by 0.
const WORDS: &str = r#"
    const elements = document.querySelectorAll("nav a, h1, h2, h3, label, dt, th[scope=col], main button, .keys li");
    const shown = [...elements].filter(it => it.checkVisibility());
    const words = shown.map(it => it.textContent.trim().replace(/\s+/g, " ").replace(/\d+/g, "0"));
    return [...new Set(words)].join("\n") + "\n";
"#;
