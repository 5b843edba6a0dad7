#!/usr/bin/env bash
# Checks (`make lint-clients`) or tests (`make test-clients`) the Python and Node.js packages in clients/. The argument
# is `check` or `test`.
set -euo pipefail
case $1 in
check) python=(mypy) ;;
test) python=(pytest --quiet) ;;
esac
set -x
for client in clients/python clients/python-sqs; do (cd "$client" && python -m "${python[@]}"); done
for client in clients/node clients/node-sqs; do npm --prefix "$client" run "$1"; done
