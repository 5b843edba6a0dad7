//! What an event carries when Comeback retries it.
//!
//! A retried event reaches its target inside an *envelope*: the original payload, byte for byte,
//! beside `_retry_metadata` (which attempt this is, when the first failure happened, and an id that
//! stays the same on every retry). This crate writes and reads that envelope, and has the two errors by which
//! a target says how it wants to be retried. It knows nothing else: no AWS, no clock, only serde.
//!
//! A target opens the event it was invoked with, and reads the payload:
//!
//! ```
//! use serde_json::value::RawValue;
//!
//! let event: Box<RawValue> = serde_json::from_str(
//!     r#"{"_retry_metadata":{"attempt":2,"initial_timestamp":1643667670,"origin_request_id":"a1"},
//!         "_original_payload":{"order": 1.0}}"#,
//! )?;
//! let event = comeback_envelope::open(&event)?;
//! assert_eq!(event.payload.get(), r#"{"order": 1.0}"#);
//! assert_eq!(event.attempt(), 2);
//! assert_eq!(event.idempotency_key("this invocation's request id"), "a1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An event that was never retried opens as well: its payload is the whole event, and its attempt is 0.
//!
//! | file | holds |
//! |---|---|
//! | `open` | [`open`] and [`Event`]: from an event to its payload, both styles |
//! | `seal` | [`Envelope`]: from a payload to the event of its next retry |
//! | `style` | [`Style`]: how the metadata travels with the payload |
//! | `metadata` | [`Metadata`], read strictly |
//! | `members` | the members of a JSON object, with their byte ranges |
//! | `malformed` | [`Malformed`]: every way in which an envelope can be wrong |
//! | `directive` | [`RetryAfter`] and [`NonRetryable`]: the errors that the retry handler obeys |
//! | `diagnostic` | with the feature `lambda_runtime`: these errors by their names in the invocation record |

#[cfg(feature = "lambda_runtime")]
mod diagnostic;
mod directive;
mod malformed;
mod members;
mod metadata;
mod open;
mod seal;
mod style;

#[cfg(feature = "lambda_runtime")]
pub use diagnostic::diagnostic;
pub use directive::{NonRetryable, RetryAfter};
pub use malformed::Malformed;
pub use metadata::Metadata;
pub use open::{Event, open};
pub use seal::Envelope;
pub use style::{Style, UnknownStyle};

/// Compiles the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
