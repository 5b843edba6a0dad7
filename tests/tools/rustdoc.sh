#!/usr/bin/env bash
# Runs rustdoc for `cargo test --doc`. Also builds the library's documentation, and treats its warnings as errors.
#
# A separate `cargo doc` would process all dependencies again.
set -euo pipefail
if [[ " $* " == *" --test "* && " $* " == *" crates/"* ]]; then
    arguments=()
    for argument; do [ "$argument" = --test ] || arguments+=("$argument"); done
    rustdoc "${arguments[@]}" -D warnings -o "${CARGO_TARGET_DIR:-target}/doc"
fi
exec rustdoc "$@"
