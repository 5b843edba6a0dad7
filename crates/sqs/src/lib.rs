//! Backoff, jitter and dead-letters for single messages of a Lambda function that reads an SQS queue.
//!
//! [`consumer()`] makes a function that handles one record into the service that [`lambda_runtime::run`] takes. A record
//! whose function fails or panics is retried alone: hidden for a jittered backoff, and reported in `batchItemFailures`.
//! The function's error says how, as it does for Comeback's retry handler: by [`RetryAfter`] and [`NonRetryable`].
//!
//! ```no_run
//! use comeback_sqs::{Context, Options, RetryAfter, SqsMessage, consumer, diagnostic};
//!
//! # async fn ship(_: &str) -> Result<bool, std::io::Error> { Ok(true) }
//! async fn handler(record: SqsMessage, _: Context) -> Result<(), lambda_runtime::Error> {
//!     if !ship(&record.body.unwrap_or_default()).await? {
//!         return Err(RetryAfter::seconds(900).because("the shop is closed").into());
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lambda_runtime::Error> {
//! let shipping = consumer(Options::default(), async |record, context| {
//!     handler(record, context).await.map_err(diagnostic)
//! })?;
//! lambda_runtime::run(shipping).await
//! # }
//! ```
//!
//! The event source mapping needs `ReportBatchItemFailures`, and the function's role `sqs:ChangeMessageVisibility` on the
//! queue. A release built with `panic = "abort"`, as cargo-lambda does unless told otherwise, cannot catch a panic.
//!
//! | file | holds |
//! |---|---|
//! | `consumer` | [`consumer()`] and the batch: which records run, and what becomes of them |
//! | `policy` | [`Options`], checked; when a message comes back, or why it ends |
//! | `dead_letter` | the dead-letter on the wire, and its message when it is moved back to the queue |
//! | `calls` | the calls to SQS |
//! | `line` | the log |

mod calls;
mod consumer;
mod dead_letter;
mod line;
mod policy;

pub use aws_lambda_events::sqs::{SqsBatchResponse, SqsMessage};
pub use comeback_backoff::Jitter;
pub use comeback_envelope::{NonRetryable, RetryAfter, diagnostic};
pub use lambda_runtime::{Context, Diagnostic};

pub use consumer::{Consumer, consumer};
pub use policy::{BadOptions, Options};
