//! The engine's rules, tested through its public surface. `decide`, `directives`, `pauses` and `retry_now` hold the rules
//! to their limits; `batch`, `moves`, `held` and `batch_invariants` the environment; `reading`, `dead_letters`, `policy` and
//! `policies` what goes in and comes out. `model` checks one event's protocol in every order of steps and faults. All that
//! need AWS have the same `account`, which fails as planned. `support` builds messages and policies. `settings_file` keeps
//! the table of settings that other languages read.

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
