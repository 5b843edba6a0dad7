//! `PutRecordBatch`.
