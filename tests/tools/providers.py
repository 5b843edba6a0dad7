"""Rewrites tests/golden/providers/*.txt: the attributes of the resources in docs/attach-with-your-tool.md, as the packages
of infrastructure tools declare them. Needs npm, and takes a few minutes, because the packages are large.

Run: python3 tests/tools/providers.py
"""

import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "providers"
# For each tool: its package, the file that declares each resource, and a regular expression for the resources'
# attributes.
PROVIDERS = {
    "terraform": (
        "@cdktn/provider-aws",
        {
            "aws_iam_role_policy": "package/lib/iam-role-policy/index.d.ts",
            "aws_lambda_function_event_invoke_config": "package/lib/lambda-function-event-invoke-config/index.d.ts",
            "aws_lambda_function_recursion_config": "package/lib/lambda-function-recursion-config/index.d.ts",
        },
        r"Docs at Terraform Registry: .*?#([a-z_]+)|resources/[a-z_]+#([a-z_]+)",
    ),
    "pulumi": (
        "@pulumi/aws",
        {
            "aws.iam.RolePolicy": "package/iam/rolePolicy.d.ts",
            "aws.lambda.FunctionEventInvokeConfig": "package/lambda/functionEventInvokeConfig.d.ts",
            "aws.lambda.FunctionRecursionConfig": "package/lambda/functionRecursionConfig.d.ts",
            "inputs.lambda.FunctionEventInvokeConfigDestinationConfig": "package/types/input.d.ts",
        },
        r"^ +([a-zA-Z]+)\??: pulumi\.Input",
    ),
}


def attributes(resource: str, text: str, pattern: str) -> list[str]:
    if resource.startswith("inputs."):
        # This file declares the input types of all resources. Search only the interfaces whose names start with `name`.
        name = resource.rsplit(".", 1)[1]
        text = "\n".join(re.findall(rf"interface {name}\w* \{{.*?^    \}}", text, re.DOTALL | re.MULTILINE))
    found = re.findall(pattern, text, re.MULTILINE)
    return sorted({"".join(one) if isinstance(one, tuple) else one for one in found})


def main() -> None:
    for provider, (package, files, pattern) in PROVIDERS.items():
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(
                ["npm", "pack", package, "--json"], cwd=folder, check=True, capture_output=True, text=True
            )
            [about] = json.loads(packed.stdout)
            lines = [f"{package} {about['version']}"]
            with tarfile.open(Path(folder) / about["filename"]) as archive:
                for resource, file in files.items():
                    member = archive.extractfile(file)
                    assert member, file
                    found = attributes(resource, member.read().decode(), pattern)
                    lines.append(f"{resource}: {' '.join(found)}")
        (GOLDEN / f"{provider}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
