//! Checks that misuse of `comeback-backoff`, above all of `ladder!`, does not compile.
//!
//! The tests have their own package with few dependencies, because `trybuild` builds the dependencies a second time.
