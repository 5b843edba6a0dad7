"""Checks that the handler's role, in the template and in the construct, allows the calls that the handler makes, and no
others.

Here, moto evaluates the IAM policies. During the tests, MiniStack's own evaluator decided on each call.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import limits
from moto.iam.access_control import IAMPolicy, PermissionResult
from recorded import Request

PLACE = "us-east-1:000000000000"
FUNCTION = f"arn:aws:lambda:{PLACE}:function:"
KEY = f"arn:aws:kms:{PLACE}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
VIA_SQS = {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}
VIA_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}

# Functions to retry: nearly as many as fit into the handler's environment variables.
TARGETS = [FUNCTION + name for name in ("orders", "billing:live", "export-*", *(f"f-{number}" for number in range(45)))]

# Template parameters for each checked role; `infra/test/roles.ts` has the same roles for the construct.
SETS = {
    "as it ships": {},
    "with a key and many functions": {"KmsKeyArn": KEY, "TargetFunctions": ",".join(TARGETS)},
    "without a function": {"Example": "no"},
}

# The API calls whose IAM action has a different name, each with that action.
ACTIONS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "lambda:Invoke": "lambda:InvokeFunction",
}

# Actions that AWS services perform with the handler's role. Sources: AWS Lambda Developer Guide, "Creating and
# configuring an Amazon SQS event source mapping" and "Sending Lambda function logs to CloudWatch Logs"; Amazon SQS
# Developer Guide, "Key management".
FOR_THE_HANDLER = {
    ("sqs:ReceiveMessage", "retry queue"),
    ("sqs:DeleteMessage", "retry queue"),
    ("sqs:GetQueueAttributes", "retry queue"),
    ("logs:CreateLogStream", "log stream"),
    ("logs:PutLogEvents", "log stream"),
    ("kms:Decrypt", "key"),
    ("kms:GenerateDataKey", "key"),
}

FORBIDDEN = {
    "retry queue": "sqs:PurgeQueue sqs:DeleteQueue sqs:SetQueueAttributes sqs:AddPermission sqs:StartMessageMoveTask",
    "dead-letter queue": "sqs:ReceiveMessage sqs:DeleteMessage sqs:ChangeMessageVisibility sqs:PurgeQueue sqs:DeleteQueue "
    "sqs:SetQueueAttributes",
    "other queue": "sqs:SendMessage sqs:ReceiveMessage sqs:DeleteMessage",
    "pauses": "ssm:PutParameter ssm:DeleteParameter ssm:GetParameterHistory",
    "other parameter": "ssm:GetParameter",
    "other function": "lambda:InvokeFunction",
    "function": "lambda:UpdateFunctionCode lambda:UpdateFunctionConfiguration lambda:GetFunction lambda:DeleteFunction",
    "log stream": "logs:GetLogEvents logs:DeleteLogStream",
    "other log stream": "logs:CreateLogStream logs:PutLogEvents",
    "key": "kms:Encrypt kms:CreateGrant kms:DisableKey kms:ScheduleKeyDeletion",
    "other key": "kms:Decrypt kms:GenerateDataKey",
    "key for another service": "kms:Decrypt kms:GenerateDataKey",
    "all": "iam:PassRole sts:AssumeRole logs:CreateLogGroup cloudwatch:PutMetricData cloudformation:UpdateStack",
}


def problems(root: Path, requests: list[Request]) -> Iterator[str]:
    needed = FOR_THE_HANDLER | {call(it) for it in requests if it.sender == "handler"}
    for where, role in expanded(root):
        for problem in [*too_large(role), *missing(role, needed), *forbidden(role), *needless(role, needed)]:
            yield f"{where}: {problem}"


def too_large(role: dict) -> Iterator[str]:
    yield from limits.inline_policy({"PolicyDocument": json.dumps(role["policies"])})
    yield from limits.environment({"Environment": {"Variables": role["environment"]}})


def missing(role: dict, needed: set) -> Iterator[str]:
    resources, policies = resources_of(role), list(map(evaluated, role["policies"]))
    for action, kind in sorted(needed):
        for resource in resources[kind]:
            if not allows(policies, action, resource, kind):
                yield f"the handler's role does not allow {action} on {resource}, which the handler needs"


def forbidden(role: dict) -> Iterator[str]:
    resources, policies = resources_of(role), list(map(evaluated, role["policies"]))
    for kind, actions in FORBIDDEN.items():
        for action in actions.split():
            for resource in resources[kind]:
                if allows(policies, action, resource, kind):
                    yield f"the handler's role allows {action} on {resource} as {kind}"


def needless(role: dict, needed: set) -> Iterator[str]:
    resources = resources_of(role)
    calls = [(action, resource, kind) for action, kind in needed for resource in resources[kind]]
    for policy in role["policies"]:
        for action, resource in grants(policy):
            statement = {"Effect": "Allow", "Action": action, "Resource": resource}
            alone = [evaluated({**policy, "Statement": [statement]})]
            if not any(allows(alone, *it) for it in calls):
                yield f"the handler's role allows {action} on {resource}, which nothing needs"


def call(request: Request) -> tuple[str, str]:
    """The permission that a call by the handler needs, and the kind of resource that the permission must cover."""
    action, parameters = ACTIONS.get(request.name, request.name), request.parameters
    if "QueueUrl" in parameters:
        return action, queue(parameters["QueueUrl"])
    if "FunctionName" in parameters:
        return action, "qualified function" if parameters["FunctionName"].count(":") == 7 else "function"
    return action, "pauses" if request.service == "ssm" else "all"


def queue(url: str) -> str:
    """The kind of the queue at this URL, judging by the names that the tests use."""
    is_dead = re.search("dead-?letter|/dead$", url, re.IGNORECASE)
    return "dead-letter queue" if is_dead else "retry queue"


def resources_of(role: dict) -> dict[str, list[str]]:
    environment = role["environment"]
    retry, dead = (
        "arn:aws:sqs:{}:{}".format(PLACE, environment[it].rsplit("/", 1)[1])
        for it in ("RETRY_QUEUE_URL", "DEAD_LETTER_QUEUE_URL")
    )
    targets = [it.replace("*", "1") for it in environment["TARGET_FUNCTIONS"].split(",") if it]
    qualified = [it for it in targets if it.count(":") == 7]
    plain = [it for it in targets if it not in qualified]
    log, parameter = f"arn:aws:logs:{PLACE}:log-group:{role['log_group']}", f"arn:aws:ssm:{PLACE}:parameter"
    key = [KEY] if KEY in json.dumps(role["policies"]) else []
    return {
        "retry queue": [retry],
        "dead-letter queue": [dead],
        "other queue": [f"{retry}x", f"arn:aws:sqs:{PLACE}:orders"],
        "pauses": [parameter + environment["PAUSES"]],
        "other parameter": [parameter + environment["PAUSES"] + "2", f"{parameter}/orders"],
        "function": plain,
        "qualified function": [f"{it}:{qualifier}" for it in plain for qualifier in ("$LATEST", "live", "7")] + qualified,
        "other function": [f"{FUNCTION}payroll", f"{FUNCTION}orders2", f"{FUNCTION}xorders:live", f"{FUNCTION}comeback-Handler"]
        + [arn for it in qualified for arn in (it.rsplit(":", 1)[0], f"{it}2")],
        "log stream": [f"{log}:log-stream:2026/11/26/[$LATEST]abc"],
        "other log stream": [f"{log}2:log-stream:2026/11/26/[$LATEST]abc"],
        "key": key,
        "key for another service": key,
        "other key": [f"{KEY}2"],
        "all": ["*"],
    }


def allows(policies: list[IAMPolicy], action: str, resource: str, kind: str) -> bool:
    via = VIA_S3 if kind == "key for another service" else VIA_SQS
    verdicts = [
        policy.is_action_permitted(action, resource, None, via if action.startswith("kms:") else None)
        for policy in policies
    ]
    return PermissionResult.PERMITTED in verdicts and PermissionResult.DENIED not in verdicts


def grants(policy: dict) -> Iterator[tuple[str, str]]:
    for statement in policy["Statement"]:
        for action in listed(statement["Action"]):
            # The template also lists each ARN with `:*` appended. If the ARN has a qualifier, this pattern matches
            # nothing.
            resources = [it for it in listed(statement["Resource"]) if it.count(":") < 8 or "function" not in it]
            yield from ((action, resource) for resource in resources)


def evaluated(policy: dict) -> IAMPolicy:
    return IAMPolicy(json.dumps(policy))


def listed(value) -> list:
    return value if isinstance(value, list) else [value]


def expanded(root: Path) -> Iterator[tuple[str, dict]]:
    """The role for each set of parameters, in the template and in the construct."""
    with tempfile.TemporaryDirectory() as folder:
        tsx = root / "infra/node_modules/.bin/tsx"
        run([tsx, "test/roles.ts", json.dumps([KEY, TARGETS])], root / "infra", folder)
        made = {f"template.yaml {name}": ["template.yaml", parameters] for name, parameters in SETS.items()}
        made |= {f"the construct {name}": [f"{folder}/{index}.json", {}] for index, name in enumerate(SETS)}
        python = root / ".tools/ministack/bin/python"
        printed = run([python, "tests/conformance/role.py", json.dumps(list(made.values()))], root)
    return zip(made, json.loads(printed), strict=True)


def run(command: list, folder: Path, scratch: str = "") -> str:
    environment = {**os.environ, "SCRATCH": scratch}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ended.returncode:
        sys.exit(ended.stderr)
    return ended.stdout
