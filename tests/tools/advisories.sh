#!/usr/bin/env bash
# `make advisories`: looks up known vulnerabilities of dependencies on GitHub, npm and PyPI. This is not part of `make
# check`, which uses none of these services.
set -euxo pipefail
cargo deny check advisories
for folder in infra clients/node clients/node-sqs tests/console; do npm --prefix "$folder" audit --package-lock-only; done
for tools in tests/tools/*.txt; do pip-audit --require-hashes --disable-pip --requirement "$tools"; done
