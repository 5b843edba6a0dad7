#!/usr/bin/env bash
# `make lint-rust`: checks formatting and the handler's dependencies, and compiles what `make test` runs.
set -euo pipefail
all=(--workspace --all-features)
cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
set -x
cargo fmt --all --check
# aws-lc would come with a second HTTP client, which would make the handler 50 % larger.
if cargo tree --package retry-handler --edges normal --prefix none | grep aws-lc; then exit 1; fi
cargo test "${all[@]}" --lib --bins --test '*' --no-run
# `cargo test --examples` would build the examples as tests.
cargo build "${all[@]}" --examples --benches
