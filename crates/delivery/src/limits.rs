//! The limits of every service.

/// The limits of one call and of one entry. Bytes are counted as the service counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of a call; at least 1.
    pub entries: usize,
    /// Bytes of a call's entries together.
    pub bytes: usize,
    /// Bytes of one entry.
    pub entry_bytes: usize,
}

const KIB: usize = 1_024;
const MIB: usize = 1_024 * KIB;

/// `SendMessageBatch`: bodies and attributes, the same limit for a message and for a batch.
/// Source: SQS developer guide, "Message quotas": 1 MiB since August 2025.
pub const SQS_SEND: Limits = Limits { entries: 10, bytes: MIB, entry_bytes: MIB };

/// `ChangeMessageVisibilityBatch` and `DeleteMessageBatch`: they carry no payload, so only the count is limited.
/// Source: SQS API reference.
pub const SQS_RECEIPTS: Limits = Limits { entries: 10, bytes: usize::MAX, entry_bytes: usize::MAX };

/// `BatchWriteItem`.
/// Source: DynamoDB API reference: 25 requests, 16 MB in all, 400 KB an item (both in binary units).
pub const DYNAMODB: Limits = Limits { entries: 25, bytes: 16 * MIB, entry_bytes: 400 * KIB };

/// `PutRecords`: data before base64, and partition keys.
/// Source: Kinesis Data Streams API reference: 500 records, 10 MiB in all, 10 MiB a record (5 MiB and
/// 1 MiB formerly; a stream takes 1 MiB a record until its own maximum is raised).
pub const KINESIS: Limits = Limits { entries: 500, bytes: 10 * MIB, entry_bytes: 10 * MIB };

/// `PutRecordBatch`: data before base64.
/// Source: Firehose API reference: 500 records, 4 MiB in all, 1,000 KiB a record.
pub const FIREHOSE: Limits = Limits { entries: 500, bytes: 4 * MIB, entry_bytes: 1_000 * KIB };

/// `PutEvents`: the same limit for an event and for a call.
/// Source: EventBridge API reference: 10 events, *less than* 1 MB in all (256 KB before January 2026).
pub const EVENTBRIDGE: Limits = Limits { entries: 10, bytes: MIB - 1, entry_bytes: MIB - 1 };
