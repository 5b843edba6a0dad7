#!/usr/bin/env bash
# `make semver`: checks that the libraries stay compatible with the previous release. Before 1.0, a new minor version
# may break compatibility, and cargo-semver-checks allows that.
set -euo pipefail
release=$(git describe --tags --match 'v*' --abbrev=0 HEAD^ 2>/dev/null) || {
    echo "no release before this one, so nothing to keep"
    exit 0
}
exec tests/tools/with.sh semver -- cargo semver-checks --baseline-rev "$release" \
    -p comeback-backoff -p comeback-delivery -p comeback-envelope
