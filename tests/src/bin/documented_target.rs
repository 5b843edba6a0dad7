//! The Rust lines of docs/envelope.md, built into the function that a reader would make of them.

include!("../../tests/envelope_targets/target.rs");
