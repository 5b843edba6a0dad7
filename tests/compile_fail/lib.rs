//! Tests that misuse of `comeback-backoff`, in particular of its macro `ladder!`, does not compile: see
//! `tests/misuse.rs`. These tests have their own package, because `trybuild` builds a second copy of all dependencies
//! of the package that uses it.
