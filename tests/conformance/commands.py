"""Compares the calls of each command with the permissions that docs/operate.md lists for it, in both directions."""

import re
from collections.abc import Iterator

from recorded import Request
from roles import ACTIONS, queue

PAGE = "docs/operate.md"
EVERY_COMMAND = "every command"

# The command that starts the console. The console also makes the AWS calls that all other commands make.
EVERYTHING = "ui"

# Calls that need no permission.
FREE = {"sts:GetCallerIdentity"}

# Permissions that docs/operate.md may list although no test uses them, with a reason or condition for each.
CONDITIONS = {
    "cloudformation:CreateChangeSet": "CloudFormation asks for it when a stack with a transform is updated",
    "cloudformation:DescribeStackEvents": "if the update of the stack failed",
    "logs:CreateLogStream": "if no change was recorded before",
    "kms:DescribeKey": "if a queue has a key",
    "lambda:ListTags": "Lambda asks for it to give a function's tags with GetFunction",
    "ssm:GetParameterHistory": "if the pauses are unreadable, or if another operator edits them too",
    "attach lambda:UntagResource": "if the function was detached, but not to the end",
    "detach iam:PutRolePolicy": "if the policy has statements of others",
    "doctor --probe lambda:ListFunctions": "if TARGET_FUNCTIONS has a pattern",
    "cancel logs:DescribeLogGroups": "if an event may wait for more than a day",
    "resume logs:DescribeLogGroups": "if an event may wait for more than a day",
    "retry logs:DescribeLogGroups": "if an event may wait for more than a day",
}

Row = tuple[str, str, str]


def problems(page: str, requests: list[Request]) -> Iterator[str]:
    rows = set(listed(page))
    made = {(it.sender, ACTIONS.get(it.name, it.name), *resources(it)) for it in requests if it.sender != "handler"}
    used = set()
    for command, action, *kinds in sorted(made):
        matching = {
            row
            for row in rows
            if (command == EVERYTHING or row[0] in (command, EVERY_COMMAND)) and row[1] == action and row[2] in ("all", *kinds)
        }
        if not matching and action not in FREE:
            yield f"comeback {command} calls {action} on {kinds[0]}, which {PAGE} does not list"
        used |= set() if command == EVERYTHING else matching
    for command, action, resource in sorted(rows - used):
        if action not in CONDITIONS and f"{command} {action}" not in CONDITIONS:
            yield f"{PAGE} lists {action} on {resource} for {command}, which never calls it"


def listed(page: str) -> Iterator[Row]:
    for commands, actions, resource in re.findall(r"^\| (.+?) \| (`\w+:.+?) \| (.+?) \|$", page, re.MULTILINE):
        for command in commands.split(", "):
            yield from ((command.strip("`"), action.strip("`"), resource) for action in actions.split(", "))


def resources(request: Request) -> tuple[str, ...]:
    """The names that the page may give to the resource of a call, judging by the names that the tests use."""
    parameters = request.parameters
    names = ["QueueUrl", "QueueName", "FunctionName", "Resource", "RoleName", "PolicySourceArn", "logGroupName", "StackName", "AlarmNames"]
    name = str(next((parameters[it] for it in names if it in parameters), ""))
    is_handlers = re.search("retry-?handler", name, re.IGNORECASE) is not None
    match request.service:
        case "sqs" if "consumer" in name:
            return ("the function's queues",)
        case "sqs" if not re.search("dead|retr", name, re.IGNORECASE):
            # This could be either queue: only the end of a name tells them apart, and a long name's end is cut off.
            return "the dead-letter queue", "the retry queue"
        case "sqs":
            return (f"the {queue(name)}",)
        case "lambda" if name and is_handlers:
            # A command that takes a function also takes the handler, but the page may name only a function.
            return "the handler", "the function", "every function", "the stack's functions"
        case "lambda" if name:
            of_some = "the function", "the attached functions", "the example function"
            return *of_some, "every function", "the stack's functions"
        case "iam" if is_handlers:
            return ("the handler's role",)
        case "iam":
            return "the function's role", "the attached functions' roles"
        case "logs" if is_handlers:
            return ("the handler's log group",)
        case "logs" if name:
            return "the function's log group", "the example function's log group"
        case "cloudformation":
            return "the stack", "every stack"
        case "ssm":
            return ("the pauses parameter",)
        case "kms":
            return ("all queues' keys",)
        case "cloudwatch" if request.operation.name in ("PutMetricAlarm", "DeleteAlarms"):
            return ("the function's alarm",)
    return ("all",)
