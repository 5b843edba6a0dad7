#![cfg_attr(feature = "sqs", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sqs"),
    doc = "Sends any number of entries through a batch API with partial failure."
)]
//!
//! # Limits of each service
//!
//! Build a sender once per queue, table, stream or bus, and use it for any number of deliveries.
//!
//! | feature | sends by | entries of a call | bytes of a call | bytes of an entry |
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
//! # What is guaranteed
//!
//! - **Nothing is lost.** Delivered and undelivered entries together are the input, whatever fails and
//!   whenever the delivery ends, even if the operation panics. Where the future itself may be dropped,
//!   [`Sender::start`] keeps the entries outside of it.
//! - **At least once.** An entry is sent again only if the service answered that it failed, or did not
//!   answer. In the latter case it may have arrived, and may arrive twice.
//! - **Only errors that may pass are retried**: throttles, transient errors and unknown ones
//!   ([`ErrorKind::is_retriable`]). An entry is sent at most once more than [`Retries`] has waits. One
//!   layer retries: the adapters switch the SDK's own retries off for their calls.
//! - **One bad entry harms no other.** A call that is refused whole, as invalid or too large, is sent
//!   again in halves, down to the one entry that is refused alone. The halves wait for nothing and use up
//!   no retry. To find one bad entry of *n* takes about 2 · log₂ *n* calls; if every entry is bad, all of them
//!   take 2 · *n* − 1 calls.
//! - **Batches are few.** Without lanes and failures there are at most
//!   3 · max(⌈entries / count⌉, ⌈bytes / limit⌉) + 1 calls, each within every limit. An entry that can
//!   never fit is handed back with its size before anything is sent.
//! - **Order.** Results are in the order of the input. Calls run concurrently, so entries are sent in no
//!   set order, except those of one [`Lane`]: a FIFO queue's message group, or a DynamoDB item.
//! - **Throttles slow the sender, not the batch.** The rate of calls falls with the share of entries that is throttled,
//!   and rises again until it is. A `Retry-After` of the service is waited for.
//! - **It fails fast.** What a missing permission, a missing queue or a service that is down leaves unsent is
//!   [`Cause::Halted`].
//! - **A deadline** is [`Sender::send_until`], even if a call hangs, or [`Sender::send_while`], which only starts no more.
//! - **Memory is bounded** where entries come as a [stream](Sender::send_stream) or from
//!   [many tasks](Sender::batcher).
//! - **No entry is ever logged**: spans, errors and their `Debug` forms hold numbers and the service's
//!   codes. (A [`ServiceError`]'s message is the service's own, and may quote an entry.)
//!
//! # Files
//!
//! A [`Sender`] is an [`Operation`] and how it is retried. A [`Delivery`] puts entries on a board, which decides, and
//! runs a loop, which calls and waits.
//!
//! | file | holds |
//! |---|---|
//! | `sender` | [`Sender`]: its options, and what starts a delivery |
//! | `delivery`, `stream` | [`Delivery`] of entries given at once; `Sender::send_stream`, [`Batcher`] of many tasks |
//! | `run` | the loop of calls and waits |
//! | `gate` | how many calls at once, and how fast while a service throttles |
//! | `board` | which entry is where: packing, retries, what is left |
//! | `lanes` | [`Lane`]: entries that keep their order |
//! | `operation` | [`Operation`]: a batch API, and [`ServiceError`], its answer for a failure |
//! | `limits` | [`Limits`](limits::Limits): the limits of every service |
//! | `retries` | [`Retries`]: how often, and after which waits |
//! | `outcome` | [`Delivered`], [`Undelivered`] with each entry [`Left`] and its [`Cause`] |
//! | `classify` | from an AWS SDK error to a [`ServiceError`], and what the adapters share |
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
pub use delivery::Delivery;
/// Its `Stream` is what [`Sender::send_stream`] takes and gives.
pub use futures_util;
pub use lanes::Lane;
pub use operation::{Answer, ErrorKind, Operation, ServiceError};
pub use outcome::{Cause, Delivered, Left, Outcome, Progress, Sent, Undelivered, by_entry};
pub use retries::Retries;
pub use sender::{CONCURRENCY, Sender};
pub use stream::Batcher;
