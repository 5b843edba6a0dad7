#!/usr/bin/env bash
# `make advisories`: checks all dependencies for known vulnerabilities. The check needs access to GitHub, npm and
# PyPI.
set -euxo pipefail
cargo deny check advisories
for folder in infra clients/node clients/node-sqs tests/console; do npm --prefix "$folder" audit --package-lock-only; done
for tools in tests/tools/*.txt; do pip-audit --require-hashes --disable-pip --requirement "$tools"; done
