//! Tests that the compiler refuses misuse of `comeback-backoff`'s ladders: see `tests/misuse.rs`. These tests have
//! their own package, because `trybuild` builds all dependencies of the tests' package a second time.
