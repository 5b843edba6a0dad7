//! Tests of the server's rules, from the point of view of a browser and of an attacker.

mod choosing;
mod demo;
mod denied;
mod doctor;
mod function;
mod overview;
mod search;

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use comeback_operate::dead::testing::{Dead, SampleDeadLetter, event};
use comeback_operate::dead::{self, Filter, Snapshot};
use comeback_operate::{Address, Interrupt, Which};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::access::Access;
use crate::console::Console;
use crate::dead::state::scan_id;
use crate::response::encoded;
use crate::{LARGEST_FORM, routes, server};
use comeback_operate::clock::now;

const HERE: &str = "127.0.0.1:7070";
/// Path of a form for stopping a change; answered with 404, because no change is in progress.
const STOP: &str = "/progress/1/stop";

pub(super) struct Setting {
    pub(super) console: Console,
    router: Router,
    access: Rc<Access>,
    cookie: String,
}

/// A request that a test sends to the console.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    method: &'static str,
    path: String,
    host: Vec<String>,
    origin: Vec<String>,
    cookie: Option<String>,
    body: String,
}

pub(super) async fn snapshot_of(dead_letters: impl IntoIterator<Item = SampleDeadLetter>) -> Snapshot {
    dead::scan(&Dead::with(dead_letters).operator(), Filter::default()).await.unwrap()
}

/// Creates an account with two dead-letters. Returns the account, its console, and the form fields and the key of
/// the first dead-letter.
pub(super) async fn scanned(read_only: bool) -> (Dead, Setting, String, String) {
    let dead_letters = [event("Timeout"), event("Timeout")];
    let key = dead_letters[0].key.clone();
    let account = Dead::with(dead_letters);
    let snapshot = dead::scan(&account.operator(), Filter::default()).await.unwrap();
    let id = snapshot.dead_letter_of(&key).unwrap().message_id.to_string();
    let console = Console::new(address(), read_only, None);
    console.reach(account.aws.account());
    let fields = format!("scan={}&dead_letter={id}", scan_id(&snapshot));
    console.dead.set_snapshot(Some(snapshot));
    (account, Setting::of(console).await, fields, key)
}

pub(super) fn address() -> Address {
    Address { which: Which::Stack("comeback".into()), region: None, profile: None }
}

impl Setting {
    pub(super) async fn new(read_only: bool) -> Self {
        Self::of(Console::new(address(), read_only, None)).await
    }

    pub(super) async fn of(console: Console) -> Self {
        let access = Rc::new(Access::new(7070));
        let router = routes().with_state(console.clone());
        let request = Request::get(access.way_in(now())).header("host", HERE).body(Body::empty()).unwrap();
        let entered = server::answer(request, &router, &access).await;
        let cookie = entered.headers()["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { console, router, access, cookie }
    }

    fn form(&self) -> Sent {
        Sent {
            method: "POST",
            path: STOP.into(),
            host: vec![HERE.into()],
            origin: vec![format!("http://{HERE}")],
            cookie: Some(self.cookie.clone()),
            body: format!("secret={}", self.access.last_secret()),
        }
    }

    pub(super) fn form_of(&self, path: &str, fields: &str) -> Sent {
        let form = self.form();
        Sent { path: path.into(), body: format!("{}&{fields}", form.body), ..form }
    }

    pub(super) fn page(&self, path: &str) -> Sent {
        Sent { method: "GET", path: path.into(), origin: Vec::new(), body: String::new(), ..self.form() }
    }

    /// Sends a request to the console, and checks the headers that every response must have.
    pub(super) async fn response(&self, sent: Sent) -> Response {
        let mut request = Request::builder().method(sent.method).uri(&sent.path);
        let headers = sent.host.iter().map(|host| ("host", host));
        let headers = headers.chain(sent.origin.iter().map(|origin| ("origin", origin)));
        for (name, value) in headers.chain(sent.cookie.iter().map(|cookie| ("cookie", cookie))) {
            request = request.header(name, value);
        }
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let request = request.body(Body::from(sent.body)).unwrap();
        let answer = server::answer(request, &self.router, &self.access).await;
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers()[name], value);
        }
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        answer
    }

    pub(super) async fn answer(&self, sent: Sent) -> (StatusCode, String) {
        let answer = self.response(sent).await;
        let status = answer.status();
        let text = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(text.to_vec()).unwrap())
    }

    async fn status(&self, change: impl FnOnce(&mut Sent)) -> u16 {
        let mut sent = self.form();
        change(&mut sent);
        self.answer(sent).await.0.as_u16()
    }
}

pub(super) fn hidden<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{page}"));
    rest.split('"').next().unwrap_or_default()
}

/// The body of the form that performs the plan on `page`, without the form secret.
pub(super) fn confirmed(page: &str) -> String {
    let (_, form) = page.rsplit_once("<form method=\"post\"").unwrap_or_else(|| panic!("{page}"));
    let inputs = form.split("<input type=\"hidden\" name=\"").skip(1);
    let pairs = inputs.filter_map(|input| input.split_once("\" value=\""));
    let pairs = pairs.filter(|(name, _)| *name != "secret").map(|(name, value)| {
        let value = value.split('"').next().unwrap_or_default();
        let value = value.replace("&#34;", "\"").replace("&#60;", "<").replace("&#38;", "&");
        format!("{name}={}", encoded(&value))
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Runs a test on a single thread, because the server also runs on one.
pub(super) async fn locally(test: impl Future<Output = ()>) {
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn only_a_loopback_host_is_served() {
    locally(async {
        let here = Setting::new(false).await;
        assert_eq!(here.status(|_| ()).await, 404, "the form of our own page is taken");
        for host in ["localhost:7070", "LOCALHOST", "127.9.9.9:1", "[::1]:7070"] {
            let (host, origin) = (vec![host.to_owned()], vec![format!("http://{host}")]);
            assert_eq!(here.status(|sent| (sent.host, sent.origin) = (host, origin)).await, 404);
        }
        for host in [
            &["evil.example:7070"][..],
            &["127.0.0.1.evil.example"],
            &["localhost.evil.example"],
            &["192.168.0.7:7070"],
            &["0.0.0.0:7070"],
            &["localhost@evil.example"],
            &["evil.example@127.0.0.1"],
            &[""],
            &[],
            &[HERE, HERE],
        ] {
            let host: Vec<String> = host.iter().map(|&host| host.to_owned()).collect();
            let mut sent = here.page("/style.css");
            sent.host = host.clone();
            assert_eq!(here.answer(sent).await.0, 403, "{host:?}");
        }
        let mut sent = here.page("http://evil.example/style.css");
        assert_eq!(here.answer(sent.clone()).await.0, 403, "an address names another host");
        sent.path = "/style.css".into();
        assert_eq!(here.answer(sent).await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn a_form_must_come_from_our_page() {
    locally(async {
        let here = Setting::new(false).await;
        for origin in [
            &["http://127.0.0.1:7071"][..],
            &["http://localhost:7070"],
            &["http://evil.example"],
            &["https://127.0.0.1:7070"],
            &["null"],
            &[""],
            &[],
            &["http://127.0.0.1:7070", "http://127.0.0.1:7070"],
        ] {
            let origin: Vec<String> = origin.iter().map(|&origin| origin.to_owned()).collect();
            assert_eq!(here.status(|sent| sent.origin.clone_from(&origin)).await, 403, "{origin:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn without_a_session_every_path_says_what_to_do() {
    locally(async {
        let here = Setting::new(false).await;
        for path in ["/", "/waiting", "/style.css", "/script.js", "/pause", "/none"] {
            let mut sent = here.page(path);
            sent.cookie = None;
            let (status, text) = here.answer(sent).await;
            assert_eq!(status, 403, "{path}");
            assert!(text.contains("Press Enter where comeback ui runs"), "{text}");
        }
        let mut icon = here.page("/favicon.ico");
        icon.cookie = None;
        assert_eq!(here.answer(icon).await.0, StatusCode::NO_CONTENT, "browsers ask for it unasked");
        assert_eq!(here.status(|sent| sent.cookie = None).await, 403);
        assert_eq!(here.status(|sent| sent.cookie = Some("comeback-7070=guess".into())).await, 403);
    })
    .await;
}

#[tokio::test]
async fn a_cookie_alone_changes_nothing() {
    locally(async {
        let here = Setting::new(false).await;
        let other = Setting::new(false).await.access.last_secret();
        for path in
            [STOP, "/pause", "/resume", "/retry", "/cancel", "/dead/redrive", "/dead/discard", "/dead/import"]
        {
            for body in [String::new(), "secret=".into(), "secret=guess".into(), format!("secret={other}")] {
                let refused = here.status(|sent| (sent.path, sent.body) = (path.into(), body)).await;
                assert_eq!(refused, 403, "{path}");
            }
        }
        let unasked = here.status(|sent| sent.path = "/pause".into()).await;
        assert_eq!(unasked, 400, "its secret is right, but it is about no plan");
    })
    .await;
}

#[tokio::test]
async fn get_changes_nothing() {
    locally(async {
        let here = Setting::new(false).await;
        let secret = here.access.last_secret();
        let asked = format!("{STOP}?secret={secret}");
        for (method, path) in
            [("GET", &*asked), ("HEAD", "/"), ("PUT", STOP), ("DELETE", "/"), ("OPTIONS", "/")]
        {
            let status = here.status(|sent| (sent.method, sent.path) = (method, path.into())).await;
            assert_eq!(status, 405, "{method} {path}");
        }
        assert_eq!(here.status(|sent| sent.path = "/style.css".into()).await, 405);
        // These fields would begin a change if they were sent as a form.
        let (_, here, of_scan, _) = scanned(false).await;
        let planned = format!("plan=yes&function=%2A&reason=why&file=imported-1.jsonl&{of_scan}");
        let secret = here.access.last_secret();
        let fields = format!("secret={secret}&digest=0&typed=1&{planned}&fields={}", encoded(&planned));
        for path in [
            "/pause",
            "/resume",
            "/retry",
            "/cancel",
            "/attach",
            "/detach",
            "/dead/redrive",
            "/dead/discard",
            "/dead/import",
        ] {
            let once = encoded(path);
            let fields = format!("{fields}&once={once}");
            let (status, page) = here.answer(here.page(&format!("{path}?{fields}"))).await;
            assert_eq!(status, 200, "{path}: {page}");
            assert!(!here.console.works.has(path), "{path} has begun");
            assert_eq!(here.answer(here.form_of(path, &fields)).await.0, 303, "{path}");
            here.console.works.settled().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_form_is_limited() {
    locally(async {
        let here = Setting::new(false).await;
        let room = LARGEST_FORM - here.form().body.len() - "&x=".len();
        let padded =
            |length: usize| move |sent: &mut Sent| sent.body += &format!("&x={}", "y".repeat(length));
        assert_eq!(here.status(padded(room)).await, 404);
        assert_eq!(here.status(padded(room + 1)).await, 413);
    })
    .await;
}

#[tokio::test]
async fn a_read_only_console_takes_no_form() {
    locally(async {
        let here = Setting::new(true).await;
        for path in [
            "/pause",
            "/resume",
            "/retry",
            "/cancel",
            "/dead/redrive",
            "/dead/discard",
            "/dead/import",
            "/dead/upload",
        ] {
            assert_eq!(here.status(|sent| sent.path = path.into()).await, 403, "{path}");
        }
        let (status, text) = here.answer(here.page("/pause")).await;
        assert!(status == 200 && text.contains("read-only"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn values_from_an_address_are_escaped() {
    locally(async {
        let here = Setting::new(false).await;
        let hostile = "%3Cscript%3Ealert(1)%3C/script%3E%22%27%E2%80%AE%1B%5B2J";
        let (_, text) = here.answer(here.page(&format!("/pause?reason={hostile}"))).await;
        assert!(
            text.contains("&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;\\u{202e}\\u{1b}[2J"),
            "{text}"
        );
        assert!(!text.contains("<script>"));
    })
    .await;
}

/// Serves the console on a free port.
async fn listening(here: &Setting) -> std::net::SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (router, access) = (here.router.clone(), Rc::clone(&here.access));
    tokio::task::spawn_local(server::serve(listener, router, access, Interrupt::default()));
    address
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_is_cut_off() {
    locally(async {
        let address = listening(&Setting::new(false).await).await;
        let begin = Instant::now();
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        let mut rest = Vec::new();
        // The read ends with an answer, or with an error if the server cuts the connection.
        let _ = slow.read_to_end(&mut rest).await;
        assert!(!rest.starts_with(b"HTTP/1.1 200") && begin.elapsed() < Duration::from_secs(30));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn more_connections_wait_until_there_is_room() {
    locally(async {
        let address = listening(&Setting::new(false).await).await;
        let mut idle = Vec::new();
        for _ in 0..server::CONNECTIONS {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let begin = Instant::now();
        let mut next = TcpStream::connect(address).await.unwrap();
        next.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        next.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(begin.elapsed() >= server::HEADERS_WITHIN, "it was not served beside the others");
    })
    .await;
}

/// Forms must arrive quickly; uploads may take longer, up to a limit.
#[tokio::test(start_paused = true)]
async fn a_form_that_does_not_end_is_refused() {
    locally(async {
        let here = Setting::new(false).await;
        let address = listening(&here).await;
        let head = format!(
            "POST {STOP} HTTP/1.1\r\nHost: {HERE}\r\nOrigin: http://{HERE}\r\nTransfer-Encoding: chunked\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n"
        );
        // Sends a form in pieces of `piece` bytes, each followed by a pause of `every`, and times the answer.
        let sent = async |cookie: &str, piece: usize, every: Duration| {
            let begin = Instant::now();
            let (mut answers, mut sends) = TcpStream::connect(address).await.unwrap().into_split();
            sends.write_all(format!("{head}Cookie: {cookie}\r\n\r\n").as_bytes()).await.unwrap();
            let piece = format!("{piece:x}\r\n{}\r\n", "x".repeat(piece));
            let sending = async {
                while sends.write_all(piece.as_bytes()).await.is_ok() {
                    tokio::time::sleep(every).await;
                }
                std::future::pending().await
            };
            let mut answer = Vec::new();
            // A server that closes a connection before it has read all pieces resets the connection after its answer.
            tokio::select! {
                _ = answers.read_to_end(&mut answer) => {}
                () = sending => {}
            }
            (String::from_utf8(answer).unwrap(), begin.elapsed())
        };
        let (silent, slow) = (Duration::from_secs(3_600), server::SILENT_FOR / 2);
        let (answer, after) = sent("", 1, silent).await;
        assert!(answer.starts_with("HTTP/1.1 403") && after < server::SILENT_FOR, "{after:?}: {answer}");
        let (answer, after) = sent(&here.cookie, 1, silent).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("did not arrive"), "{answer}");
        assert!(after >= server::SILENT_FOR && after < 2 * server::SILENT_FOR, "{after:?}");
        let (answer, after) = sent(&here.cookie, 1, slow).await;
        assert!(answer.is_empty() && after >= server::REQUEST_WITHIN, "{after:?}: {answer}");
        assert!(after < 2 * server::REQUEST_WITHIN, "{after:?}");
        let (answer, after) = sent(&here.cookie, 8 << 10, Duration::from_millis(1)).await;
        assert!(answer.starts_with("HTTP/1.1 413") && after < server::SILENT_FOR, "{after:?}: {answer}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_page_frees_its_connection() {
    locally(async {
        let mut here = Setting::new(false).await;
        let panics = axum::routing::get(async || {
            if true {
                panic!("a bug")
            }
        });
        here.router = here.router.route("/panic", panics);
        let address = listening(&here).await;
        for _ in 0..=server::CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let get = format!("GET /panic HTTP/1.1\r\nHost: {HERE}\r\nCookie: {}\r\n\r\n", here.cookie);
            stream.write_all(get.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let ended = tokio::time::timeout(server::REQUEST_WITHIN, stream.read_to_end(&mut answer)).await;
            assert!(ended.is_ok() && answer.is_empty(), "it is served, and has no answer");
        }
    })
    .await;
}
