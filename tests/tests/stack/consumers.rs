//! Tests the consumers in docs/consumer.md: functions in Python, Node.js and Rust that read an SQS queue directly.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use aws_sdk_lambda::types::FunctionResponseType;
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_tests::{Consumer, MiniStack, consumer_target, eventually, log_lines, scratch};
use serde_json::{Value, json};

use crate::retries::held;
use crate::world::World;

const MESSAGES: u64 = 200;
/// The wait in a consumer's `RetryAfter`, in seconds; the actual wait is up to a tenth longer.
const ASKS: u64 = 5;
/// Seconds by which a retry may seem early, because clocks differ and SQS counts whole seconds.
const TOLERANCE: f64 = 0.5;

pub(crate) async fn python_messages_end_delivered_or_dead_lettered(world: &World) {
    messages_end_delivered_or_dead_lettered(world, Consumer::Python).await;
}

pub(crate) async fn node_messages_end_delivered_or_dead_lettered(world: &World) {
    messages_end_delivered_or_dead_lettered(world, Consumer::Node).await;
}

pub(crate) async fn rust_messages_end_delivered_or_dead_lettered(world: &World) {
    messages_end_delivered_or_dead_lettered(world, Consumer::Rust).await;
}

/// Asserts that each of [`MESSAGES`] messages is delivered or dead-lettered.
async fn messages_end_delivered_or_dead_lettered(world: &World, language: Consumer) {
    let ministack = world.ministack().await;
    let name = format!("consumer-{}", language.name());
    let queues = Queues::create(ministack, &name, 120).await;
    let options = json!({
        "base_backoff": 1, "max_backoff": 2, "max_receives": 4, "dead_letter_queue_url": &queues.dead_letters,
    });
    let orders = Orders::of(ministack, &name, language, &queues, &options).await;
    for order in 0..MESSAGES {
        let (fails, error, message) = match order {
            17 => (99, "OrderRefused", "never"),
            18 => (99, "NonRetryable", "cancelled"),
            _ if order % 10 == 3 => (1, "RetryAfter", "5; the shop is closed"),
            _ if order % 10 == 6 => (2, "OrderRefused", "not yet"),
            _ => (0, "OrderRefused", ""),
        };
        queues.send(ministack, order, fails, error, message).await;
    }
    eventually("the queue to be empty", async || (held(ministack, &queues.url).await == 0).then_some(()))
        .await;

    let seen = orders.seen();
    let taken: BTreeSet<u64> = seen.iter().filter(|seen| seen.taken).map(|seen| seen.order).collect();
    let all: BTreeSet<u64> = (0..MESSAGES).filter(|order| ![17, 18].contains(order)).collect();
    assert_eq!(taken, all, "delivered");
    let mut runs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for run in &seen {
        runs.entry(run.order).or_default().push(run.at);
    }
    for (order, runs) in &runs {
        let expected = match order {
            17 => 4,
            18 => 1,
            _ if order % 10 == 3 => 2,
            _ if order % 10 == 6 => 3,
            _ => 1,
        };
        assert_eq!(runs.len(), expected, "order {order} ran at {runs:?}");
        if order % 10 == 3 {
            assert!(runs[1] - runs[0] > ASKS as f64 - TOLERANCE, "order {order} came back early: {runs:?}");
        }
    }
    assert_eq!(
        queues.dead_lettered(ministack).await,
        [(17, "max_retries".into()), (18, "non_retryable_error".into())]
    );
    orders.assert_none_ran_before_its_wait(ministack).await;
}

/// An order that waits for the maximum, 43,170 seconds, must not come back before one that requests 20 seconds.
///
/// Without hiding, the queue's own timeout of 15 seconds would end first. MiniStack accepts longer timeouts than AWS
/// does, so the clients' own tests check the maximum.
pub(crate) async fn longest_wait_outlasts_the_queues_timeout(world: &World) {
    const LONGEST: u64 = 43_170;
    const OWN_TIMEOUT: u64 = 15;
    let ministack = world.ministack().await;
    let queues = Queues::create(ministack, "longest-wait", OWN_TIMEOUT).await;
    let options = json!({"base_backoff": LONGEST, "max_backoff": LONGEST, "jitter": "none"});
    let orders = Orders::of(ministack, "longest-wait", Consumer::Python, &queues, &options).await;
    let taken = async |order| {
        let is_taken = || orders.seen().iter().any(|seen| seen.order == order && seen.taken).then_some(());
        eventually("the order to be taken", async || is_taken()).await;
    };
    // A cold start may take longer than the queue's own visibility timeout, so the first order is one that succeeds.
    queues.send(ministack, 0, 0, "OrderRefused", "").await;
    taken(0).await;
    queues.send(ministack, 1, 1, "OrderRefused", "closed until tomorrow").await;
    queues.send(ministack, 2, 1, "RetryAfter", "20; closed for lunch").await;
    taken(2).await;
    assert_eq!(orders.seen().iter().filter(|seen| seen.order == 1).count(), 1, "it is hidden");
}

struct Queues {
    url: String,
    arn: String,
    dead_letters: String,
}

impl Queues {
    async fn create(ministack: &MiniStack, name: &str, visibility_timeout: u64) -> Self {
        let create = async |name: &str| {
            let create = ministack.sqs.create_queue().queue_name(name);
            let create =
                create.attributes(QueueAttributeName::VisibilityTimeout, visibility_timeout.to_string());
            create.send().await.expect("SQS creates the queue").queue_url.expect("it has a URL")
        };
        let url = create(name).await;
        let dead_letters = create(&format!("{name}-dead")).await;
        let attributes = ministack.sqs.get_queue_attributes().queue_url(&url);
        let attributes = attributes.attribute_names(QueueAttributeName::QueueArn).send().await;
        let attributes = attributes.expect("SQS answers").attributes.unwrap_or_default();
        let arn = attributes[&QueueAttributeName::QueueArn].clone();
        Self { url, arn, dead_letters }
    }

    async fn send(&self, ministack: &MiniStack, order: u64, fails: u64, error: &str, message: &str) {
        let body = json!({"order": order, "fails": fails, "error": error, "message": message}).to_string();
        ministack
            .sqs
            .send_message()
            .queue_url(&self.url)
            .message_body(body)
            .send()
            .await
            .expect("SQS takes it");
    }

    async fn dead_lettered(&self, ministack: &MiniStack) -> Vec<(u64, String)> {
        let receive =
            ministack.sqs.receive_message().queue_url(&self.dead_letters).max_number_of_messages(10);
        let received = receive.send().await.expect("SQS answers");
        let mut dead_letters: Vec<(u64, String)> = received
            .messages()
            .iter()
            .map(|message| {
                let dead_letter: Value =
                    serde_json::from_str(message.body().unwrap_or_default()).expect("JSON");
                let payload = dead_letter["payload"].as_str().expect("the body, as text");
                let order: Value = serde_json::from_str(payload).expect("an order");
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (order["order"].as_u64().expect("a number"), text(&dead_letter["reason"]))
            })
            .collect();
        dead_letters.sort();
        dead_letters
    }
}

struct Seen {
    order: u64,
    at: f64,
    taken: bool,
}

struct Orders {
    name: String,
    ledger: PathBuf,
}

impl Orders {
    async fn of(
        ministack: &MiniStack,
        name: &str,
        language: Consumer,
        queues: &Queues,
        options: &Value,
    ) -> Self {
        let ledger = scratch(name).join("ledger");
        fs::write(&ledger, "").expect("a file can be written");
        let permissions = json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Resource": &queues.arn,
             "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"]},
            {"Effect": "Allow", "Resource": format!("{}-dead", queues.arn), "Action": "sqs:SendMessage"},
        ]});
        let variables = [("OPTIONS", options.to_string()), ("LEDGER", ledger.display().to_string())];
        consumer_target(ministack, name, language, &variables, &permissions.to_string()).await;
        let mapping = ministack.lambda.create_event_source_mapping().function_name(name);
        let mapping = mapping.event_source_arn(&queues.arn).batch_size(10);
        let mapping = mapping.function_response_types(FunctionResponseType::ReportBatchItemFailures);
        mapping.send().await.expect("Lambda creates the mapping");
        Self { name: name.into(), ledger }
    }

    fn seen(&self) -> Vec<Seen> {
        let ledger = fs::read_to_string(&self.ledger).expect("the ledger can be read");
        // The consumer may still be writing the last line.
        let lines = ledger.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let seen = lines.map(|line| {
            let seen: Value = serde_json::from_str(line).expect("a line of the ledger is JSON");
            let order = seen["order"].as_u64().expect("a number");
            Seen { order, at: seen["at"].as_f64().expect("a time"), taken: seen["taken"] == true }
        });
        seen.collect()
    }

    /// Asserts that every failure was logged, and that no message was received again within a second of its failure.
    async fn assert_none_ran_before_its_wait(&self, ministack: &MiniStack) {
        let lines = log_lines(ministack, &format!("/aws/lambda/{}", self.name)).await;
        let deferred = lines.iter().filter(|line| line["action"] == "defer").count();
        // Of the orders, 20 request a wait, 20 fail twice, and one fails three times before its last receive.
        assert_eq!(deferred, 20 + 2 * 20 + 3, "a line for each failure");
        let errors: Vec<&Value> = lines.iter().filter(|line| line["level"] == "ERROR").collect();
        assert!(errors.is_empty(), "{errors:?}");
        let mut seen = self.seen();
        seen.sort_by(|one, other| one.at.total_cmp(&other.at));
        for (position, run) in seen.iter().enumerate() {
            let Some(next) = seen[position + 1..].iter().find(|next| next.order == run.order) else {
                continue;
            };
            // Full jitter draws a whole number of seconds, at least one.
            assert!(
                next.at - run.at > 1.0 - TOLERANCE,
                "order {} came back after {} s",
                run.order,
                next.at - run.at
            );
        }
    }
}
