use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use aws_sdk_lambda::types::{DestinationConfig, FunctionResponseType, OnFailure};
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, Message, MessageAttributeValue, MessageSystemAttributeName,
    MessageSystemAttributeNameForSends, MessageSystemAttributeValue, QueueAttributeName,
    SendMessageBatchRequestEntry,
};
use comeback_engine::{BatchEvent, Record, Timestamp};
use comeback_tests::{MiniStack, PATIENCE, answering_target, eventually, failing_target, scratch};
use comeback_timelapse::Depth;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::QueuedAttributes;
use super::stand::{Delayed, Difference, Queue, Stand, all};

/// A queue in MiniStack. Its function and its event source mapping are created when they are first needed.
pub(crate) struct Real<'m> {
    ministack: &'m MiniStack,
    name: &'static str,
    url: String,
    batches: PathBuf,
    answers: PathBuf,
    mapping: OnceCell<String>,
    /// Attributes of the messages received or delivered so far, by receipt handle.
    attributes: RefCell<HashMap<String, QueuedAttributes>>,
}

impl<'m> Real<'m> {
    pub(crate) async fn new(ministack: &'m MiniStack, name: &'static str, visibility_timeout: u64) -> Self {
        let timeout = visibility_timeout.to_string();
        let queue = ministack.sqs.create_queue().queue_name(name);
        let queue = queue.attributes(QueueAttributeName::VisibilityTimeout, timeout).send().await;
        let url = queue.expect("SQS makes a queue").queue_url.expect("a queue has a URL");
        let directory = scratch(&format!("contract-{name}"));
        let (batches, answers) = (directory.join("batches"), directory.join("answers"));
        let (mapping, attributes) = (OnceCell::new(), RefCell::default());
        Self { ministack, name, url, batches, answers, mapping, attributes }
    }

    async fn receive(&self, most: i32) -> Vec<Record> {
        let request = self.ministack.sqs.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(most);
        let request = request.message_system_attribute_names(MessageSystemAttributeName::All);
        let request = request.message_attribute_names("All");
        let received = request.send().await.expect("SQS answers");
        let messages = received.messages.unwrap_or_default();
        for message in &messages {
            let handle = message.receipt_handle.clone().expect("a received message has a handle");
            self.attributes.borrow_mut().insert(handle, attributes_of(message));
        }
        messages.into_iter().map(record).collect()
    }

    async fn attribute(&self, name: QueueAttributeName) -> String {
        let request = self.ministack.sqs.get_queue_attributes().queue_url(&self.url);
        let answer = request.attribute_names(name.clone()).send().await.expect("SQS answers");
        answer.attributes.and_then(|mut all| all.remove(&name)).unwrap_or_else(|| panic!("no {name}"))
    }

    async fn map(&self) -> String {
        let shell = self.ministack.shell().with("PIPE", &self.answers);
        shell.run("mkfifo \"$PIPE\"").unwrap_or_else(|error| panic!("{error}"));
        answering_target(self.ministack, self.name, &self.batches, &self.answers).await;
        let mapping = self.ministack.lambda.create_event_source_mapping();
        let mapping = mapping.event_source_arn(self.attribute(QueueAttributeName::QueueArn).await);
        let mapping = mapping.function_name(self.name).batch_size(10);
        let mapping = mapping.function_response_types(FunctionResponseType::ReportBatchItemFailures);
        let mapping = mapping.send().await.expect("Lambda maps the queue");
        mapping.uuid.expect("a mapping has a UUID")
    }
}

impl Queue for Real<'_> {
    fn differs(&self, _: Difference) -> bool {
        true
    }

    async fn send(&self, body: &str) -> String {
        let request = self.ministack.sqs.send_message().queue_url(&self.url).message_body(body);
        request.send().await.expect("SQS takes the message").message_id.expect("a message has an id")
    }

    async fn receive(&self) -> Vec<Record> {
        self.receive(10).await
    }

    async fn next(&self) -> Record {
        eventually("a message to be visible", async || self.receive(1).await.pop()).await
    }

    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool> {
        let entry = |(place, (handle, timeout)): (usize, &(&str, u64))| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(place.to_string());
            let entry = entry.receipt_handle(*handle).visibility_timeout(seconds(*timeout)).build();
            entry.expect("an entry with an id and a handle is complete")
        };
        let request = self.ministack.sqs.change_message_visibility_batch().queue_url(&self.url);
        let request = request.set_entries(Some(entries.iter().enumerate().map(entry).collect()));
        let answer = request.send().await.expect("SQS answers");
        let worked = |place: usize| answer.successful.iter().any(|entry| entry.id == place.to_string());
        let failed = |place: usize| answer.failed.iter().any(|entry| entry.id == place.to_string());
        let answers = (0..entries.len()).map(|place| {
            assert_ne!(worked(place), failed(place), "each entry has one answer: {answer:?}");
            worked(place)
        });
        answers.collect()
    }

    async fn delete(&self, handle: &str) -> bool {
        let request = self.ministack.sqs.delete_message().queue_url(&self.url).receipt_handle(handle);
        match request.send().await {
            Ok(_) => true,
            Err(error) => {
                let error = error.into_service_error();
                assert!(error.is_receipt_handle_is_invalid(), "{error:?}");
                false
            }
        }
    }

    async fn held(&self) -> usize {
        all(self.depth().await)
    }
}

impl Stand for Real<'_> {
    async fn send_delayed(&self, message: &Delayed) -> Option<String> {
        let request = self.ministack.sqs.send_message().queue_url(&self.url).message_body(message.body);
        let request = request.set_message_attributes(Some(message_attributes(message)));
        let request = request.set_message_system_attributes(Some(system_attributes(message)));
        match request.delay_seconds(seconds(message.delay)).send().await {
            Ok(sent) => Some(sent.message_id.expect("a message has an id")),
            Err(error) => {
                let error = error.into_service_error();
                assert_eq!(error.meta().code(), Some("InvalidParameterValue"), "{error:?}");
                None
            }
        }
    }

    async fn send_batch(&self, messages: &[Delayed]) -> Vec<Option<String>> {
        let entry = |(place, message): (usize, &Delayed)| {
            let entry = SendMessageBatchRequestEntry::builder().id(place.to_string());
            let entry = entry.message_body(message.body).delay_seconds(seconds(message.delay));
            let entry = entry.set_message_attributes(Some(message_attributes(message)));
            let entry = entry.set_message_system_attributes(Some(system_attributes(message)));
            entry.build().expect("an entry with an id and a body is complete")
        };
        let request = self.ministack.sqs.send_message_batch().queue_url(&self.url);
        let request = request.set_entries(Some(messages.iter().enumerate().map(entry).collect()));
        let answer = request.send().await.expect("SQS answers");
        assert_eq!(answer.successful.len() + answer.failed.len(), messages.len(), "{answer:?}");
        let sent = |place: usize| answer.successful.iter().find(|entry| entry.id == place.to_string());
        (0..messages.len()).map(|place| sent(place).map(|entry| entry.message_id.clone())).collect()
    }

    async fn fail(&self, payload: &str) {
        failing_target(self.ministack, self.name).await;
        let queue_arn = self.attribute(QueueAttributeName::QueueArn).await;
        let policy = json!({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queue_arn},
        ]});
        let put = self.ministack.iam.put_role_policy().role_name(self.name).policy_name("send");
        put.policy_document(policy.to_string()).send().await.expect("IAM takes the policy");
        let queue = OnFailure::builder().destination(queue_arn).build();
        let config = self.ministack.lambda.put_function_event_invoke_config().function_name(self.name);
        let config = config.destination_config(DestinationConfig::builder().on_failure(queue).build());
        config.maximum_retry_attempts(0).send().await.expect("Lambda takes the destination");
        self.ministack.invoke(self.name, payload).await;
    }

    fn attributes(&self, receipt_handle: &str) -> QueuedAttributes {
        self.attributes.borrow().get(receipt_handle).cloned().unwrap_or_default()
    }

    async fn depth(&self) -> Depth {
        let count = async |name| self.attribute(name).await.parse().expect("a count");
        Depth {
            visible: count(QueueAttributeName::ApproximateNumberOfMessages).await,
            in_flight: count(QueueAttributeName::ApproximateNumberOfMessagesNotVisible).await,
            delayed: count(QueueAttributeName::ApproximateNumberOfMessagesDelayed).await,
        }
    }

    async fn deliver(&self, messages: usize) -> Vec<Record> {
        let uuid = self.mapping.get_or_init(|| self.map()).await;
        let batch = eventually("the function to have its batch", async || {
            let batches = fs::read_to_string(&self.batches).ok()?;
            Some(batches.strip_suffix('\n')?.to_owned())
        })
        .await;
        // Without this, the mapping would deliver kept messages again.
        let disable = self.ministack.lambda.update_event_source_mapping().uuid(uuid).enabled(false);
        disable.send().await.expect("Lambda changes the mapping");
        self.attributes.borrow_mut().extend(delivered_attributes(&batch));
        let batch = BatchEvent::read(&batch).expect("one batch, which is an SQS event");
        assert_eq!((batch.records.len(), batch.incomplete), (messages, Vec::new()));
        batch.records
    }

    async fn answer(&self, _: &[Record], batch_item_failures: &[&str]) {
        let uuid = self.mapping.get().expect("BUG: a batch was delivered");
        let (pipe, answer) = (self.answers.clone(), serde_json::to_string(batch_item_failures));
        let write = tokio::task::spawn_blocking(move || fs::write(pipe, answer.expect("strings are JSON")));
        let written = tokio::time::timeout(PATIENCE, write).await.expect("the function reads its answer");
        written.expect("writing does not panic").expect("a pipe takes a few bytes");
        eventually("the mapping to be done with the batch", async || {
            let mapping = self.ministack.lambda.get_event_source_mapping().uuid(uuid).send().await;
            let result = mapping.expect("Lambda answers").last_processing_result.unwrap_or_default();
            result.starts_with("OK").then_some(())
        })
        .await;
    }
}

fn seconds(seconds: u64) -> i32 {
    i32::try_from(seconds).expect("less than a lifetime")
}

fn message_attributes(message: &Delayed) -> HashMap<String, MessageAttributeValue> {
    let value = |text: &str| MessageAttributeValue::builder().data_type("String").string_value(text).build();
    let comeback = message.attributes.comeback.as_deref().map(value);
    comeback.map(|value| ("Comeback".into(), value.expect("it has a type"))).into_iter().collect()
}

fn system_attributes(
    message: &Delayed,
) -> HashMap<MessageSystemAttributeNameForSends, MessageSystemAttributeValue> {
    let value =
        |text: &str| MessageSystemAttributeValue::builder().data_type("String").string_value(text).build();
    let trace = message.attributes.trace_header.as_deref().map(value);
    let name = MessageSystemAttributeNameForSends::AwsTraceHeader;
    trace.map(|value| (name, value.expect("it has a type"))).into_iter().collect()
}

fn attributes_of(message: &Message) -> QueuedAttributes {
    let comeback = message.message_attributes.as_ref().and_then(|all| all.get("Comeback"));
    let trace_header = &MessageSystemAttributeName::AwsTraceHeader;
    let trace_header = message.attributes.as_ref().and_then(|all| all.get(trace_header));
    QueuedAttributes {
        comeback: comeback.and_then(|value| value.string_value.as_deref()).map(Box::from),
        trace_header: trace_header.map(|text| text.as_str().into()),
    }
}

/// Attributes of the messages in a batch event, by receipt handle.
fn delivered_attributes(event: &str) -> HashMap<String, QueuedAttributes> {
    let event: Value = serde_json::from_str(event).expect("an event is JSON");
    let attributes = |record: &Value| {
        let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).map(Box::from);
        let handle = record["receiptHandle"].as_str().expect("a record has a handle").to_owned();
        let comeback = text("/messageAttributes/Comeback/stringValue");
        (handle, QueuedAttributes { comeback, trace_header: text("/attributes/AWSTraceHeader") })
    };
    event["Records"].as_array().expect("an event has records").iter().map(attributes).collect()
}

fn record(message: Message) -> Record {
    let attributes = message.attributes.expect("all attributes were asked for");
    let number = |name: MessageSystemAttributeName| -> u64 {
        attributes[&name].parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    Record {
        message_id: message.message_id.expect("a message has an id"),
        receipt_handle: message.receipt_handle.expect("a received message has a handle"),
        body: message.body.expect("a message has a body"),
        receive_count: u32::try_from(number(MessageSystemAttributeName::ApproximateReceiveCount))
            .expect("a count of a few"),
        sent: Timestamp::from_millis(number(MessageSystemAttributeName::SentTimestamp)),
        first_receive: Timestamp::from_millis(number(
            MessageSystemAttributeName::ApproximateFirstReceiveTimestamp,
        )),
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    }
}
