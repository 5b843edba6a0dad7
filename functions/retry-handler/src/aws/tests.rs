//! Tests of the real SDK clients with canned HTTP responses, which the local stack cannot produce.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex};

use aws_config::SdkConfig;
use aws_sdk_sqs::config::{
    BehaviorVersion, Credentials, Region, SharedCredentialsProvider, SharedHttpClient,
};
use aws_smithy_http_client::test_util::{NeverClient, infallible_client_fn};
use aws_smithy_types::base64;
use aws_smithy_types::body::SdkBody;
use aws_types::app_name::AppName;
use comeback_delivery::limits::SQS_SEND;
use comeback_engine::{Attribute, BatchEvent, PAUSES_TIMEOUT, SQS_MESSAGE_BYTES, Timestamp};
use serde_json::{Value, json};

use super::*;

mod transport;

const QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/retries";
const DEAD_LETTERS: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead";
const PAUSES: &str = "/comeback/orders/pauses";
const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";
static MESSAGE: LazyLock<Record> = LazyLock::new(|| Record {
    message_id: "m-1".into(),
    receipt_handle: "handle".into(),
    body: "{}".into(),
    receive_count: 2,
    sent: Timestamp::from_secs(1),
    first_receive: Timestamp::from_secs(1),
    moved: None,
    trace_header: None,
    attributes: Vec::new(),
});
/// A `past_deadline` argument for a deadline that never passes.
const IN_TIME: &dyn Fn() -> bool = &|| false;

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) operation: String,
    pub(crate) body: String,
    pub(crate) trace: Option<String>,
    pub(crate) durable_execution: Option<String>,
}

pub(crate) type Requests = Arc<Mutex<Vec<Request>>>;

/// Builds clients that get the same response to every request. Also returns the list that records their requests.
pub(crate) fn answering(status: u16, error: &'static str, body: &Value) -> (AwsClients, Requests) {
    let body = body.clone();
    answering_by(move |_| (status, error, body.clone()))
}

/// Builds clients that get their responses from `answer`, which is called with the name of the API operation. Also
/// returns the list that records their requests.
pub(crate) fn answering_by(
    answer: impl Fn(&str) -> (u16, &'static str, Value) + Send + Sync + 'static,
) -> (AwsClients, Requests) {
    let requests = Requests::default();
    let seen = requests.clone();
    let http_client = infallible_client_fn(move |request: http::Request<SdkBody>| {
        let header = |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
        let operation = header("x-amz-target").or(header("x-amz-invocation-type")).unwrap_or_default();
        let (status, error, body) = answer(&operation);
        record(&request, status);
        seen.lock().unwrap().push(Request {
            path: request.uri().path().into(),
            operation,
            trace: header("x-amzn-trace-id"),
            durable_execution: header("x-amz-durable-execution-name"),
            body: String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned(),
        });
        http::Response::builder()
            .status(status)
            .header("x-amzn-errortype", error)
            .header("x-amzn-requestid", "i-1")
            .header("content-type", "application/json")
            .body(body.to_string())
            .unwrap()
    });
    (AwsClients::new(&signed().into_builder().http_client(http_client).build(), Some(PAUSES)), requests)
}

/// Records a request, in the format of `tests/tools/recorder.py`, so that `make conformance` can check it.
fn record(request: &http::Request<SdkBody>, status: u16) {
    static FILE: LazyLock<File> = LazyLock::new(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/recorded");
        std::fs::create_dir_all(folder).unwrap();
        File::create(format!("{folder}/handler.jsonl")).unwrap()
    });
    let headers: serde_json::Map<_, _> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()))
        .collect();
    let line = json!({
        "method": request.method().as_str(),
        "path": request.uri().path(),
        "query": request.uri().query().unwrap_or_default(),
        "headers": headers,
        "body": base64::encode(request.body().bytes().unwrap_or_default()),
        "status": status,
    });
    // Each line is written with a single call, because tests run in parallel.
    (&*FILE).write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Builds clients that receive a response to every call except `Invoke`.
pub(crate) fn never_invoking() -> (AwsClients, Requests) {
    let (aws, requests) = answering(200, "", &done(0..10));
    (AwsClients { lambda: never().lambda, ..aws }, requests)
}

fn never() -> AwsClients {
    AwsClients::new(&signed().into_builder().http_client(NeverClient::new()).build(), Some(PAUSES))
}

fn signed() -> SdkConfig {
    let credentials = Credentials::new("id", "key", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .app_name(AppName::new("handler").unwrap())
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}

fn account(aws: &AwsClients) -> AwsAccount<'_> {
    aws.account(QUEUE, DEAD_LETTERS, Instant::now() + Duration::from_secs(50))
}

async fn invoked(status: u16, error: &'static str) -> (Result<Option<String>, InvokeFailure>, Vec<Request>) {
    let (aws, requests) = answering(status, error, &json!({"message": "no"}));
    let result = account(&aws).invoke(&MESSAGE, FUNCTION, r#"{"n": 1E400}"#.into()).await;
    let requests = requests.lock().unwrap().clone();
    (result, requests)
}

#[tokio::test(start_paused = true)]
async fn invoke_is_asynchronous_and_exact() {
    let (result, requests) = invoked(202, "").await;
    assert_eq!(result, Ok(Some("i-1".into())));
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let encoded = FUNCTION.replace(':', "%3A").replace('$', "%24");
    assert_eq!(request.path, format!("/2015-03-31/functions/{encoded}/invocations"));
    assert_eq!(request.operation, "Event");
    assert_eq!(request.body, r#"{"n": 1E400}"#);
    assert_eq!(request.durable_execution, None, "Lambda runs nothing on a second start under a name");
}

#[tokio::test(start_paused = true)]
async fn re_invocation_keeps_the_events_trace() {
    let (aws, requests) = answering(202, "", &json!({}));
    let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    let attributes = json!({"ApproximateReceiveCount": "2", "SentTimestamp": "1", "ApproximateFirstReceiveTimestamp": "1", "AWSTraceHeader": header});
    let message = json!({"messageId": "m", "receiptHandle": "h", "body": "7", "attributes": attributes});
    let event = BatchEvent::read(&json!({"Records": [message]}).to_string()).unwrap();
    assert_eq!(account(&aws).invoke(&event.records[0], FUNCTION, "7".into()).await, Ok(Some("i-1".into())));
    assert_eq!(requests.lock().unwrap()[0].trace.as_deref(), Some(header));
    assert_eq!(invoked(202, "").await.1[0].trace, None, "the SDK knows of no trace here");
}

#[tokio::test(start_paused = true)]
async fn other_errors_are_retriable_and_called_once() {
    for (status, error, remedy) in [
        (429, "TooManyRequestsException", None),
        (500, "ServiceException", None),
        (403, "AccessDeniedException", Some("lambda:InvokeFunction")),
        (400, "RecursiveInvocationException", Some("put-function-recursion-config")),
        (502, "KMSAccessDeniedException", Some("KMS key")),
        (502, "KMSDisabledException", Some("KMS key")),
        (403, "ExpiredTokenException", Some("credentials")),
        (403, "UnrecognizedClientException", Some("credentials")),
        (418, "SomethingNewException", None),
    ] {
        let (result, requests) = invoked(status, error).await;
        let Err(InvokeFailure::Later(failure)) = result else { panic!("{status} {error}: {result:?}") };
        assert_eq!(failure.remedy.is_some(), remedy.is_some(), "{status} {error}: {failure:?}");
        assert!(
            failure.remedy.as_deref().unwrap_or_default().contains(remedy.unwrap_or_default()),
            "{failure:?}"
        );
        assert_eq!(requests.len(), 1, "{status} {error}: the queue is the layer that retries");
    }
}

#[tokio::test(start_paused = true)]
async fn final_and_unanswered_errors() {
    use InvokeFailure::{NotFound, Refused, TooLarge, Unanswered};
    // Only the message about a missing function is logged, because Lambda's other messages may quote the payload.
    for (status, error, failure, cause) in [
        (
            404,
            "ResourceNotFoundException",
            NotFound as fn(String) -> InvokeFailure,
            "ResourceNotFoundException: no",
        ),
        (413, "RequestTooLargeException", TooLarge, "RequestTooLargeException (HTTP 413, request i-1)"),
        (413, "", TooLarge, "no code (HTTP 413, request i-1)"),
        (
            400,
            "InvalidRequestContentException",
            Refused,
            "InvalidRequestContentException (HTTP 400, request i-1)",
        ),
        (
            415,
            "UnsupportedMediaTypeException",
            Refused,
            "UnsupportedMediaTypeException (HTTP 415, request i-1)",
        ),
        (200, "", Unanswered, "Invoke answered 200, not 202"),
        (204, "", Unanswered, "Invoke answered 204, not 202"),
        (404, "", Unanswered, "no code (HTTP 404, request i-1)"),
        (429, "", Unanswered, "no code (HTTP 429, request i-1)"),
        (503, "", Unanswered, "no code (HTTP 503, request i-1)"),
        (504, "", Unanswered, "no code (HTTP 504, request i-1)"),
        (
            504,
            "ServiceUnavailableException",
            Unanswered,
            "ServiceUnavailableException (HTTP 504, request i-1)",
        ),
    ] {
        assert_eq!(invoked(status, error).await.0, Err(failure(cause.into())));
    }
}

fn hidden(seconds: u64) -> VisibilityChange<'static> {
    VisibilityChange { record: &MESSAGE, visibility_timeout: Duration::from_secs(seconds) }
}

fn dead_letter(body: &str) -> DeadLetter {
    DeadLetter { body: body.into(), attributes: Vec::new() }
}

fn dead_lettered(dead_letter: &DeadLetter) -> DeadLettered<'_> {
    DeadLettered { record: &MESSAGE, dead_letter }
}

fn done(ids: Range<usize>) -> Value {
    let done = ids.map(|id| json!({"Id": id.to_string(), "MessageId": "m", "MD5OfMessageBody": "x"}));
    json!({"Successful": done.collect::<Vec<_>>()})
}

pub(crate) fn entries(requests: &Requests) -> Vec<Value> {
    let body = |request: &Request| serde_json::from_str::<Value>(&request.body).unwrap();
    requests.lock().unwrap().iter().map(|request| body(request)["Entries"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_entry_has_its_own_failure() {
    let failed =
        json!([{"Id": "2", "Code": "ReceiptHandleIsInvalid", "SenderFault": true, "Message": "old"}]);
    let (aws, _) = answering(200, "", &json!({"Successful": [{"Id": "0"}, {"Id": "1"}], "Failed": failed}));
    let results = account(&aws).change_visibility(&[hidden(1); 3], IN_TIME).await;
    let left_out = "message omitted, because it may quote the event";
    let failure = CallFailure { cause: format!("refused: ReceiptHandleIsInvalid: {left_out}"), remedy: None };
    assert_eq!(results, [Ok(()), Ok(()), Err(failure)]);
}

#[tokio::test(start_paused = true)]
async fn dead_letter_is_sent_with_attributes() {
    let (aws, requests) = answering(200, "", &done(0..1));
    let attributes =
        vec![Attribute { name: "RetriesMade".into(), data_type: "Number".into(), value: "2".into() }];
    let dead_letter = DeadLetter { attributes, ..dead_letter("{}") };
    assert_eq!(account(&aws).send_dead_letters(&[dead_lettered(&dead_letter)], IN_TIME).await, [Ok(())]);
    let attributes = json!({"RetriesMade": {"DataType": "Number", "StringValue": "2"}});
    assert_eq!(
        entries(&requests),
        [json!([{"Id": "0", "MessageBody": "{}", "MessageAttributes": attributes}])]
    );
    assert!(requests.lock().unwrap()[0].body.contains(DEAD_LETTERS));
}

#[tokio::test(start_paused = true)]
async fn copies_keep_the_senders_attributes() {
    let own = |name: &'static str, data_type: &'static str, value: &str| Attribute {
        name: name.into(),
        data_type: data_type.into(),
        value: value.into(),
    };
    let attributes =
        vec![own("Blob", "Binary.gz", "AAEC"), own("Odd", "Binary", "?"), own("ErrorCode", "Number", "200")];
    let expected = json!({
        "Blob": {"DataType": "Binary.gz", "BinaryValue": "AAEC"},
        "Odd": {"DataType": "Binary", "BinaryValue": "Pw=="},
        "ErrorCode": {"DataType": "Number", "StringValue": "200"},
    });
    let (aws, requests) = answering(200, "", &done(0..1));
    let dead_letter = DeadLetter { attributes: attributes.clone(), ..dead_letter("{}") };
    assert_eq!(account(&aws).send_dead_letters(&[dead_lettered(&dead_letter)], IN_TIME).await, [Ok(())]);
    let record = Record { attributes, ..MESSAGE.clone() };
    let copy = Move { record: &record, attribute: "{}".into(), delay: Duration::from_secs(1) };
    assert_eq!(account(&aws).send_again(&[copy], IN_TIME).await, [Ok(())]);
    let [dead_letter, copy] = &entries(&requests)[..] else { panic!("two requests") };
    assert_eq!(dead_letter[0]["MessageAttributes"], expected);
    let mut of_copy = expected;
    of_copy["Comeback"] = json!({"DataType": "String", "StringValue": "{}"});
    assert_eq!(copy[0]["MessageAttributes"], of_copy);
}

/// The engine and `delivery` both count a dead-letter's bytes, and must use the same limit and formula.
#[tokio::test(start_paused = true)]
async fn dead_letter_limit_is_exact() {
    let (aws, requests) = answering(200, "", &done(0..1));
    assert_eq!(SQS_SEND.entry_bytes, SQS_MESSAGE_BYTES);
    let attributes = vec![
        Attribute { name: "Reason".into(), data_type: "String".into(), value: "é".into() },
        Attribute { name: "RetriesMade".into(), data_type: "Number".into(), value: "12".into() },
    ];
    let beside = DeadLetter { attributes: attributes.clone(), ..dead_letter("") }.size();
    let of_body =
        |bytes| DeadLetter { attributes: attributes.clone(), ..dead_letter(&"x".repeat(bytes - beside)) };
    let (largest, over) = (of_body(SQS_MESSAGE_BYTES), of_body(SQS_MESSAGE_BYTES + 1));
    assert_eq!((beside, largest.size()), (6 + 6 + 2 + 11 + 6 + 2, SQS_MESSAGE_BYTES));
    let results =
        account(&aws).send_dead_letters(&[dead_lettered(&largest), dead_lettered(&over)], IN_TIME).await;
    let failure =
        CallFailure { cause: "too large: 1048577 bytes, the limit is 1048576".into(), remedy: None };
    assert_eq!(results, [Ok(()), Err(failure)]);
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn missing_permission_has_a_remedy() {
    let (aws, requests) = answering(403, "AccessDeniedException", &json!({"message": "no"}));
    let failure = |remedy: &'static str| CallFailure {
        cause: "refused: AccessDeniedException: no".into(),
        remedy: Some(remedy.into()),
    };
    let send = "allow sqs:SendMessage on the dead-letter queue, and the use of its KMS key if it has one";
    let sent = account(&aws).send_dead_letters(&[dead_lettered(&dead_letter("{}")); 2], IN_TIME).await;
    assert_eq!(sent, vec![Err(failure(send)); 2]);
    let hide =
        "allow sqs:ChangeMessageVisibility on the retry queue, and the use of its KMS key if it has one";
    let changed = account(&aws).change_visibility(&[hidden(1)], IN_TIME).await;
    assert_eq!(changed, [Err(failure(hide))]);
    assert_eq!(requests.lock().unwrap().len(), 2, "nothing is called again that an operator must fix");
}

#[tokio::test(start_paused = true)]
async fn missing_queue_and_expired_credentials_have_remedies() {
    for (error, sent_remedy, hidden_remedy) in [
        ("QueueDoesNotExist", "correct DEAD_LETTER_QUEUE_URL", "correct RETRY_QUEUE_URL"),
        ("ExpiredTokenException", "credentials are invalid", "credentials are invalid"),
        ("InvalidClientTokenId", "credentials are invalid", "credentials are invalid"),
    ] {
        let (aws, _) = answering(400, error, &json!({"message": "no"}));
        let sent =
            account(&aws).send_dead_letters(&[dead_lettered(&dead_letter("{}"))], IN_TIME).await.remove(0);
        let hidden = account(&aws).change_visibility(&[hidden(1)], IN_TIME).await.remove(0);
        for (answer, remedy) in [(sent, sent_remedy), (hidden, hidden_remedy)] {
            let failure = answer.unwrap_err();
            assert!(
                failure.remedy.as_ref().is_some_and(|said| said.contains(remedy)),
                "{error}: {failure:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn batch_call_gives_up_at_the_ladders_top() {
    let (aws, requests) = answering(500, "InternalError", &json!({"message": "oops"}));
    let started = tokio::time::Instant::now();
    for results in [
        account(&aws).change_visibility(&[hidden(1)], IN_TIME).await,
        account(&aws).send_dead_letters(&[dead_lettered(&dead_letter("{}"))], IN_TIME).await,
    ] {
        let cause = results.into_iter().map(|result| result.unwrap_err().cause).collect::<Vec<_>>();
        let left_out = "message omitted, because it may quote the event";
        assert_eq!(cause, [format!("no retries left: InternalError: {left_out}")]);
    }
    assert_eq!(requests.lock().unwrap().len(), 2 * (SqsBatchCalls::RUNGS + 1));
    assert_eq!(started.elapsed(), 2 * SqsBatchCalls::LONGEST_TOTAL_WAIT);
}

/// Even if SQS does not respond, the calls that hide messages leave time for the invocations that follow.
#[tokio::test(start_paused = true)]
async fn first_hiding_leaves_half_of_the_time() {
    let aws = never();
    let hiding_takes = async |account: &AwsAccount<'_>| {
        let start = Instant::now();
        assert!(account.change_visibility(&[hidden(1)], IN_TIME).await[0].is_err());
        start.elapsed()
    };
    let in_8_s = aws.account(QUEUE, DEAD_LETTERS, Instant::now() + Duration::from_secs(8));
    let first = hiding_takes(&in_8_s).await;
    // A call that is still under way after 4 s may finish.
    assert!((4.0..4.0 + ATTEMPT_TIMEOUT.as_secs_f64()).contains(&first.as_secs_f64()), "{first:?}");
    let later = hiding_takes(&in_8_s).await;
    assert!(later > 4 * ATTEMPT_TIMEOUT, "{later:?}: every retry");
    let without_invokes = aws.account(QUEUE, DEAD_LETTERS, Instant::now());
    assert_eq!(hiding_takes(&without_invokes).await, later);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_retried_past_the_deadline() {
    let (aws, requests) = answering(500, "InternalError", &json!({"message": "oops"}));
    let end = tokio::time::Instant::now() + Duration::from_millis(250);
    let past_deadline = || tokio::time::Instant::now() >= end;
    let results = account(&aws).send_dead_letters(&[dead_lettered(&dead_letter("{}"))], &past_deadline).await;
    // The call is made at once and again after 100 ms, but not a third time after another 300 ms.
    assert_eq!(requests.lock().unwrap().len(), 2);
    let [Err(CallFailure { cause, remedy: None })] = results.as_slice() else { panic!("{results:?}") };
    assert!(cause.starts_with("not sent before the deadline, after InternalError: "), "{cause}");
}

async fn read(
    status: u16,
    error: &'static str,
    body: Value,
) -> (Result<Option<String>, CallFailure>, Vec<Request>) {
    let (aws, requests) = answering(status, error, &body);
    let answer = account(&aws).read_pauses().await;
    let requests = requests.lock().unwrap().clone();
    (answer, requests)
}

#[tokio::test(start_paused = true)]
async fn read_returns_the_parameters_text() {
    let text = r#"{"v":1,"pauses":[]}"#;
    let (answer, requests) = read(200, "", json!({"Parameter": {"Type": "String", "Value": text}})).await;
    assert_eq!(answer, Ok(Some(text.into())));
    assert_eq!(read(400, "ParameterNotFound", json!({})).await.0, Ok(None), "nothing was paused yet");
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.operation, "AmazonSSM.GetParameter");
    assert_eq!(request.body, format!(r#"{{"Name":"{PAUSES}"}}"#));
}

#[tokio::test(start_paused = true)]
async fn failed_read_has_a_remedy_and_no_retry() {
    for (status, error, remedy) in [
        (400, "AccessDeniedException", Some("allow ssm:GetParameter on the parameter that PAUSES names")),
        (400, "ExpiredTokenException", Some("credentials are invalid")),
        (400, "UnrecognizedClientException", Some("credentials are invalid")),
        (400, "ThrottlingException", None),
        (400, "ValidationException", None),
        (500, "InternalServerError", None),
    ] {
        let (answer, requests) = read(status, error, json!({"message": "no"})).await;
        let failure = answer.unwrap_err();
        assert_eq!(failure.cause, format!("{error}: no"));
        assert_eq!(failure.remedy.is_some(), remedy.is_some(), "{error}: {failure:?}");
        assert!(
            failure.remedy.as_deref().unwrap_or_default().contains(remedy.unwrap_or_default()),
            "{failure:?}"
        );
        assert_eq!(requests.len(), 1, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn empty_or_late_answer_is_a_failure() {
    let nothing = read(200, "", json!({"Parameter": {"Type": "String"}})).await.0.unwrap_err();
    assert_eq!(nothing.cause, "the parameter that PAUSES names has no value");
    let start = Instant::now();
    let late = account(&never()).read_pauses().await.unwrap_err();
    assert_eq!((start.elapsed(), late.remedy), (PAUSES_TIMEOUT, None), "{}", late.cause);
}

#[tokio::test(start_paused = true)]
async fn without_parameter_nothing_is_read() {
    let (aws, requests) = answering(400, "AccessDeniedException", &json!({}));
    let aws = AwsClients { pauses: None, ..aws };
    assert_eq!(account(&aws).read_pauses().await, Ok(None));
    assert!(requests.lock().unwrap().is_empty());
}
