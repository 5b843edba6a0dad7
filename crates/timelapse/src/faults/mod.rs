//! What goes wrong in a run.

pub(crate) mod dice;
pub(crate) mod fault;
pub(crate) mod mix;
