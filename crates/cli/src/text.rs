//! Figures as people write and read them. Nothing here knows a subcommand.

pub(crate) mod durations;
pub(crate) mod in_flight;
pub(crate) mod numbers;
pub(crate) mod terminal;
