//! Backoff, jitter and dead-letters for the individual messages that a Lambda function reads from an SQS queue.
//!
//! [`consumer()`] turns a function that handles one record into a service for [`lambda_runtime::run`]. If the function
//! fails or panics, only that record's message is retried, after a jittered backoff. The function can control the retry
//! with its error: [`RetryAfter`] sets the wait, and [`NonRetryable`] prevents the retry.
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
//! The event source mapping needs `ReportBatchItemFailures`. The function's role needs `sqs:ChangeMessageVisibility` on
//! the queue. A release build with `panic = "abort"`, which is cargo-lambda's default, cannot catch a panic.
//!
//! | file | holds |
//! |---|---|
//! | `consumer` | [`consumer()`] and the batch: the records to process, and the outcome of each |
//! | `policy` | the validated [`Options`], and whether and when a failed message becomes visible again |
//! | `dead_letter` | the dead-letter's format, and the original message in a dead-letter that was moved back |
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
