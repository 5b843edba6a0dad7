//! The figures of a run.

pub(crate) mod calls;
pub(crate) mod percentiles;
pub mod prices;
pub(crate) mod summary;
