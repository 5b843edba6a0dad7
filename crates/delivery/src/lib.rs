#![cfg_attr(feature = "sqs", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sqs"),
    doc = "Sends any number of entries through a batch API with partial failure."
)]
//!
//! # Limits for each service
//!
//! Build a sender once per queue, table, stream or bus, and use it for any number of deliveries.
//!
//! | feature | API call | entries per call | bytes per call | bytes per entry |
//! |---|---|---|---|---|
//! | `sqs` | `SendMessageBatch` | 10 | 1 MiB | 1 MiB |
//! | `sqs` | `ChangeMessageVisibilityBatch`, `DeleteMessageBatch` | 10 | | |
//! | `dynamodb` | `BatchWriteItem` | 25 | 16 MiB | 400 KiB |
//! | `kinesis` | `PutRecords` | 500 | 10 MiB | 10 MiB |
//! | `firehose` | `PutRecordBatch` | 500 | 4 MiB | 1,000 KiB |
//! | `eventbridge` | `PutEvents` | 10 | under 1 MiB | under 1 MiB |
//!
//! [`limits`] names the sources.
//!
//! # Guarantees
//!
//! - **Nothing is lost.** Every entry of the input is returned as delivered or undelivered, even if the operation
//!   panics. To end a delivery early, use [`Sender::send_until`] instead of dropping its future.
//! - **At least once.** An entry is sent again only if the service reported that the entry failed, or if the service
//!   did not answer. If it did not answer, the entry may arrive twice.
//! - **Only errors that may be temporary are retried**: throttling, transient errors and unknown errors
//!   ([`ErrorKind::is_retriable`]). [`Retries`] limits the number of retries.
//! - **Bad entries cost few calls.** If the service refuses a whole call, the call is sent again in halves. Finding one
//!   bad entry among *n* takes about 2 · log₂ *n* calls. If all *n* entries are bad, finding them takes 2 · *n* − 1
//!   calls. Halves are sent without a wait, and do not use up retries.
//! - **If every entry is refused, the delivery ends.** Every entry is handed back ([`EntryError::Halted`]) if the
//!   service has accepted nothing and has refused six calls in full with the same code, and at least two of these were
//!   halves of earlier calls. If at most 50 entries are left, the sender tries each of them instead.
//! - **Partial throttling does not use up retries.** If the service throttles some entries in a call and accepts
//!   others, the throttled entries are sent again in calls of about the accepted size.
//! - **Batches are full.** Without lanes or failures, a delivery makes at most 3 · max(⌈entries / count⌉, ⌈bytes /
//!   limit⌉) + 1 calls, each within every limit. An entry that is too large for any call is returned before anything is
//!   sent.
//! - **Order.** Receipts are in the order of the input. Calls run concurrently, so entries may arrive in any order.
//!   Only the entries in one [`Lane`] keep their order. A lane is a FIFO queue's message group, or a DynamoDB item.
//! - **No entry is logged.** Spans, errors and their `Debug` forms contain only numbers and the service's codes.
//!   However, the message of a [`ServiceError`] comes from the service, and may quote an entry.
//!
//! # Files
//!
//! A [`Sender`] is an [`Operation`] together with settings, such as its [`Retries`]. In a delivery, `board` chooses the
//! entries for each call, and `run` makes the calls.
//!
//! | file | holds |
//! |---|---|
//! | `sender` | [`Sender`]: its options |
//! | `delivery` | `Sender::send`, `send_until`, `send_while`: entries that are all given at the start |
//! | `stream` | `Sender::send_stream`, and [`Batcher`], which many tasks share |
//! | `run` | the loop that makes the calls |
//! | `gate` | the number of concurrent calls, and their pace while a service throttles |
//! | `board` | the state of each entry; packing entries into calls, and deciding on retries |
//! | `lanes` | [`Lane`]: entries that keep their order |
//! | `operation` | [`Operation`]: a batch API, and [`ServiceError`], the error that it returns |
//! | `limits` | [`Limits`](limits::Limits): the limits for every service |
//! | `retries` | [`Retries`]: the number of retries, and the waits before them |
//! | `outcome` | [`Delivered`], [`Undelivered`], which holds each entry that is [`Left`], with its [`EntryError`] |
//! | `classify` | AWS SDK errors as [`ServiceError`]s, and code that the adapters share |
//! | `sqs`, `dynamodb`, `kinesis`, `firehose`, `eventbridge` | the adapters, each behind its feature |

mod board;
#[cfg(feature = "sdk")]
mod classify;
mod delivery;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
#[cfg(feature = "eventbridge")]
pub mod eventbridge;
#[cfg(feature = "firehose")]
pub mod firehose;
mod gate;
#[cfg(feature = "kinesis")]
pub mod kinesis;
mod lanes;
pub mod limits;
mod operation;
mod outcome;
mod retries;
mod run;
mod sender;
#[cfg(feature = "sqs")]
pub mod sqs;
mod stream;

#[cfg(feature = "sdk")]
pub use classify::{TokioSleep, classify};
/// Re-exported because the signature of [`Sender::send_stream`] uses `futures_util::Stream`.
pub use futures_util;
pub use lanes::Lane;
pub use operation::{EntryAnswer, ErrorKind, Operation, ServiceError};
pub use outcome::{Delivered, DeliveryResult, EntryError, Left, Sent, Undelivered, by_entry};
pub use retries::Retries;
pub use sender::Sender;
pub use stream::Batcher;
