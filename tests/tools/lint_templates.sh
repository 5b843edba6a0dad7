#!/usr/bin/env bash
# `make lint-templates`: checks template.yaml, and the template that a release makes from it for CloudFormation alone.
set -euxo pipefail
sam validate --lint
cfn-lint template.yaml
python packaging/cloudformation.py 1.0.0 | cfn-lint
