//! Runs the test cases that the consumers in all languages share (`tests/golden/consumer`), and cases that apply only
//! to the Rust consumer.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::dead_letter::Value as AttributeValue;

const NOW: Timestamp = Timestamp::from_secs(1_795_694_400);
const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:orders";

#[derive(Deserialize)]
struct Case {
    options: HashMap<String, Value>,
    draw: f64,
    queue: String,
    batch: Vec<Given>,
    #[serde(default = "a_minute")]
    time_left: Vec<f64>,
    #[serde(default)]
    refuses: Vec<String>,
    runs: Vec<String>,
    dead_letters: Vec<(String, String)>,
    hides: Vec<(String, u64)>,
    hiding_calls: Option<usize>,
    response: Vec<String>,
    /// The expected log lines, without timestamps; `None` if the case does not check them.
    lines: Option<Vec<Value>>,
}

#[derive(Clone, Deserialize)]
struct Given {
    id: Option<String>,
    receives: u32,
    sent_ago: u64,
    first_ago: u64,
    group: Option<String>,
    /// The message's SQS attributes, in place of the defaults.
    attributes: Option<HashMap<String, String>>,
    body: Option<String>,
    sees: Option<String>,
    does: Does,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Does {
    Succeeds,
    Fails(String, String),
    /// The case in which the consumer's function returns an iterator. Rust's types rule that out, so the function
    /// returns an error instead.
    ReturnsAnIterator,
}

/// Stands in for SQS, the clock and the random numbers, and records the calls to SQS.
#[derive(Clone)]
struct Fake {
    refuses: Vec<String>,
    never_answers: bool,
    /// Position of each draw in its range, from 0 (the lowest value) to 1 (the highest).
    draw: f64,
    /// The function's remaining times, in seconds, in the order in which the consumer gets them. The last one repeats.
    time_left: Vec<f64>,
    calls: Arc<Mutex<Calls>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            refuses: Vec::new(),
            never_answers: false,
            draw: 0.5,
            time_left: a_minute(),
            calls: Arc::default(),
        }
    }
}

fn a_minute() -> Vec<f64> {
    vec![60.0]
}

#[derive(Default)]
struct Calls {
    dead_letters: Vec<DeadLetter>,
    hides: Vec<(String, u64)>,
    hiding_calls: usize,
    deletes: Vec<String>,
    lines: Vec<Value>,
}

impl Fake {
    async fn answer<T>(&self, call: &str, answer: T) -> Result<T, Refused> {
        if self.never_answers {
            std::future::pending::<()>().await;
        }
        let refused = Refused { problem: "denied".into(), remedy: None };
        if self.refuses.iter().any(|it| it == call) { Err(refused) } else { Ok(answer) }
    }
}

impl Sqs for Fake {
    fn hide<'a>(
        &'a self,
        _: &'a str,
        messages: &'a [Hiding],
    ) -> BoxFuture<'a, Result<Vec<(usize, String)>, Refused>> {
        let mut calls = self.calls.lock().unwrap();
        calls.hiding_calls += 1;
        let hidden = messages.iter();
        calls.hides.extend(hidden.map(|it| (it.receipt_handle[2..].into(), it.visibility_timeout.as_secs())));
        Box::pin(self.answer("ChangeMessageVisibilityBatch", Vec::new()))
    }

    fn delete<'a>(
        &'a self,
        _: &'a str,
        receipt_handles: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, String)>, Refused>> {
        self.calls.lock().unwrap().deletes.extend(receipt_handles.iter().map(|it| it[2..].to_owned()));
        Box::pin(self.answer("DeleteMessageBatch", Vec::new()))
    }

    fn send<'a>(&'a self, _: &'a str, dead_letter: DeadLetter) -> BoxFuture<'a, Result<(), Refused>> {
        self.calls.lock().unwrap().dead_letters.push(dead_letter);
        Box::pin(self.answer("SendMessage", ()))
    }
}

fn seconds(value: &Value) -> Duration {
    let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
    Duration::from_secs(comeback_engine::seconds(&text).unwrap())
}

fn options(given: &HashMap<String, Value>) -> Options {
    let mut options = Options::default();
    for (name, value) in given {
        match name.as_str() {
            "base_backoff" => options.base_backoff = seconds(value),
            "max_backoff" => options.max_backoff = Some(seconds(value)),
            "max_age" => options.max_age = seconds(value),
            "jitter" => options.jitter = value.as_str().unwrap().parse().unwrap(),
            "max_receives" => options.max_receives = Some(value.as_u64().unwrap() as u32),
            "dead_letter_queue_url" => {
                options.dead_letter_queue_url = Some(value.as_str().unwrap().into());
            }
            other => panic!("option {other}"),
        }
    }
    options
}

fn record(given: &Given, queue: &str) -> SqsMessage {
    let ago = |seconds: u64| (NOW.as_millis() - 1_000 * seconds).to_string();
    let mut attributes = HashMap::from([
        ("ApproximateReceiveCount".to_owned(), given.receives.to_string()),
        ("SentTimestamp".to_owned(), ago(given.sent_ago)),
        ("ApproximateFirstReceiveTimestamp".to_owned(), ago(given.first_ago)),
    ]);
    attributes.extend(given.group.clone().map(|group| ("MessageGroupId".to_owned(), group)));
    let id = given.id.clone();
    let mut record = SqsMessage::default();
    record.receipt_handle = Some(format!("h-{}", id.as_deref().unwrap_or_default()));
    record.body = given.body.clone().or_else(|| id.clone());
    record.message_id = id;
    record.attributes = given.attributes.clone().unwrap_or(attributes);
    record.event_source_arn = Some(queue.into());
    record
}

fn context() -> Context {
    let mut context = Context::default();
    context.invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders".into();
    context
}

fn shared<F>(options: Options, handler: F, fake: &Fake) -> Shared<F> {
    let left = fake.time_left.iter().copied().map(Duration::from_secs_f64).collect::<VecDeque<_>>();
    let (left, draw) = (Mutex::new(left), fake.draw);
    let time_left = move |_: &Context| {
        let mut left = left.lock().unwrap();
        if left.len() > 1 { left.pop_front().unwrap() } else { left[0] }
    };
    let draw = move |least: u64, most: u64| least + (draw * (most - least + 1) as f64) as u64;
    let (time_left, draw) = (Box::new(time_left), Box::new(draw));
    let calls = Arc::clone(&fake.calls);
    let log = Box::new(move |line: &ConsumerLine<'_>| {
        let mut line: Value = serde_json::from_str(&line.json()).unwrap();
        assert_eq!(line.as_object_mut().unwrap().remove("timestamp").unwrap(), "2026-11-26T12:00:00.000Z");
        calls.lock().unwrap().lines.push(line);
    });
    Shared { options, handler, sqs: Box::new(fake.clone()), now: || NOW, time_left, draw, log }
}

async fn check(name: &str, case: Case) {
    let (refuses, time_left) = (case.refuses.clone(), case.time_left.clone());
    let fake = Fake { refuses, draw: case.draw, time_left, ..Fake::default() };
    let ran = Mutex::new(Vec::new());
    let handler = |record: SqsMessage, _: Context| {
        let id = record.message_id.clone().unwrap();
        let given = case.batch.iter().find(|given| given.id.as_ref() == Some(&id)).unwrap().clone();
        assert_eq!(record.body, given.sees.or(Some(id.clone())), "{name}");
        ran.lock().unwrap().push(id);
        async {
            match given.does {
                Does::Succeeds => Ok(()),
                Does::Fails(error_type, error_message) => Err(Diagnostic { error_type, error_message }),
                Does::ReturnsAnIterator => {
                    Err(Diagnostic { error_type: "TypeError".into(), error_message: String::new() })
                }
            }
        }
    };
    let shared = shared(options(&case.options), handler, &fake);
    let records: Vec<SqsMessage> = case.batch.iter().map(|given| record(given, &case.queue)).collect();
    let response = Batch::new(&shared, context(), &records).handle(records).await;
    let failures: Vec<String> =
        response.batch_item_failures.iter().map(|it| it.item_identifier.clone()).collect();
    let calls = fake.calls.lock().unwrap();
    let dead_letters: Vec<(String, String)> = calls
        .dead_letters
        .iter()
        .map(|dead_letter| {
            let body: Value = serde_json::from_str(&dead_letter.body).unwrap();
            let text = |name: &str| body[name].as_str().unwrap().to_owned();
            (text("origin_request_id"), text("reason"))
        })
        .collect();
    assert_eq!(failures, case.response, "{name}");
    assert_eq!(*ran.lock().unwrap(), case.runs, "{name}");
    assert_eq!(calls.hides, case.hides, "{name}");
    assert_eq!(
        calls.hiding_calls,
        case.hiding_calls.unwrap_or(usize::from(!case.hides.is_empty())),
        "{name}"
    );
    assert_eq!(dead_letters, case.dead_letters, "{name}");
    assert_eq!(calls.lines, case.lines.unwrap_or_else(|| calls.lines.clone()), "{name}");
}

#[tokio::test]
async fn cases() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/consumer");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 20);
    for file in files {
        let case = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        check(&file.display().to_string(), case).await;
    }
}

fn given(id: &str) -> Given {
    let id = Some(id.into());
    Given {
        id,
        receives: 1,
        sent_ago: 0,
        first_ago: 0,
        group: None,
        attributes: None,
        body: None,
        sees: None,
        does: Does::Succeeds,
    }
}

async fn failures<F, Fut, E>(
    options: Options,
    fake: &Fake,
    records: Vec<SqsMessage>,
    handler: F,
) -> Vec<String>
where
    F: Fn(SqsMessage, Context) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Into<Diagnostic>,
{
    let shared = shared(options, handler, fake);
    let response = Batch::new(&shared, context(), &records).handle(records).await;
    response.batch_item_failures.into_iter().map(|it| it.item_identifier).collect()
}

#[test]
fn event_from_another_source_is_an_error() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/consumer-events.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in cases {
        let said = super::records(case["event"].clone()).err().map(|error| error.error_message);
        let expected = case.get("problem").map(|problem| {
            let problem = problem.as_str().unwrap();
            format!("not an SQS event: {problem}; comeback-sqs is for functions behind an SQS event source mapping")
        });
        assert_eq!(said, expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_record_does_not_affect_others() {
    for concurrency in [1, 4] {
        let records = ["good", "bad", "hangs", "last"].map(|id| record(&given(id), QUEUE)).to_vec();
        let fake = Fake { time_left: vec![50.0], ..Fake::default() };
        let options = Options { concurrency, ..Options::default() };
        let handler = async |record: SqsMessage, _| match record.message_id.as_deref() {
            Some("bad") => Err(Diagnostic { error_type: "E".into(), error_message: String::new() }),
            Some("hangs") => std::future::pending().await,
            _ => Ok(()),
        };
        let answer = failures(options, &fake, records, handler);
        let answer = tokio::time::timeout(Duration::from_secs(49), answer).await;
        assert!(answer.is_err(), "an answer would let it run on in the next invocation");
        let calls = fake.calls.lock().unwrap();
        assert_eq!(calls.hides.len(), 1);
        assert_eq!(calls.hides[0].0, "bad");
        assert_eq!(calls.deletes, if concurrency == 1 { vec!["good"] } else { vec!["good", "last"] });
    }
}

#[tokio::test]
async fn dead_letter_drops_the_error_text_first() {
    let url = Some("https://sqs.eu-west-1.amazonaws.com/1/dead".into());
    let options = Options { dead_letter_queue_url: url, ..Options::default() };
    let mut record = record(&Given { body: Some("x".repeat(1_045_000)), ..given("a") }, QUEUE);
    record.attributes.insert("MessageGroupId".into(), "customer-7".into());
    record.attributes.insert("AWSTraceHeader".into(), "Root=1".into());
    let fake = Fake::default();
    let handler = async |_, _| {
        Err(Diagnostic { error_type: "NonRetryable".into(), error_message: "y".repeat(2_000_000) })
    };
    assert!(failures(options, &fake, vec![record], handler).await.is_empty());
    let dead_letter = fake.calls.lock().unwrap().dead_letters.remove(0);
    assert_eq!(dead_letter.attributes.len(), 4);
    let body: Value = serde_json::from_str(&dead_letter.body).unwrap();
    assert_eq!(body["error"]["message"], "");
    assert_eq!(dead_letter.group.as_deref(), Some("customer-7"));
    assert_eq!(dead_letter.trace_header.as_deref(), Some("Root=1"));
}

#[tokio::test]
async fn panic_fails_only_its_record() {
    let records = ["a", "b", "c"].map(|id| record(&given(id), QUEUE)).to_vec();
    let fake = Fake::default();
    let handler = |record: SqsMessage, _| async move {
        assert_ne!(record.message_id.as_deref(), Some("b"), "planned");
        Ok::<_, Diagnostic>(())
    };
    assert_eq!(failures(Options::default(), &fake, records, handler).await, ["b"]);
    assert_eq!(fake.calls.lock().unwrap().hides, [("b".to_owned(), 6)]);
}

#[test]
fn bogus_deadline_counts_as_longest_timeout() {
    let at = |second: u64| Timestamp::from_secs(NOW.as_secs() - 100 + second);
    let days_ahead = NOW.saturating_add(Duration::from_secs(3 * 86_400));
    for deadline in [Timestamp::from_secs(600), days_ahead, Timestamp::from_millis(u64::MAX)] {
        assert_eq!(time_left(deadline, NOW), LONGEST_TIMEOUT);
    }
    assert_eq!([at(0), at(100), at(130)].map(|it| time_left(it, NOW).as_secs()), [0, 0, 30]);
}

#[tokio::test]
async fn unreportable_error_fails_only_its_record() {
    struct Unreportable;
    impl From<Unreportable> for Diagnostic {
        fn from(_: Unreportable) -> Self {
            panic!("planned")
        }
    }
    let records = ["a", "b"].map(|id| record(&given(id), QUEUE)).to_vec();
    let fake = Fake::default();
    let handler = async |record: SqsMessage, _| match record.message_id.as_deref() {
        Some("a") => Err(Unreportable),
        _ => Ok(()),
    };
    assert_eq!(failures(Options::default(), &fake, records, handler).await, ["a"]);
    assert_eq!(fake.calls.lock().unwrap().hides, [("a".to_owned(), 6)]);
}

#[tokio::test(start_paused = true)]
async fn no_call_outlasts_the_function() {
    let url = Some("https://sqs.eu-west-1.amazonaws.com/1/dead".into());
    let options = Options { dead_letter_queue_url: url, ..Options::default() };
    let fake = Fake { never_answers: true, ..Fake::default() };
    let handler =
        async |_, _| Err(Diagnostic { error_type: "NonRetryable".into(), error_message: String::new() });
    let begun = tokio::time::Instant::now();
    assert_eq!(failures(options, &fake, vec![record(&given("a"), QUEUE)], handler).await, ["a"]);
    // Each of the two calls waits for the remaining 60 s, less a fifth of the reserve of 5 s.
    assert_eq!(begun.elapsed().as_secs(), 2 * (60 - 1));
    let late = "SQS did not answer before the function's time was up";
    assert!(fake.calls.lock().unwrap().lines.iter().all(|line| line["problem"] == late));
}

#[tokio::test]
async fn only_groups_run_in_order() {
    let running = Mutex::new((Vec::new(), 0));
    let handler = |record: SqsMessage, _| {
        let lane = record.attributes.get("MessageGroupId").or(record.message_id.as_ref()).unwrap().clone();
        let running = &running;
        async move {
            {
                let mut running = running.lock().unwrap();
                assert!(!running.0.contains(&lane));
                running.0.push(lane.clone());
                running.1 = running.1.max(running.0.len());
            }
            tokio::task::yield_now().await;
            running.lock().unwrap().0.retain(|it| *it != lane);
            Ok::<_, Diagnostic>(())
        }
    };
    let options = Options { concurrency: 3, ..Options::default() };
    let ids: Vec<String> = (0..40).map(|number| format!("m{number}")).collect();
    let records = |queue: &str, group: fn(usize) -> Option<String>| -> Vec<SqsMessage> {
        let one =
            |(number, id): (usize, &String)| record(&Given { group: group(number), ..given(id) }, queue);
        ids.iter().enumerate().map(one).collect()
    };
    let fake = Fake::default();
    let standard = records(QUEUE, |_| None);
    assert!(failures(options.clone(), &fake, standard, &handler).await.is_empty());
    assert_eq!(std::mem::take(&mut running.lock().unwrap().1), 3);
    let fifo = records("arn:aws:sqs:eu-west-1:1:orders.fifo", |number| Some((number % 2).to_string()));
    assert!(failures(options, &fake, fifo, &handler).await.is_empty());
    assert_eq!(running.lock().unwrap().1, 2);
}

#[tokio::test]
async fn dead_letter_has_all_fields() {
    let mut record = record(&Given { body: Some(r#"{"n": 1E400}"#.into()), ..given("m-0") }, QUEUE);
    let own = (0..5)
        .map(|number| (format!("a{number}"), serde_json::json!({"stringValue": "x", "dataType": "String"})));
    let own = own.chain([
        ("Reason".to_owned(), serde_json::json!({"stringValue": "theirs", "dataType": "String"})),
        ("raw".to_owned(), serde_json::json!({"binaryValue": "AP8=", "dataType": "Binary"})),
        ("zeta".to_owned(), serde_json::json!({"stringValue": "the eleventh", "dataType": "String"})),
    ]);
    let own: serde_json::Map<String, Value> = own.collect();
    record.message_attributes = serde_json::from_value(Value::Object(own)).unwrap();
    let url = Some("https://sqs.eu-west-1.amazonaws.com/1/dead".into());
    let options = Options { dead_letter_queue_url: url, ..Options::default() };
    let fake = Fake::default();
    let handler = async |_, _| {
        let error_message = "cancelled \0\u{fffe}\u{ffff}".to_owned();
        Err(Diagnostic { error_type: "NonRetryable".into(), error_message })
    };
    assert!(failures(options, &fake, vec![record], handler).await.is_empty());
    let calls = fake.calls.lock().unwrap();
    let [dead_letter] = &calls.dead_letters[..] else { panic!("one dead-letter") };
    assert!(!dead_letter.body.contains(['\u{fffe}', '\u{ffff}']), "SQS refuses both");
    assert_eq!(
        serde_json::from_str::<Value>(&dead_letter.body).unwrap(),
        serde_json::json!({
            "reason": "non_retryable_error",
            "detail": "NonRetryable forbids retries",
            "function_arn": "arn:aws:lambda:eu-west-1:123456789012:function:orders",
            "retries_made": 0,
            "initial_timestamp": NOW.as_secs(),
            "dead_lettered_at": NOW.as_secs(),
            "origin_request_id": "m-0",
            "error": {"type": "NonRetryable", "message": "cancelled \0\u{fffe}\u{ffff}"},
            "payload": r#"{"n": 1E400}"#,
        })
    );
    let names: Vec<&str> = dead_letter.attributes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        ["Reason", "TargetFunction", "RetriesMade", "ErrorType", "a0", "a1", "a2", "a3", "a4", "raw"]
    );
    assert_eq!(dead_letter.attributes[9].value, AttributeValue::Bytes(vec![0, 255]));
}

#[tokio::test]
async fn dead_letter_has_no_empty_attribute() {
    let url = Some("https://sqs.eu-west-1.amazonaws.com/1/dead".into());
    let options = Options { dead_letter_queue_url: url, max_receives: Some(1), ..Options::default() };
    let fake = Fake::default();
    let handler = async |_, _| Err(Diagnostic { error_type: String::new(), error_message: String::new() });
    assert!(failures(options, &fake, vec![record(&given("a"), QUEUE)], handler).await.is_empty());
    let calls = fake.calls.lock().unwrap();
    let names: Vec<&str> = calls.dead_letters[0].attributes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["Reason", "TargetFunction", "RetriesMade"], "SQS refuses an empty value");
}

#[tokio::test]
async fn too_large_dead_letter_is_body_with_reason() {
    let url = Some("https://sqs.eu-west-1.amazonaws.com/1/dead".into());
    let options = Options { dead_letter_queue_url: url, ..Options::default() };
    let handler =
        async |_, _| Err(Diagnostic { error_type: "NonRetryable".into(), error_message: String::new() });
    for (size, attributes) in [(1_048_500, 1), (1_048_576, 0)] {
        let body = "x".repeat(size);
        let large = record(&Given { body: Some(body.clone()), ..given("a") }, QUEUE);
        let fake = Fake::default();
        assert!(failures(options.clone(), &fake, vec![large], handler).await.is_empty());
        let dead_letter = fake.calls.lock().unwrap().dead_letters.remove(0);
        assert!(dead_letter.body == body);
        assert_eq!(dead_letter.attributes.len(), attributes);
    }
}
