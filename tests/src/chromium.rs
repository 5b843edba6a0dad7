//! Runs headless Chromium and speaks its DevTools protocol over two pipes (`--remote-debugging-pipe`).
//!
//! Each message is JSON, terminated by a NUL byte. No crate is used, because the crates for this protocol use
//! WebSocket and take a minute to compile.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::shell::PATIENCE;

/// Chromium's command-line flags. Several of them suppress Chromium's own requests and log messages.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions \
    --hide-scrollbars --force-device-scale-factor=1";

/// A running Chromium, which exits when this value is dropped. DevTools commands go to its current tab.
#[derive(Debug)]
pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    /// The tab that receives the DevTools commands, or `None` before the first tab is opened.
    tab: Option<Tab>,
    calls: u64,
    events: Vec<Value>,
}

/// A browser tab, identified by its protocol session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tab(String);

/// The viewport width and colour scheme for showing a page.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Width of the viewport in CSS pixels.
    pub width: u32,
    /// True if the reader prefers dark colours.
    pub dark: bool,
}

impl Chromium {
    /// Starts a browser that keeps its profile in `directory`, which must be empty.
    pub fn start(directory: &Path) -> Self {
        let found =
            Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(
            found.is_ok(),
            "chromium is not installed: run `make chromium` (or apt-get install chromium)"
        );
        // Chromium reads from descriptor 3 and writes to descriptor 4. It must not delay servers whose clocks run fast.
        let script = format!(
            "exec nice -n 10 chromium {FLAGS} --remote-debugging-pipe --user-data-dir=\"$0\" \
             3<&0 4>&1 </dev/null >\"$0/log\" 2>&1"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let to = child.stdin.take().expect("BUG: it is piped");
        let mut output = BufReader::new(child.stdout.take().expect("BUG: it is piped"));
        let (send, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                let text = message.strip_suffix(&[0]).unwrap_or(&message);
                let value = serde_json::from_slice(text).expect("chromium writes JSON");
                if send.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut chromium = Self { child, to, from, tab: None, calls: 0, events: Vec::new() };
        chromium.open_tab();
        chromium
    }

    /// Opens another tab and makes it the current one.
    pub fn open_tab(&mut self) -> Tab {
        self.tab = None;
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach);
        let tab = Tab(attached["sessionId"].as_str().expect("a session").to_owned());
        self.tab = Some(tab.clone());
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        tab
    }

    /// Makes this tab the current one.
    pub fn switch_to(&mut self, tab: &Tab) {
        self.tab = Some(tab.clone());
        self.call("Page.bringToFront", json!({}));
    }

    /// Opens a file in the current tab and waits until it is loaded.
    pub fn open(&mut self, file: &Path, look: Look) {
        self.look(look);
        self.visit(&format!("file://{}", file.display()));
    }

    /// Sets the current tab's viewport width and preferred colour scheme.
    pub fn look(&mut self, look: Look) {
        let metrics =
            json!({"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": look.width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if look.dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Opens a URL in the current tab, and waits until the page has loaded.
    pub fn visit(&mut self, url: &str) {
        let session = self.session();
        self.events.retain(|event| event["sessionId"] != session);
        let navigation = self.call("Page.navigate", json!({"url": url}));
        // The previous page may still be loading; its load event does not count.
        let is_loaded = |chromium: &Self| {
            let events = chromium.of(&["Page.frameNavigated", "Page.loadEventFired"]);
            let is_ours = |it: &&&Value| it["params"]["frame"]["loaderId"] == navigation["loaderId"];
            let ours = events.iter().position(|it| is_ours(&it));
            ours.is_some_and(|ours| events[ours..].iter().any(|it| it["method"] == "Page.loadEventFired"))
        };
        while !is_loaded(self) {
            self.receive();
        }
    }

    /// Makes every tab save its downloads in this folder.
    pub fn download_to(&mut self, folder: &Path) {
        let tab = self.tab.take();
        let path = folder.display().to_string();
        self.call("Browser.setDownloadBehavior", json!({"behavior": "allow", "downloadPath": path}));
        self.tab = tab;
    }

    /// Evaluates a JavaScript expression in the current tab.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.ask(expression).unwrap_or_else(|problem| panic!("{expression}: {problem}"))
    }

    /// Evaluates a JavaScript expression in the current tab. If the result is a promise, awaits it.
    ///
    /// Fails if the expression throws, or if the tab leaves the page.
    pub fn ask(&mut self, expression: &str) -> Result<Value, Value> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut result = self.try_call("Runtime.evaluate", params)?;
        match result["exceptionDetails"].take() {
            Value::Null => Ok(result["result"]["value"].take()),
            problem => Err(problem),
        }
    }

    /// Sends a DevTools protocol command and returns its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|problem| panic!("{method}: {problem}"))
    }

    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(Tab(session)) = &self.tab {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("chromium takes a command");
        loop {
            if let Some(mut answer) = self.receive() {
                return if answer["error"].is_null() {
                    Ok(answer["result"].take())
                } else {
                    Err(answer["error"].take())
                };
            }
        }
    }

    fn session(&self) -> Value {
        self.tab.as_ref().map_or(Value::Null, |Tab(session)| json!(session))
    }

    /// Messages logged in the current tab since its page was opened, including exceptions, refused requests and the
    /// browser's own warnings.
    pub fn console(&self) -> Vec<&Value> {
        self.of(&["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"])
    }

    /// URLs of all requests since the current tab's page was opened, including the page's own.
    pub fn requests(&self) -> Vec<&str> {
        let requests = self.of(&["Network.requestWillBeSent"]);
        requests.into_iter().filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    fn of(&self, methods: &[&str]) -> Vec<&Value> {
        let session = self.session();
        let of_tab = self.events.iter().filter(|event| event["sessionId"] == session);
        of_tab.filter(|event| methods.iter().any(|method| event["method"] == *method)).collect()
    }

    /// Waits for a message from the browser. If the message is a response, returns it. If it is an event, stores it
    /// and returns `None`.
    fn receive(&mut self) -> Option<Value> {
        let message = self.from.recv_timeout(PATIENCE).expect("chromium answers");
        if message["id"].is_u64() {
            return Some(message);
        }
        self.events.push(message);
        None
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.to.write_all(format!("{}\0", json!({"id": 0, "method": "Browser.close"})).as_bytes());
        // Nothing can be done about a failed wait here.
        let _ = self.child.wait();
    }
}
