#!/usr/bin/env bash
# Builds (`make dist`) or checks (`make check-dist`) the release in dist/, for the architectures in ARCHS.
set -euo pipefail
export ARCHS=${ARCHS:-arm64 x86_64}
with=tests/tools/with.sh

# Checks that Python has the module `tomllib`, which is part of Python 3.11 and later.
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

# Makes a reproducible build: no paths from this machine, and fixed timestamps and file modes.
build() {
    local cargo=${CARGO_HOME:-$HOME/.cargo}
    "$with" packaging sam about cyclonedx clients infra uv --
    export CARGO_TARGET_DIR=$PWD/target/dist
    export CARGO_ENCODED_RUSTFLAGS=--remap-path-prefix=$PWD=/comeback$'\x1f'--remap-path-prefix=$cargo=/cargo
    export CFLAGS="-ffile-prefix-map=$PWD=/comeback -ffile-prefix-map=$cargo=/cargo"
    # The default is the earliest time that a zip file can contain.
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
    umask 022
    "$with" packaging -- python packaging/dist.py
}

# The tests marked `ignore` deploy the previous release, update it to this one, and run `verify-aws` on MiniStack.
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
    "$with" -- packaging/check/crates.sh
    packaging/check/again.sh
}

tomllib
set -x
"$1"
