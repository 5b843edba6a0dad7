use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;

use super::{Queue, by_entry, once};
use crate::limits::{Limits, SQS_RECEIPTS};
use crate::{Answer, Operation, ServiceError, TokioSleep, classify};

/// Deletes received messages of one queue, by their receipt handles.
///
/// ```no_run
/// # async fn example(client: aws_sdk_sqs::Client, url: &str, handles: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
/// use comeback_delivery::sqs::Deleter;
///
/// Deleter::new(client, url).send(handles).await?;
/// # Ok(())
/// # }
/// ```
pub type Deleter = crate::Sender<DeleteMessages, TokioSleep>;

impl Deleter {
    /// A deleter for the queue of this URL. The client's own retries are switched off.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        let queue = Queue { client, url: queue_url.into() };
        Self::over(DeleteMessages { queue }, tokio::time::sleep)
    }
}

/// `DeleteMessageBatch` on one queue.
#[derive(Debug)]
pub struct DeleteMessages {
    queue: Queue,
}

impl Operation for DeleteMessages {
    type Entry = String;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    /// Irrelevant: no limit of bytes applies.
    fn size(&self, receipt_handle: &String) -> usize {
        receipt_handle.len()
    }

    async fn call(&self, receipt_handles: &[&String]) -> Result<Vec<Answer>, ServiceError> {
        let entries = receipt_handles.iter().enumerate().map(|(id, &handle)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(id.to_string()).receipt_handle(handle);
            entry.build().expect("BUG: id and receipt handle are set")
        });
        let call = self.queue.client.delete_message_batch().queue_url(&self.queue.url);
        let call = call.set_entries(Some(entries.collect())).customize().config_override(once());
        let output = call.send().await.map_err(|error| classify(&error))?;
        let done = output.successful.iter().map(|entry| (entry.id(), ()));
        Ok(by_entry(receipt_handles.len(), done, &output.failed))
    }
}
