#!/usr/bin/env bash
# `make lint-clients` (argument `check`) and `make test-clients` (argument `test`), for the packages in clients/.
set -euo pipefail
case $1 in
check) python=(mypy) ;;
test) python=(pytest --quiet) ;;
esac
set -x
for client in clients/python clients/python-sqs; do (cd "$client" && python -m "${python[@]}"); done
for client in clients/node clients/node-sqs; do npm --prefix "$client" run "$1"; done
