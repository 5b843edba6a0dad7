//! Seeing a run as it goes.

pub(crate) mod trace;
pub(crate) mod watcher;
