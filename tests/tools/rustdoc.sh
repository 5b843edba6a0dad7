#!/usr/bin/env bash
# Runs rustdoc for `cargo test --doc`, and also builds the library's documentation, with warnings as errors.
#
# A separate `cargo doc` would process all dependencies again.
set -euo pipefail
if [[ " $* " == *" --test "* && " $* " == *" crates/"* ]]; then
    arguments=()
    for argument; do [ "$argument" = --test ] || arguments+=("$argument"); done
    rustdoc "${arguments[@]}" -D warnings -o "${CARGO_TARGET_DIR:-target}/doc"
fi
exec rustdoc "$@"
