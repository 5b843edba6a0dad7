//! Tests that misuse of `comeback-backoff`, above all of `ladder!`, does not compile.
//!
//! The tests have their own package, because `trybuild` builds a package's dependencies a second time.
