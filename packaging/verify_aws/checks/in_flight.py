"""How far behind is the count of messages in flight, which the handler uses to decide whether it may hide more?"""

import time

import make
from facts import Fact

MESSAGES = 100

LAG = Fact("the count of messages in flight is right soon after they were received", "within 60 s", emulated=True)
FACTS = [LAG]


def check(run):
    queue = make.queue(run, "counted")
    for first in range(0, MESSAGES, 10):
        entries = [{"Id": str(number), "MessageBody": "counted"} for number in range(first, first + 10)]
        run.account.sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    received = []
    run.until(f"{MESSAGES} messages", 120, lambda: take(run, queue, received))
    hidden = time.monotonic()
    run.until("right count", 300, lambda: True if count(run, queue) == MESSAGES else None)
    lag = round(time.monotonic() - hidden)
    yield LAG, f"{MESSAGES} were counted after {lag} s", lag <= 60


def take(run, queue, received):
    """Receives and hides more messages. Returns true once all messages are hidden."""
    answer = run.account.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=900, WaitTimeSeconds=1)
    received += answer.get("Messages", [])
    return True if len(received) == MESSAGES else None


def count(run, queue):
    name = "ApproximateNumberOfMessagesNotVisible"
    return int(run.account.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=[name])["Attributes"][name])
