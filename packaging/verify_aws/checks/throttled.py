"""What does the record say about an event that was throttled until it was too old?"""

import json

import make
from botocore.exceptions import ClientError
from facts import Fact, NotAsked

from checks.records import seen

TOO_OLD = Fact("the record of an event that was throttled until it was too old", "`EventAgeExceeded`, no status, no error")
FACTS = [TOO_OLD]


def check(run):
    function, queue = make.function(run, "busy", timeout=200), make.queue(run, "busy")
    make.fails_to(run, function, queue)
    try:
        run.account.functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=1)
    except ClientError as error:
        raise NotAsked(f"this account may not reserve concurrency: {error}") from error
    make.invoke(run, function, {"sleep": run.seconds(150)})
    run.pause(run.seconds(10))  # until the function runs
    make.invoke(run, function, {"failures": 1})
    # The event that keeps the function busy succeeds, so the only record belongs to the other event.
    message = run.until("record of the throttled event", 600, lambda: make.receive(run, queue))
    yield TOO_OLD, *seen(TOO_OLD, json.loads(message["Body"]))
