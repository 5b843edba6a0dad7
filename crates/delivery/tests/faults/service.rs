//! A fake AWS service on a real socket, which sends the responses that the test chooses.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};

use aws_smithy_types::base64;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The error code for each entry in the call, in order; `None` if the service accepts the entry.
    Entries(Vec<Option<&'static str>>),
    /// Accepts no entries, and responds with this status and error code.
    Error(u16, &'static str),
    /// Accepts every entry, and closes the connection instead of responding.
    Lost,
    /// Accepts no entries and closes the connection.
    Closed,
    /// Accepts every entry, and responds with this body and status 200.
    Text(String),
}

impl Answer {
    pub(crate) fn done(call: &Call) -> Self {
        Self::Entries(vec![None; call.entries.len()])
    }
}

/// The calls and entries that the fake service has received. Each entry is represented by its text.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) connections: usize,
    pub(crate) calls: Vec<Vec<String>>,
    /// The accepted entries, in the order in which they were accepted.
    pub(crate) done: Vec<String>,
    /// Entries that a call's response did not report as accepted. A caller may send them again.
    pub(crate) doubtful: Vec<String>,
    /// Descriptions of the calls that the real service would have refused.
    pub(crate) violations: Vec<String>,
}

/// A fake AWS service, which stops accepting connections when dropped.
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

    /// Starts a service that reports success for every entry in every call.
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
    // A test may close a connection on purpose.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle<A: FnMut(&Call) -> Answer>(
    request: Request<Incoming>,
    state: Arc<State<A>>,
) -> io::Result<Response<Full<Bytes>>> {
    let target = request.headers().get("x-amz-target").expect("an AWS JSON call").to_str().expect("text");
    let operation = target.rsplit('.').next().expect("an operation").to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let call = Call::read(operation, &body);
    let answer = (state.answer.lock().expect("no panic while answering"))(&call);
    note(&mut state.log.lock().expect("no panic while logging"), &call, &answer);
    match answer {
        Answer::Entries(codes) => Ok(response(200, "", call.answer(&codes).to_string())),
        Answer::Error(status, code) => {
            Ok(response(status, code, json!({"__type": code, "message": "as asked"}).to_string()))
        }
        Answer::Text(text) => Ok(response(200, "", text)),
        // The connection is closed without a response.
        Answer::Lost | Answer::Closed => Err(io::Error::other("closed")),
    }
}

fn note(log: &mut Log, call: &Call, answer: &Answer) {
    let texts = call.texts();
    let refused = |index: usize| match answer {
        Answer::Entries(codes) => codes[index].is_some(),
        Answer::Error(..) | Answer::Closed => true,
        Answer::Lost | Answer::Text(_) => false,
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

/// Pseudo-random number in `0..bound` that depends only on the seed and the position.
pub(crate) fn draw(seed: u64, position: u64, bound: u64) -> u64 {
    // SplitMix64.
    let mut z = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % bound
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) operation: String,
    /// The call's entries, in the order of the body; entries of `BatchWriteItem` include their `Table`.
    pub(crate) entries: Vec<Value>,
    bytes: usize,
}

impl Call {
    pub(crate) fn read(operation: String, bytes: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(bytes).expect("a JSON body");
        let entries = match operation.as_str() {
            "BatchWriteItem" => in_tables(&body["RequestItems"]),
            "PutRecords" | "PutRecordBatch" => list(&body["Records"]).to_vec(),
            _ => list(&body["Entries"]).to_vec(),
        };
        Self { operation, entries, bytes: bytes.len() }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.entries.iter().map(|entry| self.text(entry)).collect()
    }

    fn text(&self, entry: &Value) -> String {
        match self.operation.as_str() {
            "SendMessageBatch" => string(&entry["MessageBody"]),
            "ChangeMessageVisibilityBatch" | "DeleteMessageBatch" => string(&entry["ReceiptHandle"]),
            "BatchWriteItem" => {
                let version = key(entry)["version"]["N"].as_str().unwrap_or_default();
                format!("{}{version}", string(&key(entry)["pk"]["S"]))
            }
            "PutRecords" | "PutRecordBatch" => {
                let data = base64::decode(string(&entry["Data"])).expect("base64");
                String::from_utf8(data).expect("a text")
            }
            "PutEvents" => string(&entry["Detail"]),
            other => panic!("no such operation: {other}"),
        }
    }

    /// Returns the response with these error codes for the entries; `None` stands for success.
    pub(crate) fn answer(&self, codes: &[Option<&str>]) -> Value {
        let failed = codes.iter().filter(|code| code.is_some()).count();
        let results = |done: Value| -> Vec<Value> {
            let refused = |code: &&str| json!({"ErrorCode": code, "ErrorMessage": "as asked"});
            codes.iter().map(|code| code.as_ref().map_or_else(|| done.clone(), refused)).collect()
        };
        match self.operation.as_str() {
            "BatchWriteItem" => json!({"UnprocessedItems": self.unprocessed(codes)}),
            "PutRecords" => {
                let done = json!({"SequenceNumber": "1", "ShardId": "shardId-000000000000"});
                json!({"FailedRecordCount": failed, "Records": results(done)})
            }
            "PutRecordBatch" => {
                json!({"FailedPutCount": failed, "RequestResponses": results(json!({"RecordId": "r"}))})
            }
            "PutEvents" => json!({"FailedEntryCount": failed, "Entries": results(json!({"EventId": "e"}))}),
            _ => self.by_id(codes),
        }
    }

    fn by_id(&self, codes: &[Option<&str>]) -> Value {
        let (mut successful, mut refused) = (Vec::new(), Vec::new());
        for (entry, code) in self.entries.iter().zip(codes) {
            let id = &entry["Id"];
            match code {
                None => successful.push(json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "x"})),
                Some(code) => {
                    let sender_fault = *code == "InvalidMessageContents";
                    refused.push(
                        json!({"Id": id, "Code": code, "SenderFault": sender_fault, "Message": "as asked"}),
                    );
                }
            }
        }
        json!({"Successful": successful, "Failed": refused})
    }

    fn unprocessed(&self, codes: &[Option<&str>]) -> Value {
        let mut tables = Map::new();
        for (entry, _) in self.entries.iter().zip(codes).filter(|(_, code)| code.is_some()) {
            let requests = tables.entry(string(&entry["Table"])).or_insert_with(|| json!([]));
            let mut request = entry.clone();
            request.as_object_mut().expect("an object").remove("Table");
            requests.as_array_mut().expect("a list").push(request);
        }
        Value::Object(tables)
    }

    /// Returns the reason why the real service would refuse the call.
    pub(crate) fn violation(&self) -> Option<String> {
        let (count, bytes) = match self.operation.as_str() {
            "BatchWriteItem" => (25, 16 * 1024 * 1024),
            "PutRecords" => (500, 10 * 1024 * 1024),
            "PutRecordBatch" => (500, 4 * 1024 * 1024),
            "PutEvents" => (10, 1024 * 1024 - 1),
            _ => (10, 1024 * 1024),
        };
        let distinct = |values: Vec<String>| values.iter().collect::<HashSet<_>>().len() == values.len();
        let total = self.total();
        if self.entries.is_empty() || self.entries.len() > count {
            return Some(format!("{} with {} entries", self.operation, self.entries.len()));
        }
        if total > bytes {
            return Some(format!("{} of {total} bytes", self.operation));
        }
        let names = match self.operation.as_str() {
            "BatchWriteItem" => {
                self.entries.iter().map(|entry| format!("{}{}", entry["Table"], key(entry)["pk"])).collect()
            }
            "PutRecords" | "PutRecordBatch" | "PutEvents" => Vec::new(),
            _ => self.entries.iter().map(|entry| string(&entry["Id"])).collect(),
        };
        (!distinct(names)).then(|| format!("{} names an entry twice", self.operation))
    }

    /// Returns the total size of the entries in bytes, as the service counts it for its limit on a call's size.
    fn total(&self) -> usize {
        let length = |value: &Value| value.as_str().map_or(0, str::len);
        let decoded = |value: &Value| base64::decode(string(value)).expect("base64").len();
        let of = |entry: &Value| match self.operation.as_str() {
            "SendMessageBatch" => length(&entry["MessageBody"]) + attributes(&entry["MessageAttributes"]),
            "PutRecords" => decoded(&entry["Data"]) + length(&entry["PartitionKey"]),
            "PutRecordBatch" => decoded(&entry["Data"]),
            "PutEvents" => {
                let resources: usize = list(&entry["Resources"]).iter().map(length).sum();
                let time = if entry["Time"].is_null() { 0 } else { 14 };
                length(&entry["Detail"])
                    + length(&entry["DetailType"])
                    + length(&entry["Source"])
                    + resources
                    + time
            }
            _ => 0,
        };
        match self.operation.as_str() {
            "BatchWriteItem" => self.bytes,
            _ => self.entries.iter().map(of).sum(),
        }
    }
}

fn attributes(attributes: &Value) -> usize {
    let Some(attributes) = attributes.as_object() else { return 0 };
    let value = |value: &Value| {
        string(&value["DataType"]).len()
            + value["StringValue"].as_str().map_or(0, str::len)
            + value["BinaryValue"].as_str().map_or(0, |text| base64::decode(text).expect("base64").len())
    };
    attributes.iter().map(|(name, attribute)| name.len() + value(attribute)).sum()
}

fn in_tables(tables: &Value) -> Vec<Value> {
    let tables = tables.as_object().expect("tables");
    let with_table = |(table, requests): (&String, &Value)| -> Vec<Value> {
        let mut requests = list(requests).to_vec();
        requests.iter_mut().for_each(|request| request["Table"] = json!(table));
        requests
    };
    tables.iter().flat_map(with_table).collect()
}

fn key(entry: &Value) -> &Value {
    let put = &entry["PutRequest"]["Item"];
    if put.is_null() { &entry["DeleteRequest"]["Key"] } else { put }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}
