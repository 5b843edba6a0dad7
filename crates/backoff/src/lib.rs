//! How long to wait before a retry, and the loop that waits.
//!
//! Time, randomness and sleeping are parameters: nothing here reads a clock, seeds itself or knows a
//! runtime. A wait is a whole number of ticks (microseconds, milliseconds or seconds). It is capped
//! before it is jittered, never zero and never over its cap, for any number of retries.
//!
//! ```
//! # #[cfg(not(feature = "retry"))]
//! # fn main() {}
//! # #[cfg(feature = "retry")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use comeback_backoff::{Jitter, Strategy, is_transient_io, retry};
//!
//! # let mut calls = 0;
//! # let mut fetch = || { calls += 1; let calls = calls; async move {
//! #     if calls < 3 { Err(std::io::Error::from(std::io::ErrorKind::TimedOut)) } else { Ok("text") }
//! # } };
//! let strategy = Strategy::exponential(Duration::from_millis(50), Duration::from_secs(2))
//!     .jitter(Jitter::Full)
//!     .retries(5)
//!     .seeded(7)?; // make it once; each use has a random stream of its own
//!
//! let text = retry(&strategy, is_transient_io, || fetch()).sleeping(tokio::time::sleep).await?;
//! # assert_eq!(text, "text");
//! # Ok(())
//! # }
//! ```
//!
//! Without features there are the waits alone: strategies, single waits and ladders. The feature `retry`
//! adds [`retry()`] and [`RetryAfter`].
//!
//! | file | holds |
//! |---|---|
//! | `strategy` | [`Strategy`]: which waits, described |
//! | `plan` | the same, checked ([`StrategyError`]) and in ticks |
//! | `streams` | [`Streams`]: a seeded strategy; each iterator it makes has its own random stream |
//! | `delays` | [`Delays`]: the waits, as an `Iterator<Item = Duration>` |
//! | `tick` | [`Tick`]: the unit of waits |
//! | `growth` | how ceilings grow: exponential, constant, linear, squared, or a list |
//! | `ceiling` | [`ceiling`]: base · 2ⁿ⁻¹ under a cap, for every n |
//! | `jitter` | [`Jitter`]: the draw under the ceiling; every wait is drawn there |
//! | `backoff` | [`Backoff`]: the exponential wait before retry n alone, in whole units |
//! | `ladder` | [`ladder!`]: waits whose growth the compiler checks |
//! | `retry` | [`retry()`]: the loop, over any delays (feature `retry`) |
//! | `retry_after` | [`RetryAfter`]: the wait that a server asks for (feature `retry`) |
//! | `retry_error` | [`RetryError`]: an operation that was given up |
//! | `transient` | [`is_transient_io`], [`is_transient_status`]: which errors are transient |

mod backoff;
mod ceiling;
mod delays;
mod growth;
mod jitter;
mod ladder;
mod plan;
#[cfg(feature = "retry")]
mod retry;
#[cfg(feature = "retry")]
mod retry_after;
mod retry_error;
mod strategy;
mod streams;
mod tick;
mod transient;

pub use backoff::Backoff;
pub use ceiling::ceiling;
pub use delays::Delays;
pub use jitter::{Jitter, UnknownJitter};
#[doc(hidden)]
pub use ladder::millis as __millis;
pub use ladder::{Ladder, Rung, Rungs, Top};
pub use plan::StrategyError;
#[cfg(feature = "retry")]
pub use retry::{Retry, retry};
#[cfg(feature = "retry")]
pub use retry_after::{RetryAfter, UnreadableRetryAfter};
pub use retry_error::RetryError;
pub use strategy::Strategy;
pub use streams::Streams;
pub use tick::Tick;
pub use transient::{is_transient_io, is_transient_status};

/// Compiles the README's examples.
#[cfg(all(doctest, feature = "retry"))]
#[doc = include_str!("../README.md")]
struct Readme;
