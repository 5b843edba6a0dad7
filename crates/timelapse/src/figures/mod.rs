//! The figures of a run.
//!
//! | file | holds |
//! |---|---|
//! | `summary` | [`Summary`](summary::Summary): all of them |
//! | `calls` | how often each API call was made |
//! | `prices` | what AWS charges for calls and compute |
//! | `percentiles` | medians, 99th percentiles and maxima |

pub(crate) mod calls;
pub(crate) mod percentiles;
pub mod prices;
pub(crate) mod summary;
