#![cfg_attr(all(feature = "entropy", feature = "retry-after"), doc = include_str!("../README.md"))]
//! # Where to find it
//!
//! A [`Backoff`] describes the waits before retries, and [`Delays`] iterates over the waits for one operation.
//! [`retry()`] returns a [`Retry`], the loop that calls an operation and waits. It accepts any durations as waits, and
//! other retry loops can use the waits from a `Backoff`.
//!
//! | file | holds |
//! |---|---|
//! | `backoff` | [`Backoff`], [`Delays`]: the waits |
//! | `error` | [`BackoffError`] and [`RetryError`] |
//! | `growth` | growth of the ceilings from one retry to the next |
//! | `jitter` | [`Jitter`]: the random distribution of a wait |
//! | `retry` | [`retry()`], [`retry_mut`], [`retry_blocking`], and [`Retry`] with their options |
//! | `hint` | [`Hint`]: a wait that a server asks for |
//! | `requested` | `requested_wait`: parses strings that ask for a wait, such as `Retry-After` |
//! | `transient` | [`is_transient_status`], `is_transient_io`: errors that are worth retrying |
//! | `ladder` | [`ladder!`]: waits whose growth the compiler checks |
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod backoff;
mod error;
mod growth;
mod hint;
mod jitter;
mod ladder;
#[cfg(feature = "retry-after")]
mod requested;
mod retry;
mod transient;

pub use backoff::{Backoff, Delays};
pub use error::{BackoffError, RetryError};
pub use hint::Hint;
pub use jitter::Jitter;
#[doc(hidden)]
pub use ladder::private as __ladder;
#[cfg(feature = "retry-after")]
pub use requested::{UnreadableWait, requested_wait};
pub use retry::{Attempt, Delay, Retry, Tally, retry, retry_blocking, retry_mut};
#[cfg(feature = "std")]
pub use transient::is_transient_io;
pub use transient::is_transient_status;
