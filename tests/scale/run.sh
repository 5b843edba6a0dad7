#!/usr/bin/env bash
# `make scale`: measures simulations of up to a million events, and commands that read 100,000 dead-letters, log lines
# or waiting events.
set -euxo pipefail
cargo build --profile dist -p comeback
# The console starts in another folder, so the command's path must be absolute.
comeback=$(realpath "${CARGO_TARGET_DIR:-target}/dist/comeback")
for measure in measure dead_letters waiting recall; do
    python3 "tests/scale/$measure.py" "$comeback"
done
