"""Tests how SQS's responses to old receipt handles, and to handles of deleted messages, are interpreted."""

import unittest
from unittest import mock

from support import failure, run_of

from checks import recall


class Queues:
    """A fake of SQS's receipt handles. Each receive returns a new handle. `refuses` has an error code per handle."""

    def __init__(self, lengths: tuple[int, int] = (412, 440), **refuses: str):
        self.lengths, self.refuses = {"handles": lengths[0], "handles-kms": lengths[1]}, refuses
        self.receives, self.deleted = 0, []

    def receive(self, _run, queue, hide_for=60):
        self.receives += 1
        return {"ReceiptHandle": f"{self.receives}".ljust(self.lengths[queue], "h")}

    def send_message(self, **_):
        pass

    def delete_message(self, ReceiptHandle, **_):
        self.deleted.append(ReceiptHandle)

    def change_message_visibility(self, ReceiptHandle, VisibilityTimeout, **_):
        assert VisibilityTimeout == 0
        code = self.refuses.get("deleted" if ReceiptHandle in self.deleted else "old")
        if code:
            raise failure(code)


class Recall(unittest.TestCase):
    def rows(self, queues):
        run = run_of()
        run.account.sqs, run.pause = queues, lambda _seconds: None
        made = {"queue": lambda _run, name, **_: name, "receive": queues.receive}
        with (
            mock.patch.multiple(recall.make, **made),
            mock.patch.object(recall, "seen_of_others", return_value=("on receive 2", True)),
        ):
            return {fact: (seen, agrees) for fact, seen, agrees in recall.check(run)}

    def test_documented_behaviour_is_expected(self):
        rows = self.rows(Queues(deleted="InvalidParameterValue"))
        self.assertEqual(list(rows), recall.FACTS)
        self.assertTrue(all(agrees for _, agrees in rows.values()), rows)
        self.assertEqual(rows[recall.LENGTH][0], "412 characters, and 440 with a KMS key")

    def test_each_other_answer_differs(self):
        rows = self.rows(Queues(lengths=(412, 1_025), old="ReceiptHandleIsInvalid"))
        self.assertEqual(rows[recall.OLD], ("`ReceiptHandleIsInvalid`", False))
        self.assertEqual(rows[recall.DELETED], ("accepted", False))
        self.assertEqual(rows[recall.LENGTH][1], False)

    def test_only_receives_after_the_recall_count(self):
        line = {"verify": 2, "handle": "h"}
        with mock.patch.object(recall.make, "printed", return_value=[line, {"verify": 1}]):
            self.assertIsNone(recall.receives_after(run_of(), "keeper", line))
            self.assertEqual(recall.receives_after(run_of(), "keeper", {"verify": 1}), 2)
