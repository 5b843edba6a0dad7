#!/usr/bin/env bash
# The compiler of our own crates in `make test`, as cargo's RUSTC_WORKSPACE_WRAPPER: clippy. Some tests build crates as other
# projects do, with rustc. CLIPPY_ARGS is not set here, because cargo rebuilds what was built with another value than its own.
set -euo pipefail
case ${CARGO_PKG_NAME-} in
outside | comeback-compile-fail-tests) exec "$@" ;;
*) exec clippy-driver "$@" ;;
esac
