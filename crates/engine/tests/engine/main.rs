//! The engine's rules, tested through its public surface. `decide`, `directives`, `pauses` and
//! `retry_now` hold the rules to their limits; `batch`, `moves`, `held` and `batch_invariants` the environment, with an
//! account that fails as planned (`fakes`); `model` checks one event's protocol in every order of steps and faults;
//! `reading`, `dead_letters`, `policy` and
//! `policies` what goes in and comes out. `support` builds messages and policies.

mod batch;
mod batch_invariants;
mod dead_letters;
mod decide;
mod directives;
mod fakes;
mod held;
mod model;
mod moves;
mod pauses;
mod policies;
mod policy;
mod reading;
mod retry_now;
mod support;
