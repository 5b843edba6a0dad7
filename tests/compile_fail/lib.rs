//! Tests that misuse of `comeback-backoff`, above all of its macro `ladder!`, does not compile: see `tests/misuse.rs`.
//! The tests have their own package, because `trybuild` builds all dependencies of its package a second time.
