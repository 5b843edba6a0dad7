#!/usr/bin/env bash
# `make scale`: up to a million events, then 100,000 dead-letters, log lines and recalls.
set -euxo pipefail
cargo build --release -p comeback
for measure in measure dead_letters waiting recall; do
    python3 "tests/scale/$measure.py" "${CARGO_TARGET_DIR:-target}/release/comeback"
done
