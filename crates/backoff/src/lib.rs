//! How long to wait before a retry, and the loop that waits.
//!
//! Time, randomness and sleeping are parameters: nothing here asks a clock, seeds itself or knows a
//! runtime. A wait is a whole number of ticks (microseconds, milliseconds or seconds), is capped
//! before it is jittered, is never zero and never over its cap, for any number of retries.
//!
//! ```
//! use std::time::Duration;
//! use comeback_backoff::{Jitter, Strategy, is_transient_io, retry};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut calls = 0;
//! # let mut fetch = || { calls += 1; let calls = calls; async move {
//! #     if calls < 3 { Err(std::io::Error::from(std::io::ErrorKind::TimedOut)) } else { Ok("text") }
//! # } };
//! let strategy = Strategy::exponential(Duration::from_millis(50), Duration::from_secs(2))
//!     .jitter(Jitter::Full)
//!     .retries(5)
//!     .seeded(7)?; // made once; each use has a random stream of its own
//!
//! let text = retry(&strategy, is_transient_io, || fetch()).sleeping(tokio::time::sleep).await?;
//! # assert_eq!(text, "text");
//! # Ok(())
//! # }
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `strategy` | [`Strategy`]: which waits, described and checked ([`StrategyError`]) |
//! | `streams` | [`Streams`]: a seeded strategy; each iterator it makes has its own random stream |
//! | `delays` | [`Delays`]: the waits, as an `Iterator<Item = Duration>` |
//! | `tick` | [`Tick`]: what waits are whole numbers of |
//! | `growth` | how ceilings grow: exponential, constant, linear, squared, or a list |
//! | `ceiling` | [`ceiling`]: base · 2ⁿ⁻¹ under a cap, for every n |
//! | `jitter` | [`Jitter`]: the draw under the ceiling; the only place that draws |
//! | `backoff` | [`Backoff`]: the exponential wait before retry n alone, in whole units |
//! | `retry` | [`retry()`]: the loop, over any delays; [`RetryError`] |
//! | `retry_after` | [`RetryAfter`]: what a server asks for |
//! | `transient` | [`is_transient_io`], [`is_transient_status`]: which errors pass |
//! | `ladder` | [`ladder!`]: waits whose growth the compiler checks |

mod backoff;
mod ceiling;
mod delays;
mod growth;
mod jitter;
mod ladder;
mod retry;
mod retry_after;
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
pub use retry::{Retry, RetryError, retry};
pub use retry_after::{RetryAfter, UnreadableRetryAfter};
pub use strategy::{Strategy, StrategyError};
pub use streams::Streams;
pub use tick::Tick;
pub use transient::{is_transient_io, is_transient_status};
