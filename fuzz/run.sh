#!/usr/bin/env bash
# `make fuzz`: fuzzes each parser for FUZZ_SECONDS. LTO is off, because it would remove libFuzzer's counters.
# Sanitizers are off, because safe Rust does not need them.
set -euo pipefail
cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
cargo run --package comeback-fuzz --bin seeds
for target in batch_event invocation_record envelope decide retry_after; do
    CARGO_PROFILE_RELEASE_LTO=false cargo +nightly fuzz run --sanitizer none "$target" \
        -- -max_total_time="${FUZZ_SECONDS:-600}" -timeout=10
done
