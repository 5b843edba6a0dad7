#!/usr/bin/env bash
# `make bench-handler`: measures the handler and an empty function.
#
# To measure the Python handler from the article in docs/migrating.md, copy it to article/article.py. To compare with
# an earlier commit, set BEFORE, for example to v0.1.0.
set -euo pipefail
machine=$(uname -m)
case $machine in aarch64) machine=arm64 ;; x86_64) machine=x86-64 ;; esac
build() { cargo lambda build --release "--$machine" -p retry-handler "$@"; }

build -p comeback-handler-speed
built=${CARGO_TARGET_DIR:-target}/lambda
others=()
if [ -n "${BEFORE:-}" ]; then
    rm -rf target/before && git worktree prune && git worktree add --detach target/before "$BEFORE"
    (before_built=$PWD/target/before-built; cd target/before && CARGO_TARGET_DIR=$before_built build)
    others+=(before=target/before-built/lambda/retry-handler/bootstrap)
fi
if [ -e tests/handler_speed/article/article.py ]; then
    tests/tools/with.sh clients --
    others+=(tests/handler_speed/article/bootstrap)
fi
"$built/bench-handler/bootstrap" "$built/retry-handler/bootstrap" "$built/bare-bootstrap/bootstrap" "${others[@]}"
