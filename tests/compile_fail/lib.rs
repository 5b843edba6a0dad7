//! Tests that misuse of `comeback-backoff`, in particular of its macro `ladder!`, does not compile: see
//! `tests/misuse.rs`. These tests have their own package, because `trybuild` builds all dependencies of its package a
//! second time.
