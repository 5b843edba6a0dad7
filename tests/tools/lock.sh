#!/usr/bin/env bash
# `make lock-tools`: writes tests/tools/NAME.txt for each NAME.in, with all its dependencies and their hashes.
set -euo pipefail
for tools in tests/tools/*.in; do
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
        "$tools" --output-file "${tools%.in}.txt"
done
