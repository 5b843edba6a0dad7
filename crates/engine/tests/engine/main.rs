//! Tests of the engine through its public API. `decide`, `directives`, `pauses`, `retry_now` and `cancels` test the
//! rules. `batch`, `moves`, `held` and `batch_invariants` test `Environment`. `reading`, `dead_letters`, `policy` and
//! `policies` test the input and output of the engine. `model` model-checks the protocol of one event. `account` is a
//! stand-in for AWS, and `support` builds messages and policies.

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
