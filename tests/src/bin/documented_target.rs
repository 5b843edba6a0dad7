//! The Rust lines of docs/envelope.md, as the function that a reader builds from them.

include!("../../tests/envelope_targets/target.rs");
