#!/usr/bin/env bash
# The compiler of our own crates in `make test`, as cargo's RUSTC_WORKSPACE_WRAPPER: clippy, for which a warning is an error.
# Some tests build crates as other projects do, with rustc.
set -euo pipefail
case ${CARGO_PKG_NAME-} in
outside | comeback-compile-fail-tests) exec "$@" ;;
*) CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ exec clippy-driver "$@" ;;
esac
