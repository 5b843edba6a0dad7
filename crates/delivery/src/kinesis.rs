//! Kinesis Data Streams: `PutRecords`.
//!
//! Kinesis does not preserve the order of the records in a call, and a record that is sent again arrives after the
//! other records in its call. Where order matters, use `PutRecord` with `SequenceNumberForOrdering`. If a response is
//! lost, the records in the call are sent again, and may be in the stream twice.

use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::types::PutRecordsRequestEntry;

use crate::classify::{TokioSleep, answer, send_once};
use crate::limits::{KINESIS, Limits};
use crate::operation::{EntryAnswer, Operation, ServiceError};

/// Sends records to one Kinesis stream.
///
/// ```no_run
/// # async fn example(config: aws_config::SdkConfig) -> Result<(), Box<dyn std::error::Error>> {
/// use aws_sdk_kinesis::{primitives::Blob, types::PutRecordsRequestEntry};
/// use comeback_delivery::kinesis;
///
/// let deliver = kinesis::Sender::new(aws_sdk_kinesis::Client::new(&config), "orders");
/// let record = PutRecordsRequestEntry::builder().partition_key("42").data(Blob::new("{}")).build()?;
/// deliver.send([record]).await?;
/// # Ok(())
/// # }
/// ```
pub type Sender = crate::Sender<PutRecords, TokioSleep>;

impl Sender {
    /// Creates a sender for the stream with this name or ARN. The client's own retries are switched off.
    ///
    /// A record may be up to 10 MiB if the stream's maximum record size allows it. By default, a stream accepts records
    /// of up to 1 MiB. If one record is larger, the stream refuses the whole call, and the sender sends the records
    /// again in halves.
    pub fn new(client: Client, stream: impl Into<String>) -> Self {
        Self::over(PutRecords { client, stream: stream.into() }, tokio::time::sleep)
    }
}

/// The `PutRecords` API, for one stream.
#[derive(Debug)]
pub struct PutRecords {
    client: Client,
    stream: String,
}

/// Kinesis's receipt for an accepted record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KinesisReceipt {
    /// The record's sequence number in its shard.
    pub sequence_number: String,
    /// The shard that stores the record.
    pub shard_id: String,
}

impl Operation for PutRecords {
    type Entry = PutRecordsRequestEntry;
    type Receipt = KinesisReceipt;

    fn limits(&self) -> Limits {
        KINESIS
    }

    /// Size of the record: its data before base64 encoding, and its partition key.
    fn size(&self, record: &PutRecordsRequestEntry) -> usize {
        record.data().as_ref().len() + record.partition_key().map_or(0, str::len)
    }

    async fn call(
        &self,
        records: &[&PutRecordsRequestEntry],
    ) -> Result<Vec<EntryAnswer<KinesisReceipt>>, ServiceError> {
        let records = records.iter().map(|&record| record.clone()).collect();
        let call = self.client.put_records().set_records(Some(records));
        let call = if self.stream.starts_with("arn:") {
            call.stream_arn(&self.stream)
        } else {
            call.stream_name(&self.stream)
        };
        let output = send_once!(aws_sdk_kinesis, call)?;
        let answers = output.records().iter().map(|result| {
            let receipt = result.sequence_number().map(|sequence_number| KinesisReceipt {
                sequence_number: sequence_number.into(),
                shard_id: result.shard_id().unwrap_or_default().into(),
            });
            answer(receipt, result.error_code(), result.error_message())
        });
        Ok(answers.collect())
    }
}
