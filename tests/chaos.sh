#!/usr/bin/env bash
# `make chaos`: simulates every fault with SEEDS seeds under each policy.
set -euo pipefail
seeds=${SEEDS:-2000}
policies=(
    ""
    "--base-backoff 1s --max-backoff 43170s"
    "--jitter none --max-age 2h --hide-up-to 0"
    "--jitter equal --envelope inline --max-retries 6 --hide-up-to 20 --maximum-concurrency 2"
    "--jitter decorrelated --max-backoff 10m --failure-rate 0.5 --hide-up-to always"
    "--hide-up-to 5"
    "--base-backoff 6h --max-backoff 43170s --max-age 14d --for 15d --outage 13d"
)

simulate() {
    cargo run --release --quiet -p comeback -- simulate "$@"
}

for policy in "${policies[@]}"; do
    simulate --chaos --events 50 --seeds "$seeds" $policy
    simulate --chaos=storm --events 10 --seeds "$seeds" $policy
done
