#!/usr/bin/env bash
# `make advisories`: asks GitHub, npm and PyPI for known weaknesses of dependencies. Not a part of `make check`, which
# uses none of the three.
set -euxo pipefail
cargo deny check advisories
for folder in infra clients/node clients/node-sqs tests/console; do npm --prefix "$folder" audit --package-lock-only; done
for tools in tests/tools/*.txt; do pip-audit --require-hashes --disable-pip --requirement "$tools"; done
