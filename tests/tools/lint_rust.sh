#!/usr/bin/env bash
# `make lint-rust`: formatting, the handler's dependencies, and clippy, which builds everything that `make test` runs.
set -euo pipefail
all=(--workspace --all-features)
cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
set -x
cargo fmt --all --check
# The handler has its own HTTP client. A second one adds half to its size.
if cargo tree --package retry-handler --edges normal --prefix none | grep aws-lc; then exit 1; fi
cargo test "${all[@]}" --lib --bins --test '*' --no-run
# Not with `cargo test`: for that, an example that is named is a test.
cargo build "${all[@]}" --examples --benches
