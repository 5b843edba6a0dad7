#!/usr/bin/env bash
# `make lint-workflows`: looks for security holes in the workflows, and checks .github against schemas.
set -euo pipefail
zizmor --quiet --offline --persona pedantic --strict-collection .github
check() { check-jsonschema --quiet --builtin-schema "$@"; }
check vendor.github-workflows .github/workflows/*.yml
check vendor.dependabot .github/dependabot.yml
check vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
check vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
