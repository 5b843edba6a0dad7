//! Tests that the compiler refuses misuse of `comeback-backoff`'s ladders: see `tests/misuse.rs`. They have a package
//! of their own, because `trybuild` builds the dependencies of the package with the tests a second time.
