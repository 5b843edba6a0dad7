//! Runs the console, and drives a browser that is signed in to it.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use comeback_tests::{Background, Chromium, Look, Operator, Tab, eventually, free_port, root, scratch};
use serde_json::{Value, json};

pub(crate) const WIDE: Look = Look { width: 1_280, dark: false };

/// A running `comeback ui`, which ends when this value is dropped.
pub(crate) struct Running {
    server: Background,
    /// The console's working folder, where it writes its files.
    pub(crate) folder: PathBuf,
    port: u16,
}

impl Running {
    /// Starts the console in a scratch folder named after `name`, and waits until it is ready.
    pub(crate) async fn start(operator: &Operator, name: &str, flags: &str) -> Self {
        let (folder, port) = (scratch(&format!("console-{name}")), free_port());
        let shell = operator.shell().clone().at(&folder).with("KEYS", folder.join("keys"));
        // The shell opens the pipe for both reading and writing, so that it does not wait for another process to open
        // it.
        let script =
            format!("mkfifo \"$KEYS\"; exec \"$COMEBACK\" ui --no-open --port {port} {flags} <>\"$KEYS\"");
        let server = shell.start(&script, &folder.join("output")).unwrap_or_else(|error| panic!("{error}"));
        let running = Self { server, folder, port };
        let serves = async || running.addresses().pop().map(drop);
        eventually("the console to serve", serves).await;
        running
    }

    pub(crate) async fn start_demonstration(name: &str) -> Self {
        Self::start(&Operator::without_an_account(), name, "--demo").await
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn addresses(&self) -> Vec<String> {
        let log = self.server.log();
        let words = log.lines().filter_map(|line| line.split_once("works once: "));
        words.map(|(_, address)| address.trim().to_owned()).collect()
    }

    /// Presses Enter in the console's terminal, and returns the sign-in URL that the console then prints.
    pub(crate) async fn way_in(&self) -> String {
        let known = self.addresses().len();
        let mut keys =
            std::fs::OpenOptions::new().write(true).open(self.folder.join("keys")).expect("a pipe");
        keys.write_all(b"\n").expect("the console reads its keys");
        let printed = async || self.addresses().into_iter().nth(known);
        eventually("another address", printed).await
    }
}

pub(crate) struct Browser {
    pub(crate) chromium: Chromium,
    tab: Tab,
    origin: String,
}

/// JavaScript that finds the visible links and buttons whose text or label is `name`.
const PRESSED: &str = r#"
    const pressable = [...document.querySelectorAll("main a, main button, main summary, nav a, #demo button")];
    const named = pressable.filter(it => it.checkVisibility() && [it.textContent.trim(), it.ariaLabel].includes(name));
    if (named.length === 0) throw "not there";
"#;

impl Browser {
    pub(crate) async fn signed_in(running: &Running, name: &str) -> Self {
        let mut chromium = Chromium::start(&scratch(&format!("console-browser-{name}")));
        let tab = chromium.open_tab();
        let mut browser = Self { chromium, tab, origin: running.origin() };
        browser.chromium.look(WIDE);
        // On a busy machine, a sign-in code may expire before the browser opens its address.
        let is_refused = "document.body.innerText.includes('This code is invalid')";
        loop {
            browser.chromium.visit(&running.way_in().await);
            if browser.chromium.ask(is_refused) != Ok(json!(true)) {
                break;
            }
        }
        let is_in = "location.pathname === '/' && document.readyState === 'complete'";
        let goes_on = async || (browser.chromium.ask(is_in) == Ok(json!(true))).then_some(());
        eventually("the page that goes on by itself", goes_on).await;
        browser
    }

    pub(crate) fn tab(&self) -> Tab {
        self.tab.clone()
    }

    pub(crate) fn open_tab(&mut self) -> Tab {
        self.tab = self.chromium.open_tab();
        self.chromium.look(WIDE);
        self.tab()
    }

    pub(crate) fn switch_to(&mut self, tab: &Tab) {
        self.tab = tab.clone();
        self.chromium.switch_to(tab);
    }

    pub(crate) fn visit(&mut self, path: &str) {
        let url = format!("{}{path}", self.origin);
        self.chromium.visit(&url);
        self.assert_quiet();
    }

    /// Runs the body of a JavaScript function in the page, and returns its result.
    pub(crate) fn ask(&mut self, body: &str) -> Value {
        self.chromium.evaluate(&format!("(async () => {{ {body} }})()"))
    }

    pub(crate) fn text(&mut self) -> String {
        let text = self.ask("return document.querySelector('main').innerText");
        text.as_str().expect("a string").to_owned()
    }

    /// Waits until `is_it` accepts the text of the page's main part, and returns the text.
    pub(crate) async fn sees(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let seen = async || {
            let shown = self.chromium.ask("document.querySelector('main').innerText").ok()?;
            shown.as_str().filter(|text| is_it(text)).map(ToOwned::to_owned)
        };
        eventually(what, seen).await
    }

    /// Waits until `text` appears anywhere on the page, even if the page is from another origin.
    pub(crate) async fn shows(&mut self, what: &str, text: &str) {
        let is_there = format!("document.body.innerText.includes({})", json!(text));
        let shown = async || (self.chromium.ask(&is_there) == Ok(json!(true))).then_some(());
        eventually(&format!("{text:?} for {what}"), shown).await;
    }

    pub(crate) fn fill(&mut self, label: &str, value: &str) {
        self.ask(&format!(
            r#"const [label, value] = {};
            const labels = [...document.querySelectorAll("main label")];
            const named = labels.filter(it => it.textContent.trim() === label);
            if (named.length !== 1) throw `${{named.length}} of ${{label}} among ${{labels.map(it => it.textContent.trim()).join(", ")}}`;
            named[0].control.value = value;
            named[0].control.dispatchEvent(new Event("input", {{ bubbles: true }}));
            named[0].control.dispatchEvent(new Event("change", {{ bubbles: true }}));"#,
            json!([label, value])
        ));
    }

    /// Clicks the link or button with this text as soon as it appears, and does not wait for the next page.
    pub(crate) async fn press(&mut self, name: &str) {
        // The mark lets `arrives` tell the next page from this one. The script that clicks also sets the mark, because
        // the page of a completed change reloads itself.
        let click = format!(
            "(() => {{ const name = {}; {PRESSED} window.isBefore = true; named[0].click(); }})()",
            json!(name)
        );
        eventually(&format!("{name:?} to press"), async || self.chromium.ask(&click).ok()).await;
    }

    /// Clicks the link or button with this text, and waits for the next page to load.
    pub(crate) async fn follow(&mut self, name: &str) {
        self.press(name).await;
        self.arrives(name).await;
    }

    /// Waits until a page loads in place of the current one, which must have been marked with `window.isBefore`.
    pub(crate) async fn arrives(&mut self, by: &str) {
        let is_there = "!window.isBefore && document.readyState === 'complete'";
        let arrives = async || (self.chromium.ask(is_there) == Ok(json!(true))).then_some(());
        eventually(&format!("the page after {by:?}"), arrives).await;
        self.assert_quiet();
    }

    /// Presses these keys one after another: characters, or names such as `Enter`.
    pub(crate) fn keys(&mut self, keys: &[&str]) {
        for key in keys {
            let is_character = key.chars().count() == 1;
            let text = match *key {
                "Enter" => "\r",
                key if is_character => key,
                _ => "",
            };
            let code = match *key {
                "Enter" => 13,
                "Tab" => 9,
                "Escape" => 27,
                " " => 32,
                _ => 0,
            };
            for kind in ["keyDown", "keyUp"] {
                let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
                if kind == "keyDown" && !text.is_empty() {
                    event["text"] = json!(text);
                }
                self.chromium.call("Input.dispatchKeyEvent", event);
            }
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.chromium.call("Input.insertText", json!({"text": text}));
    }

    pub(crate) fn tab_to(&mut self, name: &str) {
        let mut seen = Vec::new();
        for _ in 0..200 {
            self.keys(&["Tab"]);
            let focused = self.ask(
                "const it = document.activeElement;
                 return [it.textContent.trim(), it.ariaLabel, it.labels?.[0]?.textContent.trim()]",
            );
            if focused.as_array().is_some_and(|names| names.contains(&json!(name))) {
                return;
            }
            seen.push(focused);
        }
        panic!("no {name} among {seen:?}");
    }

    /// Presses these keys, and waits for the next page to load.
    pub(crate) async fn keys_lead_on(&mut self, keys: &[&str]) {
        // The page of a completed change reloads itself, and ignores keys until its script has run.
        let is_loaded = async || {
            (self.chromium.ask("document.readyState === 'complete'") == Ok(json!(true))).then_some(())
        };
        eventually("the page to be loaded", is_loaded).await;
        self.ask("window.isBefore = true");
        self.keys(keys);
        self.arrives(&keys.concat()).await;
    }

    /// Asserts that no script has failed, that the content security policy has blocked nothing, and that nothing was
    /// requested from another origin.
    pub(crate) fn assert_quiet(&mut self) {
        // Log entries about error statuses are ignored: a test that opens a refused page checks the refusal itself.
        let is_status = |entry: &&Value| entry.to_string().contains("the server responded with a status of");
        let loud: Vec<&Value> = self.chromium.console().into_iter().filter(|it| !is_status(it)).collect();
        assert_eq!(loud, [&Value::Null; 0]);
        let origin = self.origin.clone();
        let foreign: Vec<_> =
            self.chromium.requests().into_iter().filter(|url| !url.starts_with(&origin)).collect();
        assert_eq!(foreign, [""; 0]);
    }

    /// Asserts that axe-core finds no WCAG violations (up to level AA) on the page.
    pub(crate) fn assert_accessible(&mut self, what: &str) {
        static AXE: LazyLock<String> = LazyLock::new(|| {
            let file = root().join("tests/console/node_modules/axe-core/axe.min.js");
            std::fs::read_to_string(file)
                .expect("axe-core is installed: run `tests/tools/with.sh tests/console --`")
        });
        self.chromium.evaluate(&format!("{}; undefined", *AXE));
        let found = self.ask(
            r#"const runOnly = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
            const found = await axe.run(document, { runOnly });
            return found.violations.map(it => [it.id, it.nodes.map(node => [node.html, node.failureSummary])]);"#,
        );
        assert_eq!(found, json!([]), "{what}: {found:#}");
    }
}
