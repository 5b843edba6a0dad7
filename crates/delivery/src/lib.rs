//! Batch APIs with partial failure: any number of entries go out, and each ends delivered or is
//! handed back with its reason.
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
