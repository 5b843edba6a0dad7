//! Tests that misuse of `comeback-backoff`, in particular of its macro `ladder!`, does not compile: see
//! `tests/misuse.rs`. These tests are in a package of their own, because `trybuild` builds all dependencies of the
//! tests' package a second time.
