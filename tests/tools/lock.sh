#!/usr/bin/env bash
# `make lock-tools`: writes tests/tools/NAME.txt, with hashes, for each NAME.in and all of its dependencies.
set -euo pipefail
for tools in tests/tools/*.in; do
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
        "$tools" --output-file "${tools%.in}.txt"
done
