#!/usr/bin/env bash
# Runs rustdoc for `cargo test --doc`: before a library's examples are tested, its documentation is built, and a warning is an
# error. `cargo doc` by itself would go through all dependencies once more.
set -euo pipefail
if [[ " $* " == *" --test "* && " $* " == *" crates/"* ]]; then
    arguments=()
    for argument; do [ "$argument" = --test ] || arguments+=("$argument"); done
    rustdoc "${arguments[@]}" -D warnings -o "${CARGO_TARGET_DIR:-target}/doc"
fi
exec rustdoc "$@"
