//! Tests of the engine through its public API.

mod account;
mod batch;
mod batch_invariants;
mod cancels;
mod dead_letters;
mod decide;
mod directives;
mod held;
mod model;
mod moves;
mod pauses;
mod policies;
mod policy;
mod reading;
mod retry_now;
mod settings_file;
mod support;
