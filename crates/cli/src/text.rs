//! Text for the terminal. Nothing here knows a subcommand.

pub(crate) mod terminal;
