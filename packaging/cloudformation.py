"""Prints `comeback.cfn.json`: `template.yaml` without a transform, for CloudFormation without the SAM CLI.

Run as a program, it needs the SAM CLI's Python, and the release's version as its argument.
"""

import json
import sys
from pathlib import Path

from expand import expand, functions, read

NAME = "comeback.cfn.json"

# The deploy command in a checkout, with its options in samconfig.toml.
DEPLOY = "sam deploy "

# For each program, the template parameter that contains the S3 key of its zip file.
KEYS = {"retry-handler": "CodeKey", "flaky-target": "ExampleCodeKey"}


def generate(source: dict, version: str) -> str:
    """Returns the template on one line, because CloudFormation accepts at most 51,200 bytes outside a bucket."""
    take_code_from_bucket(source)
    source["Parameters"]["Example"]["Default"] = "no"
    source["Parameters"]["Architecture"]["Description"] = "The functions' processor: the one that the zips are for."
    deploy_from_here(source["Outputs"]["AttachCommands"]["Value"]["Fn::Sub"])
    head = f"Comeback {version}. `make dist` made this from template.yaml: change that one."
    source["Metadata"] = {"Comeback": head, **source["Metadata"]}
    return json.dumps(expand(source), separators=(",", ":")) + "\n"


def take_code_from_bucket(template: dict) -> None:
    for function in functions(template):
        program = function.pop("Metadata")["BuildProperties"]["Binary"]
        function["Properties"]["CodeUri"] = {"Bucket": {"Ref": "CodeBucket"}, "Key": {"Ref": KEYS[program]}}
    template["Parameters"] = {
        "CodeBucket": {
            "Type": "String",
            "Description": "The bucket with the functions' code, in this region.",
        },
        "CodeKey": {
            "Type": "String",
            "MinLength": 1,
            "Description": "The key of the retry handler's zip. CloudFormation deploys other code only under another key.",
        },
        "ExampleCodeKey": {
            "Type": "String",
            "Default": "flaky-target-arm64.zip",
            "Description": "The key of the example function's zip. Nothing reads it unless Example is yes.",
        },
        **template["Parameters"],
    }
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    groups.insert(0, {"Label": {"default": "Code"}, "Parameters": ["CodeBucket", "CodeKey", "ExampleCodeKey"]})


def deploy_from_here(commands: list) -> None:
    """Changes the commands that attach a function, so that they deploy this template."""
    if commands[0].count(DEPLOY) != 1:
        sys.exit(f"error: the output AttachCommands of template.yaml should hold {DEPLOY!r} once: {commands[0]}")
    deploy = f"aws cloudformation deploy --template-file {NAME} --capabilities CAPABILITY_IAM "
    commands[0] = commands[0].replace(DEPLOY, deploy)


if __name__ == "__main__":
    template = Path(__file__).resolve().parent.parent / "template.yaml"
    sys.stdout.write(generate(read(str(template)), sys.argv[1]))
