"""The stack of the release."""

import os
import subprocess
from pathlib import Path

from account import Refused

ROOT = Path(__file__).resolve().parents[2]
RELEASED = ROOT / "dist" / "comeback.yaml"
CONFIG = Path(__file__).resolve().parent / "samconfig.toml"
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
# Twenty retries a second apart: more than the rounds after which Lambda stops a loop.
RETRIES = 20


def deploy(run, template, parameters):
    """Deploys the release under the run's name, and gives back the outputs of the stack."""
    if template is None and RELEASED.exists():
        template = RELEASED
    elif template is None:
        print(f"{RELEASED.relative_to(ROOT)} is not there (make dist): building the functions", flush=True)
        called("sam", "build")
        template = BUILT
    elif not template.exists():
        raise Refused(f"there is no template {template}")
    account = run.account
    bucket = f"{run.name}-{account.number}"
    elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": account.region}}
    account.buckets.create_bucket(Bucket=bucket, **({} if account.region == "us-east-1" else elsewhere))
    own = f"arn:{account.partition}:lambda:{account.region}:{account.number}:function:{run.name}-*"
    settings = {
        "Example": "no",
        "Alarms": "off",
        "LogRetentionDays": "1",
        "TargetFunctions": own,
        "MaxRetries": str(run.many(RETRIES)),
        "BaseBackoff": "1",
        "MaxBackoff": "1",
        "Jitter": "none",
    }
    overrides = [*(f"{name}={value}" for name, value in settings.items()), *parameters]
    tags = [f"{name}={value}" for name, value in run.tags.items()]
    print(f"deploying {run.name}", flush=True)
    called(
        "sam", "deploy", "--config-file", str(CONFIG), "--template-file", str(template.resolve()), "--stack-name", run.name,
        "--s3-bucket", bucket, "--region", account.region, "--parameter-overrides", *overrides, "--tags", *tags,
    )  # fmt: skip
    stack = account.stacks.describe_stacks(StackName=run.name)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def called(*command):
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "SAM_CLI_TELEMETRY": "0"}, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{' '.join(command[:2])} failed:\n{done.stdout}{done.stderr}")
