#![cfg_attr(all(feature = "entropy", feature = "retry-after"), doc = include_str!("../README.md"))]
//! # Where to find it
//!
//! | item | is |
//! |---|---|
//! | [`retry()`], [`retry_mut`], [`retry_blocking`] | the loop, over any delays; [`Retry`] has its options |
//! | [`Retried`], [`RetryError`] | how it ended, after how many calls |
//! | [`Hint`], `RetryAfter` | the wait that a server asks for |
//! | `is_transient_io`, [`is_transient_status`] | which errors are transient |
//! | [`Strategy`] | which waits, described; refused with a [`StrategyError`] |
//! | [`Streams`] | a strategy with a seed; each iterator it makes has its own random stream |
//! | [`Delays`] | the waits, as an `Iterator<Item = Duration>` |
//! | [`Jitter`] | the draw under the ceiling; every wait is drawn there |
//! | [`Tick`] | the unit of waits |
//! | [`Backoff`], [`ceiling()`] | the exponential wait before retry n alone, in whole units |
//! | [`ladder!`] | waits whose growth the compiler checks |
//! | [`Xoshiro256PlusPlus`], [`rand_core`] | the generator, and the traits of any other |
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
