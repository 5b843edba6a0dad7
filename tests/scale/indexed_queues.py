"""Runs MiniStack 1.5.33 with indexed queues, for 100,000 dead-letters.

MiniStack scans every message of a queue for each receive and for each entry of a deletion, so the work on a queue
grows with the square of the queue's length. Here, messages are indexed; everything else is MiniStack's. A queue named
`dead-letters` is filled with dead-letters when it is created.
"""

import heapq
import itertools
import json
import os
import runpy
import time

from ministack.services import sqs

LETTERS = int(os.environ["LETTERS"])
FUNCTION_ARN = os.environ["FUNCTION_ARN"]
ERRORS = ["Timeout", *(f"Error{number}" for number in range(9))]


class Messages:
    """Messages by the time when they are next visible, and by receipt handle."""

    def __init__(self):
        self.all, self.by_handle, self.next, self.number = {}, {}, [], itertools.count()

    def __iter__(self):
        return iter(list(self.all.values()))

    def __len__(self):
        return len(self.all)

    def append(self, message):
        self.all[message["id"]] = message
        self.plan(message)

    def plan(self, message):
        heapq.heappush(self.next, (message["visible_at"], next(self.number), message))

    def receive(self, most, visibility_timeout):
        now, received = time.time(), []
        while self.next and len(received) < most and self.next[0][0] <= now:
            visible_at, _, message = heapq.heappop(self.next)
            if message["id"] not in self.all or message["visible_at"] != visible_at:
                continue
            self.by_handle.pop(message["receipt_handle"], None)
            message["receipt_handle"] = sqs.new_uuid()
            self.by_handle[message["receipt_handle"]] = message
            message["visible_at"] = now + visibility_timeout
            message["receive_count"] += 1
            message["first_receive_at"] = message.get("first_receive_at") or now
            self.plan(message)
            received.append(message)
        return received

    def delete(self, handle):
        return self.all.pop(self.by_handle.pop(handle, {}).get("id"), None)

    def hide(self, handle, seconds):
        message = self.by_handle.get(handle)
        if message:
            message["visible_at"] = time.time() + seconds
            self.plan(message)
        return message


def batch(effect):
    def answer(data, url):
        queue = sqs._get_q(data.get("QueueUrl", url))
        done = [entry["Id"] for entry in data["Entries"] if effect(queue["messages"], entry)]
        failed = {"Code": "ReceiptHandleIsInvalid", "Message": "stale", "SenderFault": True}
        left = [{"Id": entry["Id"], **failed} for entry in data["Entries"] if entry["Id"] not in done]
        return {"Successful": [{"Id": id} for id in done], "Failed": left}

    return answer


def letter(number):
    """A dead-letter of about 650 bytes, as the handler writes it."""
    return json.dumps({
        "reason": "max_age", "detail": "first failed at 2026-09-14T15:46:54.000Z; MAX_AGE is 86400 s",
        "function_arn": FUNCTION_ARN, "retries_made": 19, "initial_timestamp": 1789400814, "dead_lettered_at": 1789487214,
        "origin_request_id": f"key-{number}", "error": {"type": ERRORS[number % len(ERRORS)], "message": "too slow"},
        "payload": {"order": number, "note": "x" * 250},
    })


create_queue = sqs._HANDLERS["CreateQueue"]


def create(data, url):
    created = create_queue(data, url)
    queue = sqs._get_q(created["QueueUrl"])
    queue["messages"] = Messages()
    if data["QueueName"] == "dead-letters":
        for number in range(LETTERS):
            sqs._act_send_message({"QueueUrl": created["QueueUrl"], "MessageBody": letter(number)}, url)
    return created


sqs._HANDLERS["CreateQueue"] = create
sqs._HANDLERS["DeleteMessageBatch"] = batch(lambda messages, entry: messages.delete(entry["ReceiptHandle"]))
sqs._HANDLERS["ChangeMessageVisibilityBatch"] = batch(
    lambda messages, entry: messages.hide(entry["ReceiptHandle"], entry["VisibilityTimeout"]))
sqs._collect_msgs = lambda queue, most, timeout: queue["messages"].receive(most, timeout)
sqs._expire_retained = sqs._dlq_sweep = lambda queue: None

if __name__ == "__main__":
    runpy.run_path("tests/tools/run_ministack.py", run_name="__main__")
