//! Browser tests of the report that `comeback simulate --report` writes, at two widths and in two colour schemes.
//!
//! `UPDATE_SCREENSHOT=1 cargo test -p comeback-tests --test report_page` updates the pictures of the report in the
//! README and in docs/simulate.md.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use comeback_tests::{Chromium, Look, built_command, pages, root, scratch};
use serde_json::{Value, json};

const WIDE: u32 = 1_120;
/// Width of the viewport on a small phone, in CSS pixels.
const NARROW: u32 = 360;
const CHARTS: [&str; 6] = ["retries", "retries-logarithmic", "attempts", "depth", "recovery", "life"];

struct Pages {
    plain: PathBuf,
    compared: PathBuf,
    /// The report on a run that reaches the in-flight limit.
    full: PathBuf,
    moved: PathBuf,
    /// The report that the command in docs/simulate.md writes.
    shown: PathBuf,
}

static PAGES: LazyLock<Pages> = LazyLock::new(|| {
    let (directory, comeback) = (scratch("report-pages"), built_command());
    let page = |name: &str, arguments: &[&str]| {
        let file = directory.join(name);
        let output = Command::new(&comeback)
            .args(["simulate", "--json", "--report"])
            .arg(&file)
            .args(arguments)
            .output()
            .expect("the command runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        file
    };
    Pages {
        plain: page("plain.html", &[]),
        compared: page("compared.html", &["--vs", "jitter=none,max-backoff=1h"]),
        full: page("full.html", &["--events", "400", "--in-flight-limit", "150", "--jitter", "equal"]),
        moved: page("moved.html", &["--hide-up-to", "100"]),
        shown: page("shown.html", &documented_arguments()),
    }
});

fn documentation() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(|| pages::read("docs/simulate.md"));
    &PAGE
}

fn documented_arguments() -> Vec<&'static str> {
    let command = documentation()
        .lines()
        .find_map(|line| line.split_once(" simulate ")?.1.split_once("--report out/report.html"));
    let (before, after) = command.expect("docs/simulate.md has a command with --report");
    before.split_whitespace().chain(after.split_whitespace()).collect()
}

fn looks() -> impl Iterator<Item = Look> {
    [WIDE, NARROW].into_iter().flat_map(|width| [false, true].map(|dark| Look { width, dark }))
}

/// Returns the browser that all tests share.
fn browser() -> MutexGuard<'static, Chromium> {
    static BROWSER: LazyLock<Mutex<Chromium>> =
        LazyLock::new(|| Mutex::new(Chromium::start(&scratch("report-browser"))));
    // A poisoned lock is ignored: after a failed test, the browser can still open another page.
    BROWSER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(chromium: &mut Chromium, body: &str) -> Value {
    chromium.evaluate(&format!("(() => {{ {body} }})()"))
}

#[test]
fn every_chart_is_drawn_at_every_size() {
    let chromium = &mut *browser();
    for file in [&PAGES.plain, &PAGES.compared, &PAGES.full, &PAGES.moved] {
        for look in looks() {
            chromium.open(file, look);
            let drawn = ask(chromium, DRAWN);
            let charts: Vec<&str> =
                drawn.as_array().expect("a list").iter().filter_map(|chart| chart["id"].as_str()).collect();
            assert_eq!(charts, CHARTS, "{look:?}");
            for chart in drawn.as_array().expect("a list") {
                let number = |key: &str| chart[key].as_f64().expect("a number");
                let seen = format!("{} {look:?} {chart}", file.display());
                assert!(number("width") > 250.0 && number("height") > 150.0, "{seen}");
                assert!(number("marks") >= 1.0 && number("covered") > 0.15, "not drawn: {seen}");
                assert_eq!(chart["outside"], json!([]), "drawn outside: {seen}");
                assert_eq!(chart["touching"], json!([]), "overlapping labels: {seen}");
                assert!(number("smallest_text") >= 9.0, "too small to read: {seen}");
            }
        }
    }
}

/// JavaScript that measures each chart: its size, its coloured shapes, anything outside its frame, and its labels.
const DRAWN: &str = r##"
    const hit = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const neutral = ["#FFFFFF", "#222222", "#666666", "#E4E4E4"];
    return [...document.querySelectorAll("figure")].map(figure => {
        const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
        const shapes = [...svg.querySelectorAll("rect, polygon, polyline, line, circle")];
        const paint = shape => [shape.getAttribute("fill"), shape.getAttribute("stroke")].find(c => c && c !== "none");
        const marks = shapes.filter(shape => !neutral.includes(paint(shape)));
        const boxes = marks.map(mark => mark.getBoundingClientRect()).filter(b => b.width > 0 || b.height > 0);
        const texts = [...svg.querySelectorAll("text")].map(text => ({ text: text.textContent.trim(), box: text.getBoundingClientRect() }));
        const out = b => b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1;
        return {
            id: figure.id, width: box.width, height: box.height, marks: boxes.length,
            covered: (Math.max(...boxes.map(b => b.right)) - Math.min(...boxes.map(b => b.left))) / box.width,
            outside: [...texts.filter(t => out(t.box)).map(t => t.text), ...boxes.filter(out)],
            touching: texts.flatMap((one, i) => texts.slice(i + 1).filter(other => hit(one.box, other.box)).map(other => [one.text, other.text])),
            smallest_text: Math.min(...[...svg.querySelectorAll("text")].map(text => text.getAttribute("font-size") * box.width / svg.viewBox.baseVal.width)),
        };
    });
"##;

#[test]
fn delayed_messages_have_a_dashed_line() {
    let chromium = &mut *browser();
    let keys_and_dashes = |chromium: &mut Chromium, file| {
        chromium.open(file, Look { width: WIDE, dark: false });
        ask(
            chromium,
            "const figure = document.querySelector('#depth');
             const green = [...figure.querySelectorAll('svg polyline, svg line')].filter(line => line.getAttribute('stroke') === '#008F6B');
             return [[...figure.querySelectorAll('.keys li')].map(key => key.textContent.trim()), green.length > 10]",
        )
    };
    let of_moved = keys_and_dashes(chromium, &PAGES.moved);
    let keys = ["━━ in flight", "╍╍ delayed", "── visible", "━━ the limit of messages in flight"];
    assert_eq!(of_moved, json!([keys, true]));
    let of_plain = keys_and_dashes(chromium, &PAGES.plain);
    assert_eq!(of_plain, json!([[keys[0], keys[2], keys[3]], false]));
}

#[test]
fn page_is_silent_and_requests_nothing() {
    let chromium = &mut *browser();
    let file = &PAGES.compared;
    for look in looks() {
        chromium.open(file, look);
        assert_eq!(chromium.console(), [&Value::Null; 0], "{look:?}");
        assert_eq!(chromium.requests(), [format!("file://{}", file.display())], "{look:?}");
    }
    // This proves that the browser would report a message or a request.
    let loud = file.with_file_name("loud.html");
    let html = "<img src='http://127.0.0.1:9/picture.png'><script>console.warn('seen'); gone()</script>";
    std::fs::write(&loud, html).expect("a file can be written");
    chromium.open(&loud, Look { width: WIDE, dark: false });
    assert!(chromium.console().len() >= 2, "{:?}", chromium.console());
    assert!(chromium.requests().contains(&"http://127.0.0.1:9/picture.png"), "{:?}", chromium.requests());
}

#[test]
fn nothing_is_wider_than_the_window() {
    let chromium = &mut *browser();
    for file in [&PAGES.compared, &PAGES.full, &PAGES.moved] {
        for look in looks() {
            chromium.open(file, look);
            let scroll_width = ask(
                chromium,
                "document.querySelectorAll('details').forEach(d => d.open = true);
                 return document.documentElement.scrollWidth",
            );
            assert_eq!(scroll_width, look.width, "{look:?}");
        }
    }
}

#[test]
fn values_stay_on_one_line_and_wide_tables_scroll() {
    let chromium = &mut *browser();
    chromium.open(&PAGES.compared, Look { width: NARROW, dark: false });
    let broken = ask(
        chromium,
        "document.querySelectorAll('details').forEach(d => d.open = true);
         const lines = cell => {
             const range = document.createRange();
             range.selectNodeContents(cell);
             return new Set([...range.getClientRects()].map(r => Math.round(r.top))).size;
         };
         return [...document.querySelectorAll('td, .tiles dd')]
             .map(cell => cell.querySelector('span') ? cell.lastChild : cell)
             .filter(cell => lines(cell) > cell.textContent.split('\\n').length)
             .map(cell => cell.textContent)",
    );
    assert_eq!(broken, json!([]));
    let scrolling = ask(
        chromium,
        "return [...document.querySelectorAll('.scroll')].filter(t => t.scrollWidth > t.clientWidth).length",
    );
    assert!(scrolling.as_u64() >= Some(3), "{scrolling} tables are too wide for a phone, and scroll");
}

#[test]
fn text_and_lines_have_enough_contrast() {
    let chromium = &mut *browser();
    for file in [&PAGES.compared, &PAGES.full, &PAGES.moved] {
        for dark in [false, true] {
            chromium.open(file, Look { width: WIDE, dark });
            let pale = ask(chromium, PALE);
            assert_eq!(pale, json!([]), "dark: {dark}");
        }
        // A colour missing from the style sheet would be the same in both themes.
        let kept = ask(chromium, KEPT);
        assert_eq!(kept, json!([]), "not restyled for the dark");
        chromium.call(
            "Emulation.setEmulatedMedia",
            json!({"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
        );
        let paper = ask(chromium, "return getComputedStyle(document.body).backgroundColor");
        assert_eq!(paper, "rgb(255, 255, 255)", "paper is white, even if the screen is dark");
    }
}

/// JavaScript that finds text whose contrast is below 4.5 : 1, and graphics whose contrast is below 3 : 1 (WCAG 2.2,
/// 1.4.3 and 1.4.11).
const PALE: &str = r##"
    const rgb = colour => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
    const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const light = c => { const [r, g, b] = rgb(c).map(part); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
    const page = light(getComputedStyle(document.body).backgroundColor);
    const contrast = c => { const l = light(c); return (Math.max(l, page) + 0.05) / (Math.min(l, page) + 0.05) };
    const pale = [];
    const check = (least, element, colour) => { if (contrast(colour) < least) pale.push([element.tagName, element.textContent, colour]) };
    for (const element of document.querySelectorAll("h1, h2, h3, p, dt, dd, th, td, li, summary, code, caption, span:not([aria-hidden])"))
        check(4.5, element, getComputedStyle(element).color);
    for (const key of document.querySelectorAll(".keys [aria-hidden]")) check(3, key, getComputedStyle(key).color);
    for (const text of document.querySelectorAll("svg text")) check(4.5, text, getComputedStyle(text).fill);
    const aids = ["#E4E4E4", "#FFFFFF"];
    for (const mark of document.querySelectorAll("svg [stroke]"))
        if (!aids.includes(mark.getAttribute("stroke")) && mark.getAttribute("stroke") !== "none")
            check(3, mark, getComputedStyle(mark).stroke);
    for (const mark of document.querySelectorAll("svg circle[fill], svg polygon[fill], svg rect[fill]"))
        if (!aids.includes(mark.getAttribute("fill")) && mark.getAttribute("fill") !== "none")
            check(3, mark, getComputedStyle(mark).fill);
    return pale;
"##;

/// JavaScript that finds shapes whose colours the style sheet does not change in the dark theme.
const KEPT: &str = r##"
    const hex = colour => "#" + colour.match(/[\d.]+/g).slice(0, 3).map(v => Number(v).toString(16).padStart(2, "0")).join("").toUpperCase();
    const kept = (name) => [...document.querySelectorAll(`svg [${name}]`)]
        .filter(e => e.getAttribute(name) !== "none" && hex(getComputedStyle(e)[name]) === e.getAttribute(name))
        .map(e => e.outerHTML);
    return [...kept("fill"), ...kept("stroke")];
"##;

#[test]
fn page_is_accessible_to_a_screen_reader() {
    let chromium = &mut *browser();
    let file = &PAGES.plain;
    chromium.open(file, Look { width: WIDE, dark: false });
    let tree = chromium.call("Accessibility.getFullAXTree", json!({}));
    let images: Vec<&Value> = tree["nodes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|node| node["role"]["value"] == "image" || node["role"]["value"] == "img")
        .collect();
    assert_eq!(images.len(), CHARTS.len());
    for image in images {
        let name = image["name"]["value"].as_str().expect("a name");
        assert!(name.len() > 30 && name.contains(char::is_numeric), "title and description: {image}");
    }
    let headings =
        ask(chromium, "return [...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]))");
    let levels: Vec<u64> = headings.as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    assert_eq!(levels[0], 1);
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "a level is left out: {levels:?}");
    assert_eq!(ask(chromium, "return document.documentElement.lang"), "en");
    let bare = ask(
        chromium,
        "return [...document.querySelectorAll('table')].filter(t => !t.caption || !t.querySelector('th[scope=col]')).length",
    );
    assert_eq!(bare, 0, "tables without a caption or a head");
    let behind = ask(chromium, "return document.querySelectorAll('figure details tbody tr').length");
    assert!(behind.as_u64() > Some(80), "the charts' figures stand behind them: {behind} rows");
}

/// The picture in the README must show the charts that `make demo` writes.
#[test]
fn the_readme_has_a_picture_of_the_demo() {
    assert_is_pictured(&PAGES.plain, ["#recovery", "[aria-labelledby=events] .tables"], "recovery");
    assert!(pages::read("README.md").contains("(docs/recovery.png)"), "the README shows it");
}

#[test]
fn documentation_has_a_picture() {
    assert_is_pictured(&PAGES.shown, ["#over-time", "#limit"], "report");
    assert!(documentation().contains("(report.png)"), "docs/simulate.md shows it");
}

/// Asserts that `docs/NAME.png` shows the current report, from the top of one element to the top of another.
///
/// Only the text is compared, because another version of Chromium may draw different pixels.
fn assert_is_pictured(file: &Path, edges: [&str; 2], name: &str) {
    let chromium = &mut *browser();
    chromium.open(file, Look { width: WIDE, dark: false });
    let body = format!("const edges = {}; {SHOWN}", json!(edges));
    let shown = ask(chromium, &body);
    let [top, bottom] = ["top", "bottom"].map(|edge| shown[edge].as_f64().expect("a number").round());
    let clip = json!({"x": 0, "y": top, "width": WIDE, "height": bottom - top, "scale": 0.75});
    let shot = chromium.call(
        "Page.captureScreenshot",
        json!({"format": "png", "clip": clip, "captureBeyondViewport": true}),
    );
    let base64 = base64::engine::general_purpose::STANDARD;
    let png = base64.decode(shot["data"].as_str().expect("text")).expect("base64");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{} bytes", png.len());
    let text = shown["text"].as_str().expect("text");
    let (picture, golden) =
        (root().join(format!("docs/{name}.png")), root().join(format!("tests/golden/pictures/{name}.txt")));
    if std::env::var_os("UPDATE_SCREENSHOT").is_some() {
        std::fs::write(&picture, &png).expect("the picture can be written");
        std::fs::write(&golden, text).expect("its text can be written");
    }
    let kept = std::fs::read(&picture).expect("the picture is there");
    assert!(kept.starts_with(b"\x89PNG") && kept.len() < 400_000, "{} bytes", kept.len());
    let kept = std::fs::read_to_string(&golden).expect("the picture's text is there");
    assert_eq!(kept, text, "docs/{name}.png is out of date: run this test with UPDATE_SCREENSHOT=1");
}

/// JavaScript that returns the top edges of two elements, and all text and curves between them.
const SHOWN: &str = r#"
    const [top, bottom] = edges.map(edge => document.querySelector(edge).getBoundingClientRect().top);
    const texts = document.querySelectorAll("h2, h3, p, li, svg text, svg polyline, td, th");
    const shown = [...texts].filter(it => {
        const box = it.getBoundingClientRect();
        return it.checkVisibility() && box.top >= top && box.bottom <= bottom;
    });
    const lines = shown.map(it => (it.getAttribute("points") ?? it.textContent).trim().replace(/\s+/g, " "));
    return { top, bottom, text: lines.join("\n") + "\n" };
"#;
