"""Writes `comeback.yaml`, the release's version of `template.yaml`. Its functions are in zips beside it."""

from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from build import Refused

REPOSITORY = "https://github.com/comeback-retries/comeback"

# The deploy command in a checkout, with its options in samconfig.toml.
DEPLOY = "sam deploy "

README = f"""\
Comeback retries failed asynchronous Lambda functions, with exponential backoff and full jitter, waits of up to 12 hours,
and for up to 14 days. This application is the retry queue, the dead-letter queue and the retry handler between them.

Next, [attach your functions]({REPOSITORY}/blob/main/docs/attach.md). The
[documentation]({REPOSITORY}/blob/main/docs/README.md) has one page for each task.
"""


def name(arch: str) -> str:
    """Returns the file name of an architecture's template. The one for arm64, which is cheaper, has the plain name."""
    return "comeback.yaml" if arch == "arm64" else f"comeback-{arch}.yaml"


def generate(source: str, arch: str, version: str, licence: str) -> str:
    """Returns a release's template for an architecture, with the text of the MIT licence in its metadata."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    template = yaml.load(source)
    fix_architecture(template, arch)
    take_code_from_zips(template["Resources"], arch)
    template["Parameters"]["Example"]["Default"] = DoubleQuotedScalarString("no")
    deploy_from_here(template["Outputs"]["AttachCommands"]["Value"], arch)
    # Inserted first, because the comment on `Parameters` is attached to the last key of `Metadata`. A key inserted
    # after that key would follow the comment.
    template["Metadata"].insert(0, "AWS::ServerlessRepo::Application", application(version, licence))
    head = f"Comeback {version} for {arch}. `make dist` made this from template.yaml: change that one."
    template.yaml_set_start_comment(head + "\n")
    text = StringIO()
    yaml.dump(template, text)
    return text.getvalue()


def fix_architecture(template: dict, arch: str) -> None:
    """Removes the parameter `Architecture`, because the zips are for one architecture."""
    del template["Parameters"]["Architecture"]
    template["Globals"]["Function"]["Architectures"][:] = [arch]
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    [group] = [group for group in groups if "Architecture" in group["Parameters"]]
    group["Parameters"].remove("Architecture")


def take_code_from_zips(resources: dict, arch: str) -> None:
    functions = [resource for resource in resources.values() if resource["Type"] == "AWS::Serverless::Function"]
    for function in functions:
        program = function.pop("Metadata")["BuildProperties"]["Binary"]
        function["Properties"]["CodeUri"] = f"{program}-{arch}.zip"


def deploy_from_here(commands: list, arch: str) -> None:
    """Changes the commands that attach a function, so that they deploy this template."""
    if commands[0].count(DEPLOY) != 1:
        raise Refused(f"the output AttachCommands of template.yaml should hold {DEPLOY!r} once: {commands[0]}")
    deploy = f"{DEPLOY}--template-file {name(arch)} --resolve-s3 --capabilities CAPABILITY_IAM "
    commands[0] = LiteralScalarString(commands[0].replace(DEPLOY, deploy))


def application(version: str, licence: str) -> dict:
    """Returns the metadata that `sam publish` needs."""
    return {
        "Name": "comeback",
        "Description": "Durable retries for asynchronous Lambda functions: a retry queue, a dead-letter queue and the retry handler between them.",
        "Author": "comeback-retries",
        "SpdxLicenseId": "MIT",
        "LicenseBody": LiteralScalarString(licence),
        "ReadmeBody": LiteralScalarString(README),
        "Labels": ["retry", "backoff", "sqs", "lambda", "dead-letter"],
        "HomePageUrl": REPOSITORY,
        "SourceCodeUrl": f"{REPOSITORY}/tree/v{version}",
        "SemanticVersion": version,
    }
