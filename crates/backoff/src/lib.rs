#![cfg_attr(all(feature = "entropy", feature = "retry-after"), doc = include_str!("../README.md"))]
//! # Where to find it
//!
//! | file | holds |
//! |---|---|
//! | `retry` | [`retry()`], [`retry_mut`], [`retry_blocking`]: the loop over any delays, whose options [`Retry`] has; [`Hint`], a wait that a server asks for; which errors are transient ([`is_transient_status`]) |
//! | `strategy` | [`Strategy`]: which waits, described; [`Streams`] gives it a seed, and [`Delays`] are the waits of one operation |
//! | `backoff`, `ceiling` | [`Backoff`], [`ceiling()`]: the exponential wait before retry n alone, in whole units |
//! | `jitter` | [`Jitter`]: the draw under the ceiling; every wait is drawn there |
//! | `ladder` | [`ladder!`]: waits whose growth the compiler checks |
//! | `tick` | [`Tick`]: the unit of waits |
//! | `random` | [`Xoshiro256PlusPlus`]: the generator; [`rand_core`] has the traits of any other |
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod backoff;
mod ceiling;
mod jitter;
mod ladder;
mod random;
mod retry;
mod strategy;
mod tick;

pub use rand_core;

pub use backoff::Backoff;
pub use ceiling::ceiling;
pub use jitter::{Jitter, UnknownJitter};
#[doc(hidden)]
pub use ladder::millis as __millis;
pub use ladder::{Ladder, Rung, Rungs, Top};
pub use random::Xoshiro256PlusPlus;
#[cfg(feature = "std")]
pub use retry::is_transient_io;
pub use retry::{
    Blocking, Hint, Lending, Plain, Retried, Retry, RetryError, is_transient_status, retry, retry_blocking,
    retry_mut,
};
#[cfg(feature = "retry-after")]
pub use retry::{RetryAfter, UnreadableRetryAfter};
pub use strategy::{Delays, Part, Strategy, StrategyError, Streams};
pub use tick::Tick;
