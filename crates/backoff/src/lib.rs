//! How long to wait before a retry: exponential ceilings, and jitter under them.
//!
//! Everything here is a pure function of its arguments: the generator is passed in, nothing asks
//! the time, and nothing knows what is being retried.
//!
//! ```
//! use comeback_backoff::{Backoff, Jitter};
//! use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
//!
//! let backoff = Backoff { base: 1, cap: 43_170, jitter: Jitter::Full };
//! let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
//! let delay = backoff.delay(5, &mut rng); // before the fifth retry: 1 to 16 seconds
//! assert!((1..=16).contains(&delay));
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `ceiling` | [`ceiling`]: base · 2ⁿ⁻¹ under a cap, for every n |
//! | `jitter` | [`Jitter`] and [`Backoff`]: the draw under the ceiling |

mod ceiling;
mod jitter;

pub use ceiling::ceiling;
pub use jitter::{Backoff, Jitter, UnknownJitter};
