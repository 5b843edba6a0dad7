//! A function with the Rust code from docs/envelope.md, built as a reader of that page would build it.

include!("../../tests/envelope_targets/target.rs");
