"""Tests that the checks find each planted violation, and find nothing where none is planted."""

import base64
import copy
import json
import unittest
from urllib.parse import urlencode

import botocore.serialize
import limits
import models
import recorded

ARN = "arn:aws:lambda:eu-west-1:123456789012:function:orders"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/retries"
ATTRIBUTES = {"Reason": {"DataType": "String", "StringValue": "max_age"}}
ENTRY = {"Id": "0", "MessageBody": "{}", "MessageAttributes": ATTRIBUTES}

VALID = {
    "sqs:SendMessageBatch": {"QueueUrl": QUEUE, "Entries": [ENTRY]},
    "sqs:ChangeMessageVisibilityBatch": {
        "QueueUrl": QUEUE,
        "Entries": [{"Id": "0", "ReceiptHandle": "handle", "VisibilityTimeout": 43_170}],
    },
    "sqs:ReceiveMessage": {"QueueUrl": QUEUE, "MaxNumberOfMessages": 10},
    "sqs:GetQueueAttributes": {"QueueUrl": QUEUE, "AttributeNames": ["All"]},
    "ssm:PutParameter": {"Name": "/comeback/c/pauses", "Value": "{}", "Type": "String", "Overwrite": True},
    "logs:FilterLogEvents": {"logGroupName": "/aws/lambda/orders", "filterPattern": '"key"', "limit": 100},
    "cloudwatch:GetMetricData": {
        "StartTime": 1_700_000_000,
        "EndTime": 1_700_000_060,
        "MetricDataQueries": [
            {
                "Id": "errors",
                "MetricStat": {
                    "Metric": {"Namespace": "AWS/Lambda", "MetricName": "Errors"},
                    "Period": 60,
                    "Stat": "Sum",
                },
            }
        ],
    },
    "cloudwatch:PutMetricAlarm": {
        "AlarmName": "lost",
        "AlarmDescription": "Lambda dropped events",
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "Dimensions": [{"Name": "FunctionName", "Value": "orders"}],
        "EvaluationPeriods": 1,
        "Period": 300,
    },
    "lambda:Invoke": {"FunctionName": f"{ARN}:$LATEST", "InvocationType": "Event", "Payload": b"7"},
    "lambda:TagResource": {"Resource": ARN, "Tags": {"comeback:retries": "default"}},
    "lambda:PutFunctionEventInvokeConfig": {
        "FunctionName": "orders",
        "MaximumEventAgeInSeconds": 60,
        "DestinationConfig": {"OnFailure": {"Destination": "arn:aws:sqs:eu-west-1:123456789012:retries"}},
    },
    "lambda:UpdateFunctionConfiguration": {"FunctionName": "orders", "Environment": {"Variables": {"AB": "1"}}},
    "iam:PutRolePolicy": {"RoleName": "orders", "PolicyName": "comeback-retries", "PolicyDocument": "{}"},
    "cloudformation:UpdateStack": {
        "StackName": "comeback",
        "Capabilities": ["CAPABILITY_IAM"],
        "Parameters": [{"ParameterKey": "TargetFunctions", "ParameterValue": ARN}],
    },
}

# Cases: an operation, the path to one of its parameters, the parameter's new value (None to remove it), and part of the
# expected message.
PLANTED = [
    ("sqs:SendMessageBatch", "Entries/0/Id", "a:b", "an entry has the id 'a:b'"),
    ("sqs:SendMessageBatch", "Entries", [ENTRY] * 2, "the ids of a batch repeat"),
    ("sqs:SendMessageBatch", "Entries", [{**ENTRY, "Id": str(id)} for id in range(11)], "has 11 entries"),
    ("sqs:SendMessageBatch", "Entries/0/DelaySeconds", 901, "DelaySeconds is 901"),
    ("sqs:SendMessageBatch", "Entries/0/MessageBody", "\x1b", "body has a character that SQS refuses"),
    ("sqs:SendMessageBatch", "Entries/0/MessageBody", "x" * 1_048_558, "1048577 bytes are sent at once"),
    ("sqs:SendMessageBatch", "Entries/0/MessageAttributes/Reason/StringValue", "", "Reason is empty"),
    ("sqs:SendMessageBatch", "Entries/0/MessageAttributes/Reason/StringValue", "\ufffe", "a character that"),
    ("sqs:SendMessageBatch", "Entries/0/MessageAttributes/Reason/DataType", "Number", "which is not a number"),
    ("sqs:SendMessageBatch", "Entries/0/MessageAttributes/AWS.Reason", ATTRIBUTES["Reason"], "a name reserved by AWS"),
    ("sqs:SendMessageBatch", "Entries/0/MessageAttributes/a b", ATTRIBUTES["Reason"], "is named 'a b'"),
    ("sqs:ChangeMessageVisibilityBatch", "Entries/0/VisibilityTimeout", 43_201, "VisibilityTimeout is 43201"),
    ("sqs:ReceiveMessage", "MaxNumberOfMessages", 11, "MaxNumberOfMessages is 11"),
    ("sqs:GetQueueAttributes", "QueueUrl", None, "QueueUrl is required"),
    ("sqs:GetQueueAttributes", "AttributeNames/0", "Nope", "which is none of All, Policy"),
    ("sqs:GetQueueAttributes", "Queue", "retries", "Queue is not in the model"),
    ("ssm:PutParameter", "Value", "é" * 2_049, "a value has 4098 bytes"),
    ("ssm:PutParameter", "Value", "{{ssm:other}}", "a value contains {{"),
    ("ssm:PutParameter", "Name", "/aws/pauses", "a parameter has a name reserved by AWS"),
    ("ssm:PutParameter", "Type", "Text", "which is none of String"),
    ("ssm:PutParameter", "Overwrite", "yes", "which is not a boolean"),
    ("logs:FilterLogEvents", "limit", 10_001, "limit is 10001; the maximum is 10000"),
    ("logs:FilterLogEvents", "logGroupName", "a b", "does not match [\\.\\-_/#A-Za-z0-9]+"),
    ("logs:FilterLogEvents", "filterPattern", "x" * 1_025, "filterPattern is 1025 characters"),
    ("cloudwatch:GetMetricData", "MetricDataQueries/0/Id", "Errors", "a query has the id 'Errors'"),
    ("cloudwatch:GetMetricData", "EndTime", 1_700_000_000, "StartTime is not before EndTime"),
    ("cloudwatch:PutMetricAlarm", "AlarmName", "a" * 256, "AlarmName is 256 characters"),
    ("cloudwatch:PutMetricAlarm", "AlarmDescription", "a" * 1_025, "AlarmDescription is 1025 characters"),
    ("cloudwatch:PutMetricAlarm", "EvaluationPeriods", 289, "an alarm looks back more than 1 days"),
    ("cloudwatch:PutMetricAlarm", "Dimensions/0/Value", "bestellungen-für", "a dimension is"),
    ("lambda:Invoke", "FunctionName", f"{ARN} 2", "does not match"),
    ("lambda:Invoke", "FunctionName", "a" * 65, "the function's name has 65 characters"),
    ("lambda:Invoke", "Payload", b"{", "a payload is not JSON"),
    ("lambda:TagResource", "Tags/comeback:retries", "a$b", "which does not match"),
    ("lambda:TagResource", "Tags", {str(tag): "" for tag in range(51)}, "51 tags are set"),
    ("lambda:PutFunctionEventInvokeConfig", "MaximumEventAgeInSeconds", 59, "the minimum is 60"),
    ("lambda:PutFunctionEventInvokeConfig", "DestinationConfig/OnFailure/Destination", "a b", "does not match"),
    ("lambda:UpdateFunctionConfiguration", "Environment/Variables/AB", "x" * 4_096, "the environment has 4105"),
    ("iam:PutRolePolicy", "PolicyName", "a:b", "does not match"),
    ("iam:PutRolePolicy", "PolicyDocument", json.dumps(["x" * 10_240]), "a policy has 10244 characters"),
    ("cloudformation:UpdateStack", "Capabilities/0", "CAPABILITY_X", "which is none of CAPABILITY_IAM"),
    ("cloudformation:UpdateStack", "Parameters/0/ParameterValue", "x" * 4_097, "TargetFunctions has 4097 bytes"),
    ("cloudformation:UpdateStack", "StackName", "a" * 129, "a stack is named"),
]


def sent(name: str, parameters: dict) -> dict:
    """The recorder's line for a request that has not been validated."""
    service, operation = name.split(":")
    model = recorded.model(service)
    if model.resolved_protocol == "json":
        # The request is built by hand, because botocore's serializer accepts only members that the model has.
        target = {"X-Amz-Target": f"{model.metadata['targetPrefix']}.{operation}"}
        request = {"url_path": "/", "query_string": "", "method": "POST", "headers": target, "body": json.dumps(parameters)}
    else:
        serializer = botocore.serialize.create_serializer(model.resolved_protocol, include_validation=False)
        request = serializer.serialize_to_request(parameters, model.operation_model(operation))
    body = urlencode(request["body"]) if isinstance(request["body"], dict) else request["body"]
    signed = "monitoring" if service == "cloudwatch" else service
    headers = {
        "authorization": f"AWS4-HMAC-SHA256 Credential=id/20261126/eu-west-1/{signed}/aws4_request, Signature=0",
        "user-agent": "aws-sdk-rust/1.7.0 app/dead-list",
        **{name.lower(): value for name, value in request["headers"].items()},
    }
    return {
        "method": request["method"],
        "path": request["url_path"],
        "query": urlencode(request["query_string"]),
        "headers": headers,
        "body": base64.b64encode(body if isinstance(body, bytes) else body.encode()).decode(),
        "status": 200,
    }


def problems(name: str, parameters: dict) -> list[str]:
    request = recorded.decode(sent(name, parameters))
    found = [*models.problems(request.operation.input_shape, request.parameters)]
    return found or [*limits.problems(request.name, request.parameters)]


def planted(name: str, path: str, value) -> dict:
    parameters = node = copy.deepcopy(VALID[name])
    *parents, last = [int(step) if step.isdecimal() else step for step in path.split("/")]
    for step in parents:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return parameters


class Planted(unittest.TestCase):
    def test_nothing_is_wrong_with_what_is_valid(self):
        for name, parameters in VALID.items():
            with self.subTest(name):
                self.assertEqual(problems(name, parameters), [])

    def test_each_planted_violation_is_seen(self):
        for name, path, value, said in PLANTED:
            with self.subTest(f"{name} {path} {said}"):
                found = problems(name, planted(name, path, value))
                self.assertTrue(any(said in problem for problem in found), found)

    def test_the_sender_is_the_command(self):
        name = "sqs:GetQueueAttributes"
        self.assertEqual(recorded.decode(sent(name, VALID[name])).sender, "dead list")

    def test_what_no_operation_explains_is_no_request(self):
        line = sent("lambda:Invoke", VALID["lambda:Invoke"])
        with self.assertRaisesRegex(recorded.Undecodable, "no operation at POST /nowhere"):
            recorded.decode({**line, "path": "/nowhere"})

    def test_an_unknown_member_is_seen_in_each_protocol(self):
        for name, key in [("iam:PutRolePolicy", b"&Nope=1"), ("lambda:TagResource", b"")]:
            line = sent(name, VALID[name])
            body = base64.b64decode(line["body"])
            body = body + key if key else body.replace(b"{", b'{"Nope": 1, ', 1)
            request = recorded.decode({**line, "body": base64.b64encode(body).decode()})
            found = [*models.problems(request.operation.input_shape, request.parameters)]
            self.assertEqual(found, ["?Nope is not in the model"])


if __name__ == "__main__":
    unittest.main()
