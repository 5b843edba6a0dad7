"""Deploys the stack of the release."""

import os
import subprocess
from pathlib import Path

from account import Refused
from run import Stopped

ROOT = Path(__file__).resolve().parents[2]
RELEASED = ROOT / "dist" / "comeback.yaml"
CONFIG = Path(__file__).resolve().parent / "samconfig.toml"
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
# More than the 16 rounds after which Lambda stops a loop.
RETRIES = 20


def deploy(run, template, parameters):
    """Deploys the release under the run's name and returns the stack's outputs."""
    if template is None and RELEASED.exists():
        template = RELEASED
    elif template is None:
        print(f"{RELEASED.relative_to(ROOT)} is not there (make dist): building the functions", flush=True)
        called(run, "sam", "build")
        template = BUILT
    elif not template.exists():
        raise Refused(f"there is no template {template}")
    account = run.account
    bucket = f"{run.name}-{account.number}"
    elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": account.region}}
    run.go_on()
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
        run, "sam", "deploy", "--config-file", str(CONFIG), "--template-file", str(template.resolve()), "--stack-name", run.name,
        "--s3-bucket", bucket, "--region", account.region, "--parameter-overrides", *overrides, "--tags", *tags,
    )  # fmt: skip
    stack = account.stacks.describe_stacks(StackName=run.name)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def called(run, *command):
    """Runs a command until it exits or the run is stopped."""
    run.go_on()
    environment = {**os.environ, "SAM_CLI_TELEMETRY": "0"}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **piped) as process:
        printed = printed_by(run, process)
    # Ctrl-C in a terminal interrupts both this program and the command. `go_on` then stops, whatever the command's
    # exit code.
    run.go_on()
    if process.returncode:
        raise Refused(f"{' '.join(command[:2])} failed:\n{printed}")


def printed_by(run, process):
    """Returns a command's whole output, including the output of its child processes after the command has exited."""
    while True:
        try:
            return process.communicate(timeout=1)[0]
        except subprocess.TimeoutExpired:
            if run.stop.is_set():
                process.terminate()
                process.wait()
                raise Stopped from None
