#!/usr/bin/env bash
# `make lock-tools`: for each NAME.in, writes tests/tools/NAME.txt, which pins all dependencies of NAME.in with hashes.
set -euo pipefail
for tools in tests/tools/*.in; do
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
        "$tools" --output-file "${tools%.in}.txt"
done
