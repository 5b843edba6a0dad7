#!/usr/bin/env bash
# Packs the published crates, and builds each from its tarball, with the other tarballs in place of the registry.
set -euo pipefail
fail() {
    echo "error: $1" >&2
    exit 1
}

others=$(git ls-files '*/Cargo.toml' ':!crates' | xargs grep -L '^publish = false') || true
[ -z "$others" ] || fail "this should have \`publish = false\`, because it is not in crates/: $others"

packed=${CARGO_TARGET_DIR:-target}/package
rm -rf "$packed"
# Debug information is off, because nobody debugs these builds.
CARGO_PROFILE_DEV_DEBUG=false cargo package --locked --allow-dirty "$@" \
    $(sed -sn '0,/^name = "\(.*\)"$/s//--package \1/p' crates/*/Cargo.toml)
for crate in "$packed"/*.crate; do
    [ "$(tar -tzf "$crate" | grep -c '^[^/]*/LICENSE-\(MIT\|APACHE\)$')" = 2 ] || fail "$crate lacks a licence"
done
