#!/usr/bin/env bash
# `make lint-rust`: formatting, clippy, the handler's dependencies, and the documentation's links.
set -euo pipefail
all=(--workspace --all-features)
cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
set -x
cargo fmt --all --check
cargo clippy "${all[@]}" --lib --bins --examples --test '*' --benches -- -D warnings
# The handler has its own HTTP client. A second one adds half to its size.
if cargo tree --package retry-handler --edges normal --prefix none | grep aws-lc; then exit 1; fi
# With an example, the dependencies keep the same features as for clippy; with clippy's driver and arguments, our own crates
# are not checked once more.
export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps "${all[@]}" --lib --bin retry-handler --bin flaky-target --example manual
