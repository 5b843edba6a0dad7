//! Tests of the engine's rules through its public API. `decide`, `directives`, `pauses`, `retry_now` and `cancels` test
//! the rules at their limits. `batch`, `moves`, `held` and `batch_invariants` test `Environment`. `reading`,
//! `dead_letters`, `policy` and `policies` test the input and output of the engine. `model` checks the protocol of one
//! event in every order of steps and faults. Tests that need AWS use the stand-in `account`, in which a test can make
//! calls fail. `support` builds messages and policies. `settings_file` compares the table of settings with the file for
//! other languages.

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
