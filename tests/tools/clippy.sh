#!/usr/bin/env bash
# Compiles our own crates with clippy in `make test`, as cargo's RUSTC_WORKSPACE_WRAPPER. Two crates are compiled with
# rustc, because tests build them as other projects would. tests/tools/with.sh sets CLIPPY_ARGS, and not this script,
# because cargo rebuilds a crate that was built with a value other than cargo's own.
set -euo pipefail
case ${CARGO_PKG_NAME-} in
outside | comeback-compile-fail-tests) exec "$@" ;;
*) exec clippy-driver "$@" ;;
esac
