"""Compares the template of a release with its source."""

import unittest

from support import ROOT

import template
from build import Refused
from ruamel.yaml import YAML

SOURCE = (ROOT / "template.yaml").read_text()

HANDLER = ("Resources", "RetryHandler")
EXAMPLE = ("Resources", "ExampleTarget")
GROUP = ("Metadata", "AWS::CloudFormation::Interface", "ParameterGroups", 4, "Parameters")

# The maximum length and the pattern of metadata members ("AWS SAM template Metadata section properties").
ACCEPTED = {
    "Name": (140, r"\A[a-zA-Z0-9-]+\Z"),
    "Description": (256, "."),
    "Author": (127, r"\A[a-z0-9](([a-z0-9]|-(?!-))*[a-z0-9])?\Z"),
    "LicenseBody": (5_000_000, "."),
    "ReadmeBody": (5_000_000, "."),
    "Labels": (127, r"\A[a-zA-Z0-9+\-_:/@]+\Z"),
}


def generated(arch: str, source: str = SOURCE) -> dict:
    return YAML().load(template.generate(source, arch, "1.2.3", "the licence\n"))


def differences(left: object, right: object, path: tuple = ()) -> set[tuple]:
    if isinstance(left, dict) and isinstance(right, dict):
        keys = set(left) | set(right)
        return {it for key in keys for it in differences(left.get(key), right.get(key), (*path, key))}
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return {it for n in range(len(left)) for it in differences(left[n], right[n], (*path, n))}
    return set() if text(left) == text(right) else {path}


def text(node: object) -> str:
    """Returns a node as a string for comparison, because equal tagged scalars (`!Ref X`) do not compare equal."""
    return f"{getattr(node, 'tag', None)} {getattr(node, 'value', node)}"


class Template(unittest.TestCase):
    def test_differs_from_source_only_here(self):
        expected = {
            ("Parameters", "Architecture"),
            ("Parameters", "Example", "Default"),
            ("Globals", "Function", "Architectures", 0),
            ("Metadata", "AWS::ServerlessRepo::Application"),
            ("Outputs", "AttachCommands", "Value", 0),
            GROUP,
            *[(*function, place) for function in (HANDLER, EXAMPLE) for place in ("Metadata",)],
            *[(*function, "Properties", "CodeUri") for function in (HANDLER, EXAMPLE)],
        }
        self.assertEqual(differences(YAML().load(SOURCE), generated("x86_64")), expected)

    def test_its_code_is_in_zips_of_its_architecture(self):
        for arch in ("arm64", "x86_64"):
            made = generated(arch)
            self.assertEqual(made["Globals"]["Function"]["Architectures"], [arch])
            codes = [made["Resources"][name]["Properties"]["CodeUri"] for name in ("RetryHandler", "ExampleTarget")]
            self.assertEqual(codes, [f"retry-handler-{arch}.zip", f"flaky-target-{arch}.zip"])
            self.assertEqual(made["Parameters"]["Example"]["Default"], "no")

    def test_it_keeps_the_comments_and_names_its_source(self):
        made = template.generate(SOURCE, "arm64", "1.2.3", "the licence\n")
        self.assertTrue(made.startswith("# Comeback 1.2.3 for arm64. `make dist` made this from template.yaml"))
        comments = {line.strip() for line in SOURCE.splitlines() if line.strip().startswith("# ")}
        self.assertEqual({comment for comment in comments if comment not in made}, set())

    def test_attach_commands_deploy_this_file(self):
        commands = generated("x86_64")["Outputs"]["AttachCommands"]["Value"][0]
        deploy = "sam deploy --template-file comeback-x86_64.yaml --resolve-s3 --capabilities CAPABILITY_IAM --stack-name"
        self.assertIn(deploy, commands)

    def test_source_without_attach_command_is_refused(self):
        with self.assertRaisesRegex(Refused, "AttachCommands of template.yaml should hold 'sam deploy ' once"):
            generated("arm64", SOURCE.replace("sam deploy --stack-name", "sam sync --stack-name"))

    def test_metadata_describes_an_application(self):
        application = generated("arm64")["Metadata"]["AWS::ServerlessRepo::Application"]
        self.assertEqual(application["SemanticVersion"], "1.2.3")
        self.assertEqual(application["LicenseBody"], "the licence\n")

    def test_metadata_is_accepted_by_the_repository(self):
        application = generated("arm64")["Metadata"]["AWS::ServerlessRepo::Application"]
        for member, (longest, pattern) in ACCEPTED.items():
            values = application[member] if member == "Labels" else [application[member]]
            for value in values:
                self.assertIn(len(value), range(1, longest + 1), member)
                self.assertRegex(value, pattern, member)
        self.assertIn(len(application["Labels"]), range(1, 11))
