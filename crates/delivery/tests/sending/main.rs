//! The core, over a service that does as its script says.
//!
//! | file | holds |
//! |---|---|
//! | `service` | the scripted service: what it answers, and what it saw |
//! | `outcomes` | any input, any errors: what holds of every outcome |
//! | `packing` | batches: how few, how full |
//! | `retrying` | which waits, how often, what goes again |
//! | `halving` | calls refused whole for one bad entry |
//! | `ending` | what ends a delivery early |
//! | `deadline`, `interruption` | ending before the end |
//! | `metered` | a service that takes so much a second |
//! | `throttling` | the pace of a sender on it |
//! | `streams` | entries that come one by one, from a stream or many tasks |
//! | `spans` | what is traced |
//! | `lanes` | order, and what is left with a lane's first failure |

mod deadline;
mod ending;
mod halving;
mod interruption;
mod lanes;
mod metered;
mod outcomes;
mod packing;
mod retrying;
mod service;
mod spans;
mod streams;
mod throttling;
