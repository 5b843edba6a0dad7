#!/usr/bin/env bash
# Compiles our own crates with clippy in `make test`, as cargo's RUSTC_WORKSPACE_WRAPPER. Crates that tests build as
# other projects would are compiled with rustc. CLIPPY_ARGS is not set here, because cargo rebuilds a crate that was
# built with a value other than cargo's own.
set -euo pipefail
case ${CARGO_PKG_NAME-} in
outside | comeback-compile-fail-tests) exec "$@" ;;
*) exec clippy-driver "$@" ;;
esac
