//! The real SDK clients against canned HTTP answers: what the local stack cannot be made to say.

use std::sync::{Arc, Mutex};

use aws_config::SdkConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_smithy_http_client::test_util::infallible_client_fn;
use serde_json::{Value, json};

use super::*;

const QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/retries";
const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";

/// A request as the service would see it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) operation: String,
    pub(crate) body: String,
}

pub(crate) type Requests = Arc<Mutex<Vec<Request>>>;

/// Clients whose every request gets this answer.
pub(crate) fn answering(status: u16, error: &'static str, body: &Value) -> (Aws, Requests) {
    let requests = Requests::default();
    let seen = requests.clone();
    let body = body.to_string();
    let http_client = infallible_client_fn(move |request: http::Request<_>| {
        let header = |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
        seen.lock().unwrap().push(Request {
            path: request.uri().path().into(),
            operation: header("x-amz-target").or(header("x-amz-invocation-type")).unwrap_or_default(),
            body: String::from_utf8(request.body().bytes().unwrap_or_default().to_vec()).unwrap(),
        });
        http::Response::builder()
            .status(status)
            .header("x-amzn-errortype", error)
            .header("content-type", "application/json")
            .body(body.clone())
            .unwrap()
    });
    let shared = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new(
            "id", "key", None, None, "test",
        )))
        .http_client(http_client)
        .build();
    (Aws::new(&shared), requests)
}

async fn invoked(status: u16, error: &'static str) -> (Result<(), InvokeFailure>, Vec<Request>) {
    let (aws, requests) = answering(status, error, &json!({"message": "no"}));
    let result = aws.functions().invoke(FUNCTION, r#"{"n": 1E400}"#.into()).await;
    let requests = requests.lock().unwrap().clone();
    (result, requests)
}

#[tokio::test(start_paused = true)]
async fn an_invoke_is_asynchronous_and_names_exactly_the_function() {
    let (result, requests) = invoked(202, "").await;
    assert_eq!(result, Ok(()));
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let encoded = FUNCTION.replace(':', "%3A").replace('$', "%24");
    assert_eq!(request.path, format!("/2015-03-31/functions/{encoded}/invocations"));
    assert_eq!(request.operation, "Event");
    assert_eq!(request.body, r#"{"n": 1E400}"#);
}

#[tokio::test(start_paused = true)]
async fn what_can_never_work_is_final() {
    let not_found = invoked(404, "ResourceNotFoundException").await.0;
    assert_eq!(not_found, Err(InvokeFailure::NotFound("ResourceNotFoundException: no".into())));
    // These two say nothing of the message, in which Lambda quotes the payload.
    let too_large = invoked(413, "RequestTooLargeException").await.0;
    assert_eq!(too_large, Err(InvokeFailure::TooLarge("RequestTooLargeException (request unknown)".into())));
    let refused = invoked(400, "InvalidRequestContentException").await.0;
    let expected = "InvalidRequestContentException (request unknown)";
    assert_eq!(refused, Err(InvokeFailure::Refused(expected.into())));
}

#[tokio::test(start_paused = true)]
async fn everything_else_may_work_later_and_is_called_once() {
    for (status, error, remedy) in [
        (200, "", None),
        (429, "TooManyRequestsException", None),
        (500, "ServiceException", None),
        (503, "", None),
        (404, "", None),
        (403, "AccessDeniedException", Some("lambda:InvokeFunction")),
        (400, "RecursiveInvocationException", Some("put-function-recursion-config")),
        (502, "KMSAccessDeniedException", Some("KMS key")),
        (502, "KMSDisabledException", Some("KMS key")),
        (418, "SomethingNewException", None),
    ] {
        let (result, requests) = invoked(status, error).await;
        let Err(InvokeFailure::Later(failure)) = result else { panic!("{status} {error}: {result:?}") };
        assert_eq!(failure.remedy.is_some(), remedy.is_some(), "{status} {error}: {failure:?}");
        assert!(failure.remedy.unwrap_or_default().contains(remedy.unwrap_or_default()), "{failure:?}");
        assert_eq!(requests.len(), 1, "{status} {error}: the queue is the layer that retries");
    }
}

fn hidden(seconds: u64) -> VisibilityChange<'static> {
    VisibilityChange { receipt_handle: "handle", visibility_timeout: Duration::from_secs(seconds) }
}

#[tokio::test(start_paused = true)]
async fn ten_deferrals_are_one_call() {
    let done: Vec<Value> = (0..10).map(|id| json!({"Id": id.to_string()})).collect();
    let (aws, requests) = answering(200, "", &json!({"Successful": done, "Failed": []}));
    let results = aws.queue(QUEUE).change_visibility(&[hidden(43_170); 10]).await;
    assert_eq!(results, vec![Ok(()); 10]);
    let requests = requests.lock().unwrap();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.operation, "AmazonSQS.ChangeMessageVisibilityBatch");
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body["QueueUrl"], QUEUE);
    assert_eq!(
        body["Entries"][9],
        json!({"Id": "9", "ReceiptHandle": "handle", "VisibilityTimeout": 43_170})
    );
}

#[tokio::test(start_paused = true)]
async fn a_partial_answer_is_told_entry_by_entry_and_silence_is_failure() {
    let failed =
        json!([{"Id": "2", "Code": "ReceiptHandleIsInvalid", "SenderFault": true, "Message": "old"}]);
    let (aws, _) = answering(200, "", &json!({"Successful": [{"Id": "1"}], "Failed": failed}));
    let results = aws.queue(QUEUE).change_visibility(&[hidden(1); 3]).await;
    let causes: Vec<_> =
        results.into_iter().map(|result| result.err().map(|failure| failure.cause)).collect();
    assert_eq!(
        causes,
        [Some("SQS gave no answer for this entry".into()), None, Some("ReceiptHandleIsInvalid: old".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_goes_out_with_its_attributes() {
    let answer = json!({"Successful": [{"Id": "0", "MessageId": "m", "MD5OfMessageBody": "x"}]});
    let (aws, requests) = answering(200, "", &answer);
    let letter = DeadLetter {
        body: "{}".into(),
        attributes: vec![Attribute { name: "RetriesMade", data_type: "Number", value: "2".into() }],
    };
    assert_eq!(aws.queue(QUEUE).send(&[letter]).await, [Ok(())]);
    let body: Value = serde_json::from_str(&requests.lock().unwrap()[0].body).unwrap();
    let attributes = json!({"RetriesMade": {"DataType": "Number", "StringValue": "2"}});
    assert_eq!(body["Entries"], json!([{"Id": "0", "MessageBody": "{}", "MessageAttributes": attributes}]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_whole_fails_each_entry_with_its_remedy() {
    let (aws, _) = answering(403, "AccessDeniedException", &json!({"message": "no"}));
    let letters = vec![DeadLetter { body: "{}".into(), attributes: Vec::new() }; 2];
    let failure = CallFailure {
        cause: "AccessDeniedException: no".into(),
        remedy: Some("allow sqs:SendMessage on the dead-letter queue"),
    };
    assert_eq!(aws.queue(QUEUE).send(&letters).await, vec![Err(failure); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_call_climbs_the_ladder_and_gives_up_at_its_top() {
    let (aws, requests) = answering(500, "InternalError", &json!({"message": "oops"}));
    let started = tokio::time::Instant::now();
    let results = aws.queue(QUEUE).change_visibility(&[hidden(1)]).await;
    assert!(results[0].is_err());
    assert_eq!(requests.lock().unwrap().len(), SqsBatchCalls::RUNGS + 1);
    assert_eq!(started.elapsed().as_millis(), SqsBatchCalls::LONGEST_TOTAL_WAIT.as_millis());
}

#[tokio::test(start_paused = true)]
async fn only_what_failed_is_sent_again_and_not_what_is_the_senders_fault() {
    let failed = json!([
        {"Id": "1", "Code": "InvalidMessageContents", "SenderFault": true},
        {"Id": "2", "Code": "InternalError", "SenderFault": false},
    ]);
    let (aws, requests) = answering(200, "", &json!({"Successful": [{"Id": "0"}], "Failed": failed}));
    let letters = vec![DeadLetter { body: "{}".into(), attributes: Vec::new() }; 3];
    let results = aws.queue(QUEUE).send(&letters).await;
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
    let sent: Vec<Vec<Value>> = requests
        .lock()
        .unwrap()
        .iter()
        .map(|request| serde_json::from_str::<Value>(&request.body).unwrap()["Entries"].clone())
        .map(|entries| entries.as_array().unwrap().iter().map(|entry| entry["Id"].clone()).collect())
        .collect();
    assert_eq!(sent[0], ["0", "1", "2"]);
    assert_eq!(sent[1..], vec![vec![json!("2")]; SqsBatchCalls::RUNGS]);
}
