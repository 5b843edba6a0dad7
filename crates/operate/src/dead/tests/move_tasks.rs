//! SQS's own redrive, against canned answers in the form of SQS's API reference: neither MiniStack 1.5.33 nor
//! moto 5.2.5 has move tasks.

use std::sync::{Arc, Mutex};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_sqs::config::Credentials;
use aws_smithy_http_client::test_util::infallible_client_fn;
use serde_json::{Value, json};

use super::letters::policy;
use crate::dead::sqs::SqsQueues;
use crate::dead::{DeadLetters, Moved, Progress};
use crate::{Account, Failure, Interrupt, Queue};

const FROM: &str = "arn:aws:sqs:eu-west-1:123456789012:dead";
const TO: &str = "arn:aws:sqs:eu-west-1:123456789012:retry";

type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// Dead-letters of an account that answers `ListMessageMoveTasks` with these tasks, one after another, and allows all
/// else.
async fn with_tasks<const N: usize>(tasks: [Value; N]) -> (DeadLetters, Requests) {
    let requests = Requests::default();
    let (seen, tasks) = (requests.clone(), Mutex::new(tasks.into_iter()));
    let http_client = infallible_client_fn(move |request: http::Request<_>| {
        let target = request.headers()["x-amz-target"].to_str().unwrap();
        let operation = target.trim_start_matches("AmazonSQS.").to_owned();
        let body: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let answer = match operation.as_str() {
            "ListMessageMoveTasks" => {
                let task = tasks.lock().unwrap().next().expect("no more looks are expected");
                json!({"Results": if task.is_null() { Vec::new() } else { vec![task] }})
            }
            "StartMessageMoveTask" => json!({"TaskHandle": "task"}),
            "CancelMessageMoveTask" => json!({"ApproximateNumberOfMessagesMoved": 3}),
            other => panic!("{other} is not expected"),
        };
        seen.lock().unwrap().push((operation, body));
        http::Response::builder().status(200).body(answer.to_string()).unwrap()
    });
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::from_static("eu-west-1"))
        .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
        .http_client(http_client)
        .load()
        .await;
    let account = Account::of(&config);
    let queue = |arn: &str| Queue { url: format!("https://sqs/{arn}"), arn: arn.to_owned() };
    let queues = SqsQueues::new(&account.sqs, "https://sqs/dead", "https://sqs/retry");
    let letters = DeadLetters {
        account,
        dead_letter_queue: queue(FROM),
        retry_queue: queue(TO),
        queues,
        policy: policy(),
    };
    (letters, requests)
}

fn task(status: &str, moved: u64) -> Value {
    json!({
        "TaskHandle": "task", "Status": status, "SourceArn": FROM, "DestinationArn": TO, "StartedTimestamp": 1_700_000_060,
        "ApproximateNumberOfMessagesMoved": moved, "ApproximateNumberOfMessagesToMove": 9,
    })
}

fn operations(requests: &Requests) -> Vec<String> {
    requests.lock().unwrap().iter().map(|(operation, _)| operation.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_started_and_followed_to_its_end() {
    let mut old = task("COMPLETED", 1);
    old["StartedTimestamp"] = 1_700_000_000.into();
    // The new one is listed a moment after it was started.
    let tasks =
        [old.clone(), old, Value::Null, task("RUNNING", 4), task("CANCELLING", 5), task("COMPLETED", 9)];
    let (letters, requests) = with_tasks(tasks).await;
    let (_raise, interrupt) = Interrupt::new();
    let heard = Mutex::new(Vec::new());
    let tell = |progress| heard.lock().unwrap().push(progress);
    let moved = letters.move_all(50, &interrupt, &tell).await;
    assert_eq!(moved, Ok(Moved { letters: 9, was_running: false }));
    assert_eq!(*heard.lock().unwrap(), [4, 5, 9].map(Progress::Done));
    let start = json!({"SourceArn": FROM, "DestinationArn": TO, "MaxNumberOfMessagesPerSecond": 50});
    assert_eq!(requests.lock().unwrap()[1], ("StartMessageMoveTask".into(), start));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_runs_already_is_followed() {
    let (letters, requests) = with_tasks([task("RUNNING", 4), task("COMPLETED", 9)]).await;
    let (_raise, interrupt) = Interrupt::new();
    let moved = letters.move_all(50, &interrupt, &|_| ()).await;
    assert_eq!(moved, Ok(Moved { letters: 9, was_running: true }));
    assert_eq!(operations(&requests), ["ListMessageMoveTasks"; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_task_to_somewhere_else_is_left_alone() {
    let mut elsewhere = task("RUNNING", 4);
    elsewhere["DestinationArn"] = "arn:aws:sqs:eu-west-1:123456789012:other".into();
    let (letters, requests) = with_tasks([elsewhere]).await;
    let (_raise, interrupt) = Interrupt::new();
    let expected = "a move task to arn:aws:sqs:eu-west-1:123456789012:other is running; wait for its end, or cancel it \
        with `aws sqs cancel-message-move-task`";
    let moved = letters.move_all(50, &interrupt, &|_| ()).await;
    assert_eq!(moved, Err(Failure::CouldNot(expected.into())));
    assert_eq!(operations(&requests), ["ListMessageMoveTasks"]);
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_cancels_the_task() {
    let (letters, requests) = with_tasks([Value::Null, task("RUNNING", 2), task("RUNNING", 3)]).await;
    let (raise, interrupt) = Interrupt::new();
    let tell = |_| raise.send(true).unwrap();
    let expected = "the move task is cancelled; about 3 letters were moved, and the others are still in the dead-letter \
        queue";
    let moved = letters.move_all(50, &interrupt, &tell).await;
    assert_eq!(moved, Err(Failure::Interrupted(expected.into())));
    let cancel = ("CancelMessageMoveTask".to_owned(), json!({"TaskHandle": "task"}));
    assert_eq!(requests.lock().unwrap().last(), Some(&cancel));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_never_listed_is_not_waited_for_without_end() {
    let (letters, _) = with_tasks([const { Value::Null }; 61]).await;
    let (_raise, interrupt) = Interrupt::new();
    let moved = letters.move_all(50, &interrupt, &|_| ()).await;
    assert!(matches!(&moved, Err(Failure::Undone(why)) if why.contains("does not list it")), "{moved:?}");
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_cancels_a_task_that_is_not_listed_yet() {
    let (letters, requests) = with_tasks([Value::Null, Value::Null]).await;
    let (raise, interrupt) = Interrupt::new();
    raise.send(true).unwrap();
    let moved = letters.move_all(50, &interrupt, &|_| ()).await;
    assert!(matches!(moved, Err(Failure::Interrupted(_))), "{moved:?}");
    let cancel = ("CancelMessageMoveTask".to_owned(), json!({"TaskHandle": "task"}));
    assert_eq!(requests.lock().unwrap().last(), Some(&cancel));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_left_undone_with_its_reason() {
    let mut failed = task("FAILED", 2);
    failed["FailureReason"] = "AccessDenied".into();
    let (letters, _) = with_tasks([Value::Null, failed]).await;
    let (_raise, interrupt) = Interrupt::new();
    let expected = "SQS's move task is FAILED: AccessDenied; about 2 letters were moved before";
    let moved = letters.move_all(50, &interrupt, &|_| ()).await;
    assert_eq!(moved, Err(Failure::Undone(expected.into())));
}
