"""Limits that AWS documents but botocore's models lack. Each violation is reported with the limit's source."""

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import regex

DOCS = "https://docs.aws.amazon.com/"
SQS = DOCS + "AWSSimpleQueueService/latest/"
SSM = DOCS + "systems-manager/latest/APIReference/API_PutParameter.html"
CLOUDWATCH = DOCS + "AmazonCloudWatch/latest/"
LAMBDA = DOCS + "lambda/latest/"

MESSAGE_BYTES = 1_048_576
# Characters that XML 1.0 allows; SQS refuses all others.
CHARACTERS = regex.compile("[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
NUMBER = re.compile(r"-?(\d{1,38}|\d*\.\d+)([eE][+-]?\d+)?")


class Limit(NamedTuple):
    operations: tuple[str, ...]
    source: str
    problems: Callable[[dict], Iterator[str]]


LIMITS: list[Limit] = []


def limit(*operations: str, source: str):
    """Returns a decorator that registers a generator of violations as a limit of these operations."""

    def register(problems):
        LIMITS.append(Limit(operations, source, problems))
        return problems

    return register


def problems(operation: str, parameters: dict) -> Iterator[str]:
    for it in LIMITS:
        if operation in it.operations:
            yield from (f"{problem} ({it.source})" for problem in it.problems(parameters))


def size(text: str) -> int:
    return len(text.encode())


def messages(parameters: dict) -> list[dict]:
    return parameters.get("Entries") or [parameters]


def attributes(parameters: dict) -> Iterator[tuple[str, dict]]:
    for message in messages(parameters):
        yield from (message.get("MessageAttributes") or {}).items()


def message_bytes(message: dict) -> int:
    beside = sum(
        size(name) + size(it["DataType"]) + size(it.get("StringValue", ""))
        for name, it in (message.get("MessageAttributes") or {}).items()
    )
    return size(message["MessageBody"]) + beside


SENDS = ("sqs:SendMessage", "sqs:SendMessageBatch")
BATCHES = ("sqs:SendMessageBatch", "sqs:ChangeMessageVisibilityBatch", "sqs:DeleteMessageBatch")
SEND_MESSAGE = SQS + "APIReference/API_SendMessage.html"
METADATA = SQS + "SQSDeveloperGuide/sqs-message-metadata.html"


@limit(*SENDS, source=SEND_MESSAGE)
def body(parameters):
    for message in messages(parameters):
        if not message["MessageBody"]:
            yield "a message's body is empty"
        elif not CHARACTERS.fullmatch(message["MessageBody"]):
            yield "a message's body has a character that SQS refuses"


@limit(*SENDS, source=SQS + "SQSDeveloperGuide/quotas-messages.html")
def bytes_of_messages(parameters):
    # A whole batch has the same size limit as one message.
    total = sum(map(message_bytes, messages(parameters)))
    if total > MESSAGE_BYTES:
        yield f"{total} bytes are sent at once; the maximum is {MESSAGE_BYTES}"


@limit(*SENDS, source=SEND_MESSAGE)
def delay(parameters):
    for message in messages(parameters):
        if not 0 <= message.get("DelaySeconds", 0) <= 900:
            yield f"DelaySeconds is {message['DelaySeconds']}; the maximum is 900"


@limit(*SENDS, source=METADATA)
def attribute_names(parameters):
    for name, _ in attributes(parameters):
        if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", name) or len(name) > 256:
            yield f"a message attribute is named {name!r}"
        elif re.match(r"(aws|amazon)\.", name, re.IGNORECASE):
            yield f"a message attribute has a name reserved by AWS: {name!r}"


@limit(*SENDS, source=METADATA)
def attribute_values(parameters):
    for name, it in attributes(parameters):
        kind, value = it["DataType"], it.get("StringValue", "")
        if not re.fullmatch(r"(String|Number|Binary)(\..+)?", kind) or len(kind) > 256:
            yield f"the attribute {name} has the type {kind!r}"
        if not value and "BinaryValue" not in it:
            yield f"the attribute {name} is empty"
        if not CHARACTERS.fullmatch(value):
            yield f"the attribute {name} has a character that SQS refuses: {value!r}"
        if kind.startswith("Number") and not NUMBER.fullmatch(value):
            yield f"the attribute {name} is {value!r}, which is not a number"


@limit(*SENDS, source=METADATA)
def attribute_count(parameters):
    for message in messages(parameters):
        if len(message.get("MessageAttributes") or {}) > 10:
            yield "a message has more than 10 attributes"


@limit(*SENDS, source=SEND_MESSAGE)
def system_attributes(parameters):
    for message in messages(parameters):
        for name, it in (message.get("MessageSystemAttributes") or {}).items():
            if name != "AWSTraceHeader" or it["DataType"] != "String" or not it.get("StringValue"):
                yield f"the system attribute {name} is {it}"


@limit(*BATCHES, source=SQS + "SQSDeveloperGuide/quotas-messages.html")
def batch(parameters):
    ids = [entry["Id"] for entry in parameters["Entries"]]
    if not 1 <= len(ids) <= 10:
        yield f"a batch has {len(ids)} entries; the maximum is 10"
    if len(set(ids)) < len(ids):
        yield f"the ids of a batch repeat: {ids}"
    for id in ids:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", id):
            yield f"an entry has the id {id!r}"


@limit("sqs:ChangeMessageVisibilityBatch", "sqs:ReceiveMessage", source=SQS + "APIReference/API_ChangeMessageVisibility.html")
def visibility_timeout(parameters):
    for entry in messages(parameters):
        if not 0 <= entry.get("VisibilityTimeout", 0) <= 43_200:
            yield f"VisibilityTimeout is {entry['VisibilityTimeout']}; the maximum is 43200"


@limit("sqs:ReceiveMessage", source=SQS + "APIReference/API_ReceiveMessage.html")
def receive(parameters):
    for name, low, high in [("MaxNumberOfMessages", 1, 10), ("WaitTimeSeconds", 0, 20)]:
        if not low <= parameters.get(name, low) <= high:
            yield f"{name} is {parameters[name]}, and must be {low} to {high}"


@limit("ssm:PutParameter", source=SSM)
def standard_parameter(parameters):
    if parameters.get("Tier", "Standard") == "Standard" and size(parameters["Value"]) > 4_096:
        yield f"a value has {size(parameters['Value'])} bytes; the maximum of a standard parameter is 4096"
    if "{{" in parameters["Value"]:
        yield "a value contains {{, which would refer to another parameter"


@limit("ssm:PutParameter", source=SSM)
def parameter_name(parameters):
    name = parameters["Name"]
    if not re.fullmatch(r"[A-Za-z0-9_./-]{1,1011}", name) or name.count("/") > 15:
        yield f"a parameter is named {name!r}"
    if re.match(r"/?(aws|ssm)", name, re.IGNORECASE):
        yield f"a parameter has a name reserved by AWS: {name!r}"


@limit("cloudwatch:GetMetricData", source=CLOUDWATCH + "APIReference/API_GetMetricData.html")
def metric_queries(parameters):
    ids = [query["Id"] for query in parameters["MetricDataQueries"]]
    if len(ids) > 500:
        yield f"{len(ids)} metrics are requested at once; the maximum is 500"
    if len(set(ids)) < len(ids):
        yield f"the ids of queries repeat: {ids}"
    for id in ids:
        if not re.fullmatch(r"[a-z][A-Za-z0-9_]*", id):
            yield f"a query has the id {id!r}"
    if parameters["StartTime"] >= parameters["EndTime"]:
        yield "StartTime is not before EndTime"


@limit("cloudwatch:PutMetricAlarm", source=CLOUDWATCH + "APIReference/API_PutMetricAlarm.html")
def alarm_window(parameters):
    period = parameters.get("Period", 0)
    days = 7 if period >= 3_600 else 1
    if period * parameters["EvaluationPeriods"] > days * 86_400:
        yield f"an alarm looks back more than {days} days"


@limit("cloudwatch:PutMetricAlarm", source=CLOUDWATCH + "APIReference/API_Dimension.html")
def dimensions(parameters):
    for dimension in parameters.get("Dimensions", []):
        if not dimension["Value"].isascii() or not dimension["Value"].strip():
            yield f"a dimension is {dimension['Value']!r}"


@limit("cloudwatch:DeleteAlarms", source=CLOUDWATCH + "APIReference/API_DeleteAlarms.html")
def deleted_alarms(parameters):
    if len(parameters["AlarmNames"]) > 100:
        yield f"{len(parameters['AlarmNames'])} alarms are deleted at once; the maximum is 100"


@limit("lambda:TagResource", source=LAMBDA + "dg/configuration-tags.html")
def tags(parameters):
    if len(parameters["Tags"]) > 50:
        yield f"{len(parameters['Tags'])} tags are set; the maximum is 50"
    for key in parameters["Tags"]:
        if key.lower().startswith("aws:"):
            yield f"the tag {key!r} has a name reserved by AWS"


@limit("lambda:UpdateFunctionConfiguration", source=LAMBDA + "dg/gettingstarted-limits.html")
def environment(parameters):
    variables = parameters.get("Environment", {}).get("Variables", {})
    total = size(json.dumps(variables, ensure_ascii=False, separators=(",", ":")))
    if total > 4_096:
        yield f"the environment has {total} bytes; the maximum is 4096"


@limit("lambda:Invoke", source=LAMBDA + "dg/gettingstarted-limits.html")
def payload(parameters):
    sent = parameters.get("Payload", b"")
    if len(sent) > MESSAGE_BYTES:
        yield f"a payload has {len(sent)} bytes; the maximum is {MESSAGE_BYTES}"


@limit("lambda:Invoke", source=LAMBDA + "api/API_Invoke.html")
def payload_is_json(parameters):
    try:
        json.loads(parameters.get("Payload", b"null"))
    except ValueError as error:
        yield f"a payload is not JSON: {error}"


@limit(
    *(f"lambda:{it}" for it in ("Invoke", "GetFunction", "GetFunctionConfiguration", "PutFunctionEventInvokeConfig")),
    source=LAMBDA + "api/API_CreateFunction.html",
)
def function_name(parameters):
    # Only the name in an ARN is checked, because botocore's model already limits the length of the whole ARN.
    name = re.sub(r"^(arn:[^:]+:lambda:[^:]+:)?(\d{12}:)?(function:)?", "", parameters["FunctionName"]).split(":")[0]
    if len(name) > 64:
        yield f"the function's name has {len(name)} characters; the maximum is 64: {name}"


@limit("logs:FilterLogEvents", source=DOCS + "AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html")
def log_times(parameters):
    if parameters.get("startTime", 0) > parameters.get("endTime", float("inf")):
        yield "startTime is after endTime"


@limit("iam:PutRolePolicy", source=DOCS + "IAM/latest/UserGuide/reference_iam-quotas.html")
def inline_policy(parameters):
    # IAM does not count white space.
    characters = len(re.sub(r"\s", "", parameters["PolicyDocument"]))
    if characters > 10_240:
        yield f"a policy has {characters} characters; the maximum of a role's inline policies is 10240"


@limit("iam:PutRolePolicy", source=DOCS + "IAM/latest/APIReference/API_PutRolePolicy.html")
def policy_is_json(parameters):
    try:
        json.loads(parameters["PolicyDocument"])
    except ValueError as error:
        yield f"a policy is not JSON: {error}"


@limit("cloudformation:UpdateStack", source=DOCS + "AWSCloudFormation/latest/UserGuide/cloudformation-limits.html")
def stack_parameters(parameters):
    for it in parameters.get("Parameters", []):
        if size(it.get("ParameterValue", "")) > 4_096:
            yield f"the parameter {it['ParameterKey']} has {size(it['ParameterValue'])} bytes; the maximum is 4096"


@limit(
    *(f"cloudformation:{it}" for it in ("UpdateStack", "DescribeStacks", "ListStackResources")),
    source=DOCS + "AWSCloudFormation/latest/APIReference/API_CreateStack.html",
)
def stack_name(parameters):
    name = parameters.get("StackName", "a")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,127}|arn:.*", name):
        yield f"a stack is named {name!r}"
