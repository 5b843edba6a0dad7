//! Text for the terminal. Nothing here knows a subcommand.

pub(crate) mod terminal;

#[cfg(feature = "operate")]
pub(crate) use comeback_operate::{durations, numbers};
