//! Batch APIs with partial failure: any number of entries go out, and each ends delivered or is
//! handed back with its reason.
//!
//! ```no_run
//! # #[cfg(feature = "sqs")]
//! # async fn example(client: aws_sdk_sqs::Client, queue_url: &str) {
//! use comeback_delivery::sqs::{Message, Sender};
//!
//! let deliver = Sender::new(client, queue_url);
//! match deliver.send((0..1_000).map(|n| Message::new(format!("order {n}")))).await {
//!     Ok(delivered) => println!("{} messages in {} calls", delivered.count, delivered.calls),
//!     Err(undelivered) => {
//!         for left in undelivered.entries {
//!             eprintln!("number {}: {}", left.index, left.cause); // and left.entry is yours again
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! A sender is built once per queue, table, stream or bus, and used for any number of deliveries.
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
//! Their sources stand in [`limits`]. Without features there is the core alone, which knows neither
//! AWS nor tokio: any batch API can be an [`Operation`].
//!
//! # What is guaranteed
//!
//! - **Nothing is lost.** Delivered and undelivered together are the input, whatever fails, whenever it
//!   ends, panics of the operation included. Where the future itself may be dropped, [`Sender::start`]
//!   keeps the entries outside of it.
//! - **At least once.** An entry is sent again only if the service answered a failure for it, or its
//!   answer never came; in the latter case it may have arrived, and may arrive twice.
//! - **Only what may help is retried**: throttles, what passes, and what nobody knows
//!   ([`FaultKind::is_retriable`]); each entry as often as [`Retries`] say, so at most once more than
//!   there are waits. A call that is refused whole leaves all its entries, whichever was to blame. One
//!   layer retries: the adapters switch the SDK's own retries off.
//! - **Batches are few.** Where no lane constrains it and nothing fails, at most
//!   3 · max(⌈entries / count⌉, ⌈bytes / limit⌉) + 1 calls, each within every limit. What can never fit
//!   is handed back with its size before anything is sent.
//! - **Order.** Results are in the order of input. Entries are sent in no set order, as calls run
//!   beside each other, save those of one [`Lane`]: a FIFO queue's message group, or a DynamoDB item.
//! - **A deadline** ([`Sender::send_until`]) is asked for before each call and after each wait. No call
//!   starts once it has passed; one under way is let finish, which is as long as the client's own
//!   timeouts let it take. The SDK sets none: give it an `operation_attempt_timeout`.
//! - **No entry is ever logged**: spans, errors and their `Debug` forms hold numbers and the service's
//!   codes. (A [`Fault`]'s message is the service's own, and may quote.)
//!
//! # Files
//!
//! | file | holds |
//! |---|---|
//! | `sender` | [`Sender`]: an operation, built once, and how it is retried |
//! | `delivery` | [`Delivery`]: entries on their way; the loop of calls and waits |
//! | `board` | which entry is where: packing, lanes, what is sent again; waits for nothing |
//! | `operation` | [`Operation`]: what a batch API must say of itself; [`Lane`] |
//! | `limits` | [`Limits`](limits::Limits): the one table of what services take |
//! | `retries` | [`Retries`]: how often, and after which waits |
//! | `outcome` | [`Delivered`], [`Undelivered`] with each entry [`Left`] and its [`Cause`] |
//! | `fault` | [`Fault`]: what a service said |
//! | `classify` | from AWS SDK error to [`Fault`]; the one place that does |
//! | `sqs`, `dynamodb`, `kinesis`, `firehose`, `eventbridge` | the adapters, each behind its feature |

mod board;
#[cfg(feature = "sdk")]
mod classify;
mod delivery;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
#[cfg(feature = "eventbridge")]
pub mod eventbridge;
mod fault;
#[cfg(feature = "firehose")]
pub mod firehose;
#[cfg(feature = "kinesis")]
pub mod kinesis;
pub mod limits;
mod operation;
mod outcome;
mod retries;
#[cfg(feature = "sdk")]
mod sdk;
mod sender;
#[cfg(feature = "sqs")]
pub mod sqs;

#[cfg(feature = "sdk")]
pub use classify::classify;
pub use delivery::Delivery;
pub use fault::{Fault, FaultKind};
pub use operation::{Answer, Lane, Operation};
pub use outcome::{Cause, Delivered, Left, Progress, Undelivered, by_entry};
pub use retries::Retries;
#[cfg(feature = "sdk")]
pub use sdk::TokioSleep;
pub use sender::{CONCURRENCY, Sender};
