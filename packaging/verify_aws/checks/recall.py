"""Can an operator make a hidden message visible with the receipt handle from the handler's log?"""

import make
from botocore.exceptions import ClientError
from facts import Fact

# The maximum length of a receipt handle that the handler logs.
LONGEST = 1_024
# Seconds to wait: longer than the queue's own visibility timeout.
LATER = 45

OTHERS = Fact(
    "a message that its function hid and reported failed comes back once another principal ends its hiding",
    "on receive 2, within 60 s",
    emulated=True,
)
OLD = Fact("an old receipt handle still ends the hiding of a later receive", "accepted, and the message comes back")
DELETED = Fact("the receipt handle of a deleted message is refused", "`InvalidParameterValue`")
LENGTH = Fact(
    "a receipt handle fits in a line of the log",
    f"at most {LONGEST} characters, with and without a KMS key",
    emulated=True,
)
FACTS = [OTHERS, OLD, DELETED, LENGTH]


def check(run):
    yield OTHERS, *seen_of_others(run)
    queue = make.queue(run, "handles")
    old, new = received_twice(run, queue)
    yield OLD, *seen_of_old(run, queue, old)
    run.account.sqs.delete_message(QueueUrl=queue, ReceiptHandle=new)
    # A deletion takes a moment to reach all of SQS's servers.
    run.pause(run.seconds(5))
    refusal = end_hiding(run, queue, new)
    yield DELETED, f"`{refusal}`" if refusal else "accepted", refusal == "InvalidParameterValue"
    encrypted = make.queue(run, "handles-kms", KmsMasterKeyId="alias/aws/sqs")
    lengths = len(new), len(received_twice(run, encrypted)[1])
    yield LENGTH, f"{lengths[0]} characters, and {lengths[1]} with a KMS key", max(lengths) <= LONGEST


def seen_of_others(run):
    """Lets a function hide a message, then makes it visible with this run's credentials, not the function's."""
    queue = make.queue(run, "kept")
    function = make.function(run, "keeper", code="keeper", Environment={"Variables": {"QUEUE": queue}})
    entries = [{"Id": body, "MessageBody": body} for body in ("keep", "delete")]
    run.account.sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    make.reads(run, function, queue, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"])
    run.until("receipt handle in the log", 300, lambda: newest(run, function))
    run.pause(run.seconds(LATER))
    before = newest(run, function)
    refusal = end_hiding(run, queue, before["handle"])
    if refusal:
        return f"`{refusal}`", False
    receives = run.until("further receive", 60, lambda: receives_after(run, function, before))
    return f"on receive {receives}", receives == 2


def newest(run, function):
    return max(make.printed(run, function), key=lambda line: line["verify"], default=None)


def receives_after(run, function, before):
    receives = newest(run, function)["verify"]
    return receives if receives > before["verify"] else None


def received_twice(run, queue):
    """Receives a message twice, hiding it for ten minutes the second time. Returns both receipt handles."""
    run.account.sqs.send_message(QueueUrl=queue, MessageBody="received twice")
    old = run.until("message", 60, lambda: make.receive(run, queue, hide_for=1))
    new = run.until("second receive", 60, lambda: make.receive(run, queue, hide_for=600))
    return old["ReceiptHandle"], new["ReceiptHandle"]


def seen_of_old(run, queue, old):
    refusal = end_hiding(run, queue, old)
    if refusal:
        return f"`{refusal}`", False
    run.until("message that comes back", 60, lambda: make.receive(run, queue))
    return OLD.expected, True


def end_hiding(run, queue, handle):
    """Makes a hidden message visible. Returns the error code if SQS refuses, otherwise `None`."""
    try:
        run.account.sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=0)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None
