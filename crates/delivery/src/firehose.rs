//! Data Firehose: `PutRecordBatch`.
//!
//! Firehose puts nothing between records: end each record with a delimiter, such as a newline. If a response is lost,
//! the records in the call are sent again and may arrive twice.

use aws_sdk_firehose::Client;
use aws_sdk_firehose::types::Record;

use crate::classify::{TokioSleep, answer, send_once};
use crate::limits::{FIREHOSE, Limits};
use crate::operation::{EntryAnswer, Operation, ServiceError};

/// Sends records to one Firehose stream.
///
/// ```no_run
/// # async fn example(config: aws_config::SdkConfig) -> Result<(), Box<dyn std::error::Error>> {
/// use aws_sdk_firehose::{primitives::Blob, types::Record};
/// use comeback_delivery::firehose;
///
/// let deliver = firehose::Sender::new(aws_sdk_firehose::Client::new(&config), "orders");
/// deliver.send([Record::builder().data(Blob::new("{}\n")).build()?]).await?;
/// # Ok(())
/// # }
/// ```
pub type Sender = crate::Sender<PutRecordBatch, TokioSleep>;

impl Sender {
    /// Creates a sender for the Firehose stream with this name. The client's own retries are switched off.
    pub fn new(client: Client, stream: impl Into<String>) -> Self {
        Self::over(PutRecordBatch { client, stream: stream.into() }, tokio::time::sleep)
    }
}

/// The `PutRecordBatch` API, for one Firehose stream.
#[derive(Debug)]
pub struct PutRecordBatch {
    client: Client,
    stream: String,
}

/// Firehose's receipt for an accepted record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirehoseReceipt {
    /// The id that Firehose gave the record.
    pub record_id: String,
}

impl Operation for PutRecordBatch {
    type Entry = Record;
    type Receipt = FirehoseReceipt;

    fn limits(&self) -> Limits {
        FIREHOSE
    }

    /// Size of the record's data before base64 encoding.
    fn size(&self, record: &Record) -> usize {
        record.data().as_ref().len()
    }

    async fn call(&self, records: &[&Record]) -> Result<Vec<EntryAnswer<FirehoseReceipt>>, ServiceError> {
        let records = records.iter().map(|&record| record.clone()).collect();
        let call =
            self.client.put_record_batch().delivery_stream_name(&self.stream).set_records(Some(records));
        let output = send_once!(aws_sdk_firehose, call)?;
        let answers = output.request_responses().iter().map(|result| {
            let receipt = result.record_id().map(|record_id| FirehoseReceipt { record_id: record_id.into() });
            answer(receipt, result.error_code(), result.error_message())
        });
        Ok(answers.collect())
    }
}
