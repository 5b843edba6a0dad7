#!/usr/bin/env bash
# Compiles our own crates with clippy. In `make test`, this script is cargo's RUSTC_WORKSPACE_WRAPPER.
#
# Two crates are compiled with rustc, because tests build them as other projects would. CLIPPY_ARGS is set only in
# tests/tools/with.sh, so that its value never varies: cargo rebuilds the crates whenever it changes.
set -euo pipefail
case ${CARGO_PKG_NAME-} in
outside | comeback-compile-fail-tests) exec "$@" ;;
*) exec clippy-driver "$@" ;;
esac
