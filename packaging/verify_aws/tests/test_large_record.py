"""Tests the check of a failure record that is too large. AWS may drop the record, or send it without its payload."""

import json
import unittest
from types import SimpleNamespace
from unittest import mock

import support  # noqa: F401

from checks import large_record


class LargeRecord(unittest.TestCase):
    def verdict(self, message, failures):
        run = SimpleNamespace(until=lambda _what, _seconds, answer: answer())
        run.account = SimpleNamespace(
            metrics=SimpleNamespace(get_metric_statistics=lambda **_: {"Datapoints": [{"Sum": failures}]})
        )
        made = {name: mock.Mock() for name in ("function", "queue", "fails_to", "invoke")}
        with mock.patch.multiple(large_record.make, receive=lambda *_: message, **made):
            [(_, seen, agrees)] = large_record.check(run)
        return seen, agrees

    def test_only_known_behaviours_are_expected(self):
        def record(**members):
            return {"Body": json.dumps({"requestContext": {}, **members})}

        for message, failures, agrees in [
            (None, 1, True),
            (record(), 0, True),
            (record(requestPayload={}), 0, False),
            (record(), 1, False),
        ]:
            self.assertEqual(self.verdict(message, failures)[1], agrees, (message, failures))
