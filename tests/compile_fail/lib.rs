//! Tests that the compiler refuses misuse of `comeback-backoff`'s ladders: see `tests/misuse.rs`. These tests are in a
//! package of their own, because `trybuild` builds all dependencies of the tests' package a second time.
