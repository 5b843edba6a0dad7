//! The Rust lines of docs/envelope.md, as the function that a reader makes of them.

include!("../../tests/envelope_targets/target.rs");
