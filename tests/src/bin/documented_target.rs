//! The Rust lines of docs/envelope.md, built as the function that a reader makes of them.

include!("../../tests/envelope_targets/target.rs");
