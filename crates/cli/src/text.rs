//! Figures as people write and read them. Nothing here knows a subcommand.

pub(crate) mod in_flight;
pub(crate) mod terminal;

pub(crate) use comeback_operate::{durations, numbers};
