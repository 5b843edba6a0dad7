//! `PutRecords`.
