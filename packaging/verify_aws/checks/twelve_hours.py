"""When do the twelve hours of a visibility timeout begin?"""

import time

import make
from botocore.exceptions import ClientError
from facts import Fact, NotAsked

LONGEST = 43_170
# A wait in seconds, longer than the difference between twelve hours and `LONGEST`.
LATER = 45

ANEW = Fact(
    "the 12 hours of a visibility timeout restart with each receive",
    f"{LONGEST} s are accepted on a second receive, {LATER} s after the first",
    emulated=True,
)
FROM_THE_RECEIVE = Fact(
    "they count from the receive, not from the call that sets the timeout",
    f"{LONGEST} s are refused {LATER} s after the receive",
)
COMES_BACK = Fact("a message that is hidden for so long comes back", f"after {LONGEST} to {LONGEST + 60} s")
FACTS = [ANEW, FROM_THE_RECEIVE, COMES_BACK]


def check(run):
    queue, later = make.queue(run, "hidden"), run.seconds(LATER)
    run.account.sqs.send_message(QueueUrl=queue, MessageBody="hidden")
    run.until("message", 60, lambda: make.receive(run, queue, hide_for=later))
    run.pause(later)
    message = run.until("second receive", 60, lambda: make.receive(run, queue, hide_for=300))
    accepted = hide(run, queue, message)
    yield ANEW, "accepted" if accepted else "refused", accepted
    run.pause(later)
    accepted = hide(run, queue, message)
    yield FROM_THE_RECEIVE, "accepted" if accepted else "refused", not accepted
    if not run.with_hours:
        raise NotAsked("takes 12 hours: --hours")
    yield COMES_BACK, *comes_back(run, queue)


def comes_back(run, queue):
    run.account.sqs.purge_queue(QueueUrl=queue)
    run.pause(run.seconds(60))  # a purge may take this long
    run.account.sqs.send_message(QueueUrl=queue, MessageBody="hidden")
    longest = run.seconds(LONGEST)
    run.until("message", 60, lambda: make.receive(run, queue, hide_for=longest))
    hidden = time.monotonic()
    run.until("message that comes back", longest + 600, lambda: make.receive(run, queue))
    waited = round(time.monotonic() - hidden)
    return f"after {waited} s", longest <= waited <= longest + 60


def hide(run, queue, message):
    """Returns true if SQS accepts the longest visibility timeout."""
    try:
        run.account.sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=LONGEST)
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidParameterValue":
            return False
        raise
    return True
