//! Each service's limits on calls and entries.

/// Limits on one call and on one entry. Sizes are in bytes, as the service counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of entries in a call; at least 1.
    pub entries: usize,
    /// Maximum total size of the entries in a call, in bytes.
    pub bytes: usize,
    /// Maximum size of one entry, in bytes.
    pub entry_bytes: usize,
}

const KIB: usize = 1_024;
const MIB: usize = 1_024 * KIB;

/// Limits for `SendMessageBatch`. Sizes include bodies and attributes. The size limit of a single message is the same
/// as that of a whole batch. Source: SQS Developer Guide, "Message quotas": 1 MiB since August 2025.
pub const SQS_SEND: Limits = Limits { entries: 10, bytes: MIB, entry_bytes: MIB };

/// Limits for `ChangeMessageVisibilityBatch` and `DeleteMessageBatch`. These calls carry no payload, so only the number
/// of entries is limited. Source: SQS API Reference.
pub const SQS_RECEIPTS: Limits = Limits { entries: 10, bytes: usize::MAX, entry_bytes: usize::MAX };

/// Limits for `BatchWriteItem`. Source: DynamoDB API Reference (25 requests, 16 MB in all, 400 KB per item; MB and KB
/// are binary units).
pub const DYNAMODB: Limits = Limits { entries: 25, bytes: 16 * MIB, entry_bytes: 400 * KIB };

/// Limits for `PutRecords`. Sizes are those of the partition keys and of the data before base64 encoding. Source:
/// Kinesis Data Streams API Reference (500 records, 10 MiB in all, 10 MiB per record). A stream accepts 1 MiB per
/// record until its own maximum is raised. Former limits: 5 MiB in all, 1 MiB per record.
pub const KINESIS: Limits = Limits { entries: 500, bytes: 10 * MIB, entry_bytes: 10 * MIB };

/// Limits for `PutRecordBatch`. Sizes are those of the data before base64 encoding. Source: Firehose API Reference (500
/// records, 4 MiB in all, 1,000 KiB per record).
pub const FIREHOSE: Limits = Limits { entries: 500, bytes: 4 * MIB, entry_bytes: 1_000 * KIB };

/// Limits for `PutEvents`. The size limit of a single event is the same as that of a whole call. Source: EventBridge
/// API Reference (10 events, *less than* 1 MB in all; 256 KB before January 2026).
pub const EVENTBRIDGE: Limits = Limits { entries: 10, bytes: MIB - 1, entry_bytes: MIB - 1 };
