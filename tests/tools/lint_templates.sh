#!/usr/bin/env bash
# `make lint-templates`: checks template.yaml, and the plain CloudFormation template that a release derives from it.
set -euxo pipefail
sam validate --lint
cfn-lint template.yaml
python packaging/cloudformation.py 1.0.0 | cfn-lint
