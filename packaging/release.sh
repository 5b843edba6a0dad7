#!/usr/bin/env bash
# `make dist` (build) and `make check-dist` (check): the release in dist/, for the architectures in ARCHS.
set -euo pipefail
export ARCHS=${ARCHS:-arm64 x86_64}
with=tests/tools/with.sh

# First, so that a failure comes before any build: the scripts need it, and Python has it from 3.11 on.
tomllib() {
    local python
    for python in python3 .tools/packaging/bin/python; do
        command -v "$python" >/dev/null || continue
        "$python" -c "import tomllib" 2>/dev/null || {
            echo "error: the packaging needs Python 3.11 or later, and $(command -v "$python") is $("$python" --version)" >&2
            exit 1
        }
    done
}

build() {
    "$with" packaging sam about cyclonedx clients infra -- python packaging/dist.py
    local arguments=()
    for arch in $ARCHS; do arguments+=(--architecture "$arch"); done
    "$with" -- python3 packaging/packages.py dist "${arguments[@]}"
    "$with" packaging -- python packaging/manifest.py
}

# The ignored trials update from the release before this one, which they build, and run `verify-aws` on MiniStack.
check() {
    "$with" faketime ministack sam aws clients conformance packaging --
    packaging/check/semver.sh
    (cd packaging/tests && ../../"$with" packaging -- python -m unittest)
    (cd packaging/verify_aws/tests && ../../../"$with" clients -- python -m unittest)
    for template in dist/comeback*.yaml; do
        AWS_DEFAULT_REGION=us-east-1 "$with" -- sam validate --lint --template-file "$template"
        "$with" -- cfn-lint "$template"
    done
    "$with" -- cfn-lint dist/comeback.cfn.json
    "$with" -- cargo test --workspace --all-features --test release
    "$with" -- cargo test --workspace --all-features --test stack -- --ignored
    "$with" packaging -- python packaging/check/crates.py
    "$with" packaging -- python packaging/check/again.py
}

tomllib
set -x
"$1"
