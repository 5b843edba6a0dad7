//! Tests that pages from other origins, opened in a signed-in browser, cannot change anything.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};

use crate::console::browser::{Browser, Running};
use crate::world::World;

const REASON: &str = "a stranger's";

pub(crate) async fn console_refuses_strangers(_: &World) {
    let running = Running::start_demonstration("strangers").await;
    let mut browser = Browser::signed_in(&running, "strangers").await;
    let form = browser_has_a_form(&mut browser).await;
    refuses_pages_of_others(&running, &mut browser, &form).await;
    browser.chromium.visit(&running.origin());
    let shown = browser.text();
    assert!(shown.contains("Waiting") && !shown.contains(REASON), "nobody has paused anything: {shown}");
}

/// Opens a page with the plan for a pause, and returns the fields of the page's form, except the form secret.
async fn browser_has_a_form(browser: &mut Browser) -> String {
    browser.visit("/pause");
    browser.fill("Function", "*");
    browser.fill("Reason", REASON);
    browser.follow("Show the plan").await;
    let fields = browser.ask(
        "const form = document.querySelector('main form[method=post]');
         return [...new FormData(form)].filter(([name]) => name !== 'secret')",
    );
    fields.to_string()
}

/// Asserts that the console refuses a form that comes from another port or a sandboxed page, or lacks the form secret.
async fn refuses_pages_of_others(running: &Running, browser: &mut Browser, fields: &str) {
    let target = format!("{}/pause", running.origin());
    let send = |document: &str| {
        format!(
            "const form = {document}.createElement('form');
             form.method = 'post'; form.action = '{target}';
             for (const [name, value] of {fields}) {{
                 const input = {document}.createElement('input');
                 [input.name, input.value] = [name, value];
                 form.append(input);
             }}
             {document}.body.append(form);
             form.submit();"
        )
    };
    let other = serve_once(&format!("<!DOCTYPE html><body><script>{}</script>", send("document")));
    let send_all = send("document").replace("form.method", "form.target = '_top'; form.method");
    let script = format!("<body><script>{send_all}</script>");
    let rights = "allow-scripts allow-forms allow-top-navigation";
    let frame = format!("<iframe sandbox='{rights}' srcdoc=\"{}\"></iframe>", script.replace('"', "&quot;"));
    let sandbox = serve_once(&format!("<!DOCTYPE html><body>{frame}"));
    for (what, url) in [("a page of another port", other), ("a page in a sandbox", sandbox)] {
        browser.chromium.visit(&url);
        browser.shows(what, "not from a page of this server").await;
    }
    browser.chromium.visit(&format!("{}/pause", running.origin()));
    browser.chromium.evaluate(&format!("(() => {{ {} }})()", send("document")));
    browser.shows("a form without its secret", "lacks this session's secret").await;
}

/// Serves a page on a separate port of this machine, and returns the page's URL.
fn serve_once(page: &str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it has one");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    std::thread::spawn(move || {
        // More than one connection is served, because a browser may open a connection without sending a request.
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/")
}
