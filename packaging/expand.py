"""Expands a SAM template to plain CloudFormation, by the SAM CLI's own rules. Needs the SAM CLI's Python.

Run as a program, it prints a template as CloudFormation sees it after `sam package`.
"""

import json
import os
import sys

from samtranslator.public.translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


def read(path: str) -> dict:
    """Reads a template. Converts its short intrinsic functions (`!Ref`) to their long form."""
    with open(path, encoding="utf-8") as template:
        return yaml_parse(template)


def functions(template: dict) -> list[dict]:
    return [it for it in template["Resources"].values() if it["Type"] == "AWS::Serverless::Function"]


def expand(template: dict) -> dict:
    # The translator needs a region, but expands this template the same way in every region.
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")
    # Only the names of managed policies would be looked up in IAM, and the template has none.
    return transform(template, {}, ManagedPolicyLoader(iam_client=None))


if __name__ == "__main__":
    packaged = read(sys.argv[1])
    for function in functions(packaged):
        function["Properties"]["CodeUri"] = "s3://bucket/key"
    json.dump(expand(packaged), sys.stdout)
