//! Misuse of `comeback-backoff`'s ladders, which the compiler refuses: see `tests/ladder.rs`. It is a package of its own,
//! because `trybuild` builds the dependencies of the package that it tests once more.
