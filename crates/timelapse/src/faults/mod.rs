//! What goes wrong in a run.
//!
//! | file | holds |
//! |---|---|
//! | `fault` | [`Fault`](fault::Fault): each that there is |
//! | `mix` | [`Faults`](mix::Faults): how often and when faults strike in a run; the mixes of chaos and of a storm |
//! | `dice`, `generator` | when they strike |
//! | `records` | how they change an invocation record |

pub(crate) mod dice;
pub(crate) mod fault;
pub(crate) mod generator;
pub(crate) mod mix;
pub(crate) mod records;
