//! A chart each, with the figures behind it.
//!
//! | file | holds |
//! |---|---|
//! | `retries` | retries over time |
//! | `attempts` | events by their attempts |
//! | `depth` | messages in flight, delayed and visible, and the limit |
//! | `recovery` | deliveries after the outage, by jitter |
//! | `life` | one event from its first failure on |
//! | `canvas` | what the charts share |

pub(super) mod attempts;
mod canvas;
pub(super) mod depth;
pub(super) mod life;
pub(super) mod recovery;
pub(super) mod retries;
