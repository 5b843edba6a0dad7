use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry;

use super::{Queue, by_entry, once, whole_seconds};
use crate::limits::{Limits, SQS_RECEIPTS};
use crate::{Answer, Operation, ServiceError, TokioSleep, classify};

/// Hides received messages of one queue, or shows them again.
///
/// ```no_run
/// # async fn example(client: aws_sdk_sqs::Client, url: &str, receipt_handle: String) -> Result<(), Box<dyn std::error::Error>> {
/// use comeback_delivery::sqs::{Visibility, VisibilityChanger};
/// use std::time::Duration;
///
/// let hide = VisibilityChanger::new(client, url);
/// hide.send([Visibility { receipt_handle, timeout: Duration::from_secs(3_600) }]).await?;
/// # Ok(())
/// # }
/// ```
pub type VisibilityChanger = crate::Sender<ChangeVisibility, TokioSleep>;

impl VisibilityChanger {
    /// A changer for the queue of this URL. The client's own retries are switched off.
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        let queue = Queue { client, url: queue_url.into() };
        Self::over(ChangeVisibility { queue }, tokio::time::sleep)
    }
}

/// `ChangeMessageVisibilityBatch` on one queue.
#[derive(Debug)]
pub struct ChangeVisibility {
    queue: Queue,
}

/// For how long a received message is hidden, from now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// The one of the latest receive.
    pub receipt_handle: String,
    /// At most 12 hours from the receive: SQS refuses more. A part of a second counts as a whole one, so
    /// no message is shown early.
    pub timeout: Duration,
}

impl Visibility {
    fn request(&self, id: usize) -> ChangeMessageVisibilityBatchRequestEntry {
        let entry = ChangeMessageVisibilityBatchRequestEntry::builder()
            .id(id.to_string())
            .receipt_handle(&self.receipt_handle)
            .visibility_timeout(whole_seconds(self.timeout));
        entry.build().expect("BUG: id and receipt handle are set")
    }
}

impl Operation for ChangeVisibility {
    type Entry = Visibility;
    type Receipt = ();

    fn limits(&self) -> Limits {
        SQS_RECEIPTS
    }

    /// Irrelevant: no limit of bytes applies.
    fn size(&self, entry: &Visibility) -> usize {
        entry.receipt_handle.len()
    }

    async fn call(&self, changes: &[&Visibility]) -> Result<Vec<Answer>, ServiceError> {
        let entries = changes.iter().enumerate().map(|(id, change)| change.request(id)).collect();
        let call = self.queue.client.change_message_visibility_batch().queue_url(&self.queue.url);
        let call = call.set_entries(Some(entries)).customize().config_override(once());
        let output = call.send().await.map_err(|error| classify(&error))?;
        let done = output.successful.iter().map(|entry| (entry.id(), ()));
        Ok(by_entry(changes.len(), done, &output.failed))
    }
}
