#!/usr/bin/env bash
# Compiles our own crates with clippy in `make test`, as cargo's RUSTC_WORKSPACE_WRAPPER. Two crates are compiled with
# rustc, because tests build them as other projects would. CLIPPY_ARGS is set in tests/tools/with.sh and not here,
# because cargo rebuilds a crate if it was built with a value that differs from the one in cargo's own environment.
set -euo pipefail
case ${CARGO_PKG_NAME-} in
outside | comeback-compile-fail-tests) exec "$@" ;;
*) exec clippy-driver "$@" ;;
esac
