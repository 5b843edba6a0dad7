//! Headless Chromium, driven by its DevTools protocol over two pipes (`--remote-debugging-pipe`: JSON messages, each with
//! a NUL at its end). That takes serde_json and no port. The crates for it speak WebSocket and generate the whole protocol:
//! a minute of compiling, for ten commands.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::PATIENCE;

/// Without what a browser requests and logs on its own.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions \
    --hide-scrollbars --force-device-scale-factor=1";

/// One page in a browser. The browser ends when this is dropped.
#[derive(Debug)]
pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    events: Vec<Value>,
}

/// The window and the reader of a page.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Whether the reader prefers a dark page.
    pub dark: bool,
}

impl Chromium {
    /// Starts a browser whose profile lies in an empty `directory`.
    pub fn start(directory: &Path) -> Self {
        let found =
            Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(
            found.is_ok(),
            "chromium is not installed: run `make chromium` (or apt-get install chromium)"
        );
        // Chromium reads from its descriptor 3 and writes to its 4.
        let script = format!(
            "exec chromium {FLAGS} --remote-debugging-pipe --user-data-dir=\"$0\" 3<&0 4>&1 </dev/null >\"$0/log\" 2>&1"
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
        let mut chromium = Self { child, to, from, session: None, calls: 0, events: Vec::new() };
        let target = chromium.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = chromium.call("Target.attachToTarget", attach);
        chromium.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            chromium.call(&format!("{domain}.enable"), json!({}));
        }
        chromium
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path, look: Look) {
        let metrics =
            json!({"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": look.width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if look.dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.receive();
        }
    }

    /// Evaluates an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let mut result =
            self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].take()
    }

    /// Runs a command of the protocol.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("chromium takes a command");
        loop {
            if let Some(mut answer) = self.receive() {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    /// The console since the page was opened: with exceptions, refused requests and the browser's own warnings.
    pub fn console(&self) -> Vec<&Value> {
        self.of(&["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"])
    }

    /// The URLs of all requests since the page was opened, with its own.
    pub fn requests(&self) -> Vec<&str> {
        let requests = self.of(&["Network.requestWillBeSent"]);
        requests.into_iter().filter_map(|event| event["params"]["request"]["url"].as_str()).collect()
    }

    fn of(&self, methods: &[&str]) -> Vec<&Value> {
        self.events.iter().filter(|event| methods.iter().any(|method| event["method"] == *method)).collect()
    }

    /// Waits for a message. Returns an answer, keeps an event.
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
        // If the wait fails, nothing can be done about it here.
        let _ = self.child.wait();
    }
}
