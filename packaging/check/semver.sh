#!/usr/bin/env bash
# `make semver`: checks that the libraries are as compatible with the previous release as their versions promise.
set -euo pipefail
release=$(git describe --tags --match 'v*' --abbrev=0 HEAD^ 2>/dev/null) || {
    echo "no release before this one, so nothing to keep"
    exit 0
}
exec tests/tools/with.sh semver -- cargo semver-checks --baseline-rev "$release" \
    -p comeback-backoff -p comeback-delivery -p comeback-envelope
