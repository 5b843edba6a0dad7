"""Runs MiniStack 1.5.33 with a retry queue of 100,000 messages that a handler has received and hidden for an hour.

The log comes from tests/scale/paged_log.py, and the queues come from tests/scale/indexed_queues.py. A message's receipt
handle follows from its number, so that the writer of the log knows the handle.
"""

import os
import runpy
import time

import indexed_queues
import paged_log  # noqa: F401: it replaces a call
from ministack.services import sqs

MESSAGES = int(os.environ["LETTERS"])
HIDDEN_FOR = 3_600


def handle(number):
    """A receipt handle as long as those of SQS."""
    return f"{number:0400}"


def create(data, url):
    created = indexed_queues.create(data, url)
    if data["QueueName"] == "retry":
        messages = sqs._get_q(created["QueueUrl"])["messages"]
        for number in range(MESSAGES):
            sqs._act_send_message({"QueueUrl": created["QueueUrl"], "MessageBody": "{}"}, url)
        for number, message in enumerate(messages.receive(MESSAGES, HIDDEN_FOR)):
            del messages.by_handle[message["receipt_handle"]]
            message["receipt_handle"] = handle(number)
            messages.by_handle[handle(number)] = message
    return created


sqs._HANDLERS["CreateQueue"] = create

if __name__ == "__main__":
    runpy.run_path("tests/tools/run_ministack.py", run_name="__main__")
