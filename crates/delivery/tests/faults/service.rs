//! A service on a real socket that fails in the way that a test asks for.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::wire::Call;

/// What the service does with one call.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Does every entry that has no error code here, in the order of the call, and says so.
    Entries(Vec<Option<&'static str>>),
    /// Does nothing, and answers this status and error code.
    Error(u16, &'static str),
    /// Does everything, and closes the connection instead of answering.
    Lost,
    /// Does nothing and closes the connection.
    Closed,
    /// Does everything, and never answers.
    Silence,
    /// Does everything, and answers this text with status 200.
    Text(String),
}

impl Answer {
    /// Every entry is done.
    pub(crate) fn done(call: &Call) -> Self {
        Self::Entries(vec![None; call.entries.len()])
    }
}

/// What became of the calls, by the texts of the entries.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// How often a client connected.
    pub(crate) connections: usize,
    /// The entries of each call.
    pub(crate) calls: Vec<Vec<String>>,
    /// The entries done, in that order.
    pub(crate) done: Vec<String>,
    /// Entries that a caller may believe not done: refused in an answer, or without one.
    pub(crate) doubtful: Vec<String>,
    /// Calls that the real service would have refused.
    pub(crate) violations: Vec<String>,
}

/// The service. It ends when this is dropped.
pub(crate) struct Service {
    address: std::net::SocketAddr,
    log: Arc<Mutex<Log>>,
    accepting: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start(answer: impl FnMut(&Call) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let log = Arc::<Mutex<Log>>::default();
        let state = Arc::new(State { answer: Mutex::new(answer), log: log.clone() });
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                state.log.lock().expect("no panic while logging").connections += 1;
                tokio::spawn(serve(stream, state.clone()));
            }
        });
        Self { address, log, accepting }
    }

    /// Answers every entry of every call with success.
    pub(crate) async fn obliging() -> Self {
        Self::start(Answer::done).await
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().expect("no panic while logging")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct State<A> {
    answer: Mutex<A>,
    log: Arc<Mutex<Log>>,
}

async fn serve<A: FnMut(&Call) -> Answer + Send + 'static>(stream: TcpStream, state: Arc<State<A>>) {
    let service = service_fn(move |request| handle(request, state.clone()));
    // A connection that a test has closed is what it wanted.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The connection is closed without an answer.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

async fn handle<A: FnMut(&Call) -> Answer>(
    request: Request<Incoming>,
    state: Arc<State<A>>,
) -> Result<Response<Full<Bytes>>, Closed> {
    let target = request.headers().get("x-amz-target").expect("an AWS JSON call").to_str().expect("text");
    let operation = target.rsplit('.').next().expect("an operation").to_owned();
    let body = request.into_body().collect().await.map_err(|_| Closed)?.to_bytes();
    let call = Call::read(operation, &body);
    let answer = (state.answer.lock().expect("no panic while answering"))(&call);
    note(&mut state.log.lock().expect("no panic while logging"), &call, &answer);
    match answer {
        Answer::Entries(codes) => Ok(response(200, "", call.answer(&codes).to_string())),
        Answer::Error(status, code) => {
            Ok(response(status, code, json!({"__type": code, "message": "as asked"}).to_string()))
        }
        Answer::Text(text) => Ok(response(200, "", text)),
        Answer::Lost | Answer::Closed => Err(Closed),
        Answer::Silence => match std::future::pending::<Infallible>().await {},
    }
}

fn note(log: &mut Log, call: &Call, answer: &Answer) {
    let texts = call.texts();
    let refused = |index: usize| match answer {
        Answer::Entries(codes) => codes[index].is_some(),
        Answer::Error(..) | Answer::Closed => true,
        Answer::Lost | Answer::Silence | Answer::Text(_) => false,
    };
    let certain = matches!(answer, Answer::Entries(_));
    for (index, text) in texts.iter().enumerate() {
        if !refused(index) {
            log.done.push(text.clone());
        }
        if refused(index) || !certain {
            log.doubtful.push(text.clone());
        }
    }
    log.violations.extend(call.violation());
    log.calls.push(texts);
}

fn response(status: u16, error: &str, body: String) -> Response<Full<Bytes>> {
    let builder = Response::builder().status(status).header("content-type", "application/x-amz-json-1.1");
    let builder = if error.is_empty() { builder } else { builder.header("x-amzn-errortype", error) };
    builder.body(Full::new(Bytes::from(body))).expect("a status and valid headers")
}

/// A number in `0..bound`, the same for the same seed and position.
pub(crate) fn draw(seed: u64, position: u64, bound: u64) -> u64 {
    // SplitMix64.
    let mut z = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % bound
}

/// The members of a JSON array, none if it is absent.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
