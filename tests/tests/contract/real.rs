use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_lambda::types::{DestinationConfig, FunctionResponseType, OnFailure};
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
};
use comeback_engine::{BatchEvent, Record, Timestamp};
use comeback_tests::{MiniStack, answering_target, eventually, failing_target, scratch};
use tokio::sync::OnceCell;

use crate::stand::{Difference, Stand};

const LIMIT: Duration = Duration::from_secs(60);

/// A queue of MiniStack, asked over HTTP. Its mapping and function are made for the first delivery.
pub(crate) struct Real<'m> {
    ministack: &'m MiniStack,
    name: &'static str,
    url: String,
    batches: PathBuf,
    answers: PathBuf,
    mapping: OnceCell<String>,
}

impl<'m> Real<'m> {
    pub(crate) async fn new(ministack: &'m MiniStack, name: &'static str, visibility_timeout: u64) -> Self {
        let timeout = visibility_timeout.to_string();
        let queue = ministack.sqs.create_queue().queue_name(name);
        let queue = queue.attributes(QueueAttributeName::VisibilityTimeout, timeout).send().await;
        let url = queue.expect("SQS makes a queue").queue_url.expect("a queue has a URL");
        let directory = scratch(&format!("contract-{name}"));
        let (batches, answers) = (directory.join("batches"), directory.join("answers"));
        Self { ministack, name, url, batches, answers, mapping: OnceCell::new() }
    }

    async fn receive(&self, most: i32) -> Vec<Record> {
        let request = self.ministack.sqs.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(most);
        let request = request.message_system_attribute_names(MessageSystemAttributeName::All);
        let received = request.send().await.expect("SQS answers");
        received.messages.unwrap_or_default().into_iter().map(record).collect()
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

impl Stand for Real<'_> {
    fn differs(&self, difference: Difference) -> bool {
        match difference {
            Difference::HidesOverTwelveHours
            | Difference::HidesWhatIsVisible
            | Difference::RefusesStaleDeletes
            | Difference::DeletesDespiteUnknownIds
            | Difference::LeavesOutOfRecords
            | Difference::CountsThreeInvokes
            | Difference::RewritesPayloads
            | Difference::NamesAllErrorsAlike => true,
        }
    }

    async fn send(&self, body: &str) -> String {
        let request = self.ministack.sqs.send_message().queue_url(&self.url).message_body(body);
        request.send().await.expect("SQS takes the message").message_id.expect("a message has an id")
    }

    async fn fail(&self, payload: &str) {
        failing_target(self.ministack, self.name).await;
        let queue =
            OnFailure::builder().destination(self.attribute(QueueAttributeName::QueueArn).await).build();
        let config = self.ministack.lambda.put_function_event_invoke_config().function_name(self.name);
        let config = config.destination_config(DestinationConfig::builder().on_failure(queue).build());
        config.maximum_retry_attempts(0).send().await.expect("Lambda takes the destination");
        self.ministack.invoke(self.name, payload).await;
    }

    async fn receive(&self) -> Vec<Record> {
        self.receive(10).await
    }

    async fn next(&self) -> Record {
        eventually("a message to be visible", LIMIT, async || self.receive(1).await.pop()).await
    }

    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool> {
        let entry = |(place, (handle, seconds)): (usize, &(&str, u64))| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(place.to_string());
            let seconds = i32::try_from(*seconds).expect("less than a lifetime");
            let entry = entry.receipt_handle(*handle).visibility_timeout(seconds).build();
            entry.expect("an entry with an id and a handle is whole")
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
        let visible = self.attribute(QueueAttributeName::ApproximateNumberOfMessages).await;
        let hidden = self.attribute(QueueAttributeName::ApproximateNumberOfMessagesNotVisible).await;
        [visible, hidden].iter().map(|count| count.parse::<usize>().expect("a count")).sum()
    }

    async fn deliver(&self, messages: usize) -> Vec<Record> {
        let uuid = self.mapping.get_or_init(|| self.map()).await;
        let batch = eventually("the function to have its batch", LIMIT, async || {
            let batches = fs::read_to_string(&self.batches).ok()?;
            Some(batches.strip_suffix('\n')?.to_owned())
        })
        .await;
        // Or what is kept would be delivered again.
        let disable = self.ministack.lambda.update_event_source_mapping().uuid(uuid).enabled(false);
        disable.send().await.expect("Lambda changes the mapping");
        let batch = BatchEvent::read(&batch).expect("one batch, which is an SQS event");
        assert_eq!((batch.records.len(), batch.incomplete), (messages, Vec::new()));
        batch.records
    }

    async fn answer(&self, _: &[Record], batch_item_failures: &[&str]) {
        let uuid = self.mapping.get().expect("BUG: a batch was delivered");
        let (pipe, answer) = (self.answers.clone(), serde_json::to_string(batch_item_failures));
        let write = tokio::task::spawn_blocking(move || fs::write(pipe, answer.expect("strings are JSON")));
        let written = tokio::time::timeout(LIMIT, write).await.expect("the function reads its answer");
        written.expect("writing does not panic").expect("a pipe takes a few bytes");
        eventually("the mapping to be done with the batch", LIMIT, async || {
            let mapping = self.ministack.lambda.get_event_source_mapping().uuid(uuid).send().await;
            let result = mapping.expect("Lambda answers").last_processing_result.unwrap_or_default();
            result.starts_with("OK").then_some(())
        })
        .await;
    }
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
    }
}
