"""Tests that missing, forbidden and needless permissions are detected, in a role and on the page about the commands."""

import copy
import unittest

import commands
import roles
from recorded import Request, model

RETRY, DEAD = (f"arn:aws:sqs:{roles.PLACE}:{name}" for name in ("retries", "dead-letters"))
NEEDED = {
    ("sqs:ReceiveMessage", "retry queue"),
    ("sqs:SendMessage", "dead-letter queue"),
    ("lambda:InvokeFunction", "qualified function"),
}
ROLE = {
    "policies": [
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": ["sqs:ReceiveMessage"], "Resource": RETRY},
                {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": DEAD},
                {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": f"{roles.FUNCTION}orders:*"},
            ],
        }
    ],
    "environment": {
        "RETRY_QUEUE_URL": "https://sqs/1/retries",
        "DEAD_LETTER_QUEUE_URL": "https://sqs/1/dead-letters",
        "TARGET_FUNCTIONS": f"{roles.FUNCTION}orders",
        "PAUSES": "/comeback/pauses",
    },
    "log_group": "/aws/lambda/retry-handler",
}
PAGE = """
| command | actions | on |
|---|---|---|
| every command | `lambda:GetFunction` | every function |
| `pause`, `dead list` | `sqs:ReceiveMessage`, `sqs:GetQueueAttributes` | the dead-letter queue |
"""


def problems(index: int, **changed) -> list[str]:
    role = copy.deepcopy(ROLE)
    role["policies"][0]["Statement"][index].update(changed)
    return [*roles.missing(role, NEEDED), *roles.forbidden(role), *roles.needless(role, NEEDED)]


def call(sender: str, service: str, operation: str, **parameters) -> Request:
    return Request(sender, model(service).operation_model(operation), parameters, 200)


class Permissions(unittest.TestCase):
    def test_nothing_is_wrong_with_what_is_needed(self):
        self.assertEqual(problems(0), [])

    def test_a_missing_permission_is_named(self):
        needed = f"the handler's role does not allow sqs:SendMessage on {DEAD}, which the handler needs"
        self.assertIn(needed, problems(1, Action="sqs:SendMessages"))
        self.assertIn("orders:$LATEST", problems(2, Resource=f"{roles.FUNCTION}orders")[0])

    def test_a_forbidden_permission_is_named(self):
        self.assertIn(f"the handler's role allows sqs:PurgeQueue on {RETRY} as retry queue", problems(0, Action="sqs:*"))
        self.assertIn("as other function", problems(2, Resource="*")[0])

    def test_a_needless_permission_is_named(self):
        said = f"the handler's role allows sqs:GetQueueUrl on {RETRY}, which nothing needs"
        self.assertEqual(problems(0, Action=["sqs:ReceiveMessage", "sqs:GetQueueUrl"]), [said])

    def test_a_key_is_used_through_sqs_only(self):
        statement = {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": roles.KEY}
        for condition, said in [
            ({}, f"the handler's role allows kms:Decrypt on {roles.KEY} as key for another service"),
            ({"Condition": {"StringEquals": roles.VIA_SQS}}, None),
        ]:
            role = copy.deepcopy(ROLE)
            role["policies"][0]["Statement"].append(statement | condition)
            self.assertEqual([*roles.forbidden(role)], [said] if said else [])

    def test_commands_call_what_is_listed_and_all_of_it(self):
        queue = "https://sqs/1/dead-letters"
        made = [
            call("pause", "lambda", "GetFunction", FunctionName="orders"),
            call("pause", "sqs", "ReceiveMessage", QueueUrl=queue),
            call("pause", "sqs", "GetQueueAttributes", QueueUrl="https://sqs/1/retries"),
            call("dead list", "sqs", "ReceiveMessage", QueueUrl=queue),
            call("dead list", "sqs", "GetQueueAttributes", QueueUrl=queue),
            call("dead list", "sts", "GetCallerIdentity"),
        ]
        self.assertEqual(
            [*commands.problems(PAGE, made)],
            [
                "comeback pause calls sqs:GetQueueAttributes on the retry queue, which docs/operate.md does not list",
                "docs/operate.md lists sqs:GetQueueAttributes on the dead-letter queue for pause, which never calls it",
            ],
        )


if __name__ == "__main__":
    unittest.main()
