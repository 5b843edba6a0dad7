//! Figures as people write and read them. Nothing here knows a subcommand.
//!
//! | file | holds |
//! |---|---|
//! | `numbers` | three digits, and steps of 1, 2 and 5 |
//! | `durations`, `rates` | durations and rates, both ways |
//! | `in_flight` | how many events can wait, in words |
//! | `table` | tables that fit 80 columns |
//! | `progress` | [`Progress`](progress::Progress): the bar on standard error |

pub(crate) mod durations;
pub(crate) mod in_flight;
pub(crate) mod numbers;
pub(crate) mod progress;
pub(crate) mod rates;
pub(crate) mod table;
