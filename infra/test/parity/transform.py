"""Prints template.yaml as CloudFormation sees it: after the SAM transform, its short intrinsics in their long form."""

import json
import os
import sys

from samtranslator.public.translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies(ManagedPolicyLoader):
    """The template names none, and asking IAM for their ARNs needs an account."""

    def __init__(self):
        super().__init__(None)

    def load(self):
        return {}


with open(sys.argv[1], encoding="utf-8") as template:
    sam = yaml_parse(template)
for resource in sam["Resources"].values():
    if "CodeUri" in resource["Properties"]:
        # What `sam package` would put there.
        resource["Properties"]["CodeUri"] = "s3://bucket/key"
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")
json.dump(transform(sam, {}, NoManagedPolicies()), sys.stdout)
