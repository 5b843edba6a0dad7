//! `BatchWriteItem`.
