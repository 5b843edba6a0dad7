"""Tests that nothing is left, even if lists still name deleted resources, or name resources that belong to others."""

import unittest
from unittest.mock import MagicMock, patch

from support import failure, run_of

import clean

GONE = "AWS.SimpleQueueService.NonExistentQueue"


class Things:
    """An account's resources of one kind. The `ghosts` are deleted, but are still listed the given number of times."""

    def __init__(self, *there: str, ghosts: dict[str, int] | None = None, code: str = "ResourceNotFoundException"):
        self.there, self.ghosts, self.code = set(there), dict(ghosts or {}), code
        self.failures: list[Exception] = []
        self.deleted: list[str] = []

    def listed(self) -> list[str]:
        """Lists the resources. The ghosts are first, so that their deletion is tried first."""
        ghosts = [name for name, times in self.ghosts.items() if times > 0]
        self.ghosts = {name: times - 1 for name, times in self.ghosts.items()}
        return [*ghosts, *sorted(self.there)]

    def delete(self, name: str) -> None:
        if name not in self.there:
            raise failure(self.code)
        if self.failures:
            raise self.failures.pop()
        self.there.remove(name)
        self.deleted.append(name)


class Account:
    """A fake account with the calls that `clean.py` makes."""

    def __init__(self, name: str):
        self.stacks, self.iam, self.buckets = MagicMock(), MagicMock(), MagicMock()
        self.iam.get_role.side_effect = failure("NoSuchEntity")
        self.buckets.head_bucket.side_effect = failure("404")
        self.functions_there = Things(f"{name}-a", f"{name}-b", ghosts={f"{name}-gone": 1})
        self.mappings_there = Things("mapping", ghosts={"mapping-gone": 1})
        self.queues_there = Things("url-a", "url-b", ghosts={"url-gone": 3}, code=GONE)
        self.groups_there = Things("group-a", ghosts={"group-gone": 1})
        self.functions, self.sqs, self.logs = MagicMock(), MagicMock(), MagicMock()
        self.functions.delete_function = lambda FunctionName: self.functions_there.delete(FunctionName)
        self.functions.delete_event_source_mapping = lambda UUID: self.mappings_there.delete(UUID)
        self.functions.get_paginator = self.pages_of_functions
        self.sqs.list_queues = lambda QueueNamePrefix: {"QueueUrls": self.queues_there.listed()}
        self.sqs.delete_queue = lambda QueueUrl: self.queues_there.delete(QueueUrl)
        groups = self.logs.get_paginator.return_value
        groups.paginate = lambda logGroupNamePrefix: [{"logGroups": [{"logGroupName": it} for it in self.groups_there.listed()]}]
        self.logs.delete_log_group = lambda logGroupName: self.groups_there.delete(logGroupName)
        self.name = name

    def pages_of_functions(self, operation: str) -> MagicMock:
        arn = f"arn:aws:lambda:eu-west-1:123456789012:function:{self.name}-a"
        if operation == "list_functions":
            found = [{"FunctionName": name} for name in ("somebody-elses", *self.functions_there.listed())]
            pages = [{"Functions": found}]
        else:
            found = [{"UUID": uuid, "FunctionArn": arn} for uuid in self.mappings_there.listed()]
            others = {"UUID": "somebody-elses", "FunctionArn": f"{arn}".replace(self.name, "other")}
            pages = [{"EventSourceMappings": [others, *found]}]
        return MagicMock(paginate=lambda: pages)


class Clean(unittest.TestCase):
    def setUp(self) -> None:
        self.pauses = self.enterContext(patch("clean.time.sleep"))
        self.account = Account("comeback-verify-0123abcd")
        self.run_ = run_of(self.account)

    def test_deleted_items_do_not_block_the_rest(self):
        self.assertEqual(clean.clean(self.run_), [])
        account = self.account
        for things in (account.functions_there, account.mappings_there, account.queues_there, account.groups_there):
            self.assertEqual(things.there, set())
        self.assertNotIn("somebody-elses", account.functions_there.deleted + account.mappings_there.deleted)

    def test_repeats_until_lists_are_empty(self):
        self.assertEqual(clean.clean(self.run_), [])
        self.assertEqual(max(self.account.queues_there.ghosts.values()), -1)
        self.assertGreater(clean.ROUNDS * clean.BETWEEN, 60)

    def test_refusal_is_retried_and_blocks_nothing(self):
        self.account.mappings_there.failures = [failure("ResourceInUseException")] * 3
        self.assertEqual(clean.clean(self.run_), [])
        self.assertEqual(self.account.mappings_there.there, set())

    def test_unremovable_items_are_reported(self):
        self.account.queues_there.failures = [failure("AccessDenied")] * 1_000
        self.account.groups_there.ghosts = {"ghost": 1_000}
        left = clean.clean(self.run_)
        denied = "An error occurred (AccessDenied) when calling the Operation operation: it is AccessDenied"
        queues = [f"queues of {self.run_.name}: {url}: {denied}" for url in ("url-a", "url-b")]
        self.assertEqual(left, [*queues, f"logs of {self.run_.name}: ghost is still listed"])
        self.assertEqual(self.account.functions_there.there, set())

    def test_denied_list_is_reported_and_blocks_nothing(self):
        self.account.buckets.head_bucket.side_effect = failure("403")
        self.account.stacks.delete_stack.side_effect = failure("AccessDenied")
        left = clean.clean(self.run_)
        self.assertEqual([problem.split(" of ")[0] for problem in left], ["stack", "bucket"])
        self.assertEqual(self.account.queues_there.there, set())

    def test_role_and_bucket_go_with_their_content(self):
        iam, buckets, name = self.account.iam, self.account.buckets, self.run_.name
        iam.get_role.side_effect = [{"Role": {"RoleName": f"{name}-functions"}}] * 2 + [failure("NoSuchEntity")]
        iam.list_role_policies.return_value = {"PolicyNames": ["gone", "functions"]}
        iam.delete_role_policy.side_effect = [failure("NoSuchEntity"), None] * 2
        iam.delete_role.side_effect = [failure("DeleteConflict"), None]
        buckets.head_bucket.side_effect = [{}, failure("404")]
        buckets.get_paginator.return_value.paginate.return_value = [{"Contents": [{"Key": "zip"}]}, {}]
        self.assertEqual(clean.clean(self.run_), [])
        self.assertEqual(iam.delete_role.call_count, 2)
        buckets.delete_object.assert_called_once_with(Bucket=f"{name}-123456789012", Key="zip")
        buckets.delete_bucket.assert_called_once()
