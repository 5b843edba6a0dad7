//! The envelope around an event that Comeback retries.
//!
//! A retried event reaches its target inside an *envelope*: the original payload, byte for byte, beside
//! `_retry_metadata`. This crate writes and reads envelopes, and provides two errors that let a function control its
//! own retries.
//!
//! A target opens the event that it receives, and reads the payload:
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
//! An event that was never retried can also be opened: its payload is the whole event, and its attempt is 0.
//!
//! | file | holds |
//! |---|---|
//! | `envelope` | [`open`] and [`Event`]: from an event to its payload; [`Envelope`]: from a payload to its next retry |
//! | `metadata` | [`Metadata`], parsed strictly; [`Style`], its place beside the payload; [`Malformed`], the reasons to refuse it |
//! | `members` | the members of a JSON object, with their byte ranges |
//! | `directive` | [`RetryAfter`] and [`NonRetryable`], errors that instruct the retry handler, and how they are reported |

mod directive;
mod envelope;
mod members;
mod metadata;

#[cfg(feature = "lambda_runtime")]
pub use directive::diagnostic;
pub use directive::{NonRetryable, RetryAfter};
pub use envelope::{Envelope, Event, open};
pub use metadata::{Malformed, Metadata, Style, UnknownStyle};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
