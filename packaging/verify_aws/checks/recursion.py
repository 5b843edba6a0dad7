"""Does `RecursiveLoop: Allow` on both functions keep Lambda from stopping a loop between the two after 16 rounds?"""

import json

import make
from facts import Fact
from release import RETRIES

ROUNDS = Fact(
    "`RecursiveLoop: Allow` lets two functions and a queue go round more than 16 times",
    f"{RETRIES} retries, then `max_retries`",
)
FACTS = [ROUNDS]


def check(run):
    function = make.function(run, "always-fails")
    make.fails_to(run, function, run.release["RetryQueueUrl"])
    make.invoke(run, function, {"failures": 1_000})
    letter = run.until("dead-letter", 600, lambda: make.receive(run, run.release["DeadLetterQueueUrl"]))
    body = json.loads(letter["Body"])
    made, reason = body["retries_made"], body["reason"]
    yield ROUNDS, f"{made} retries, then `{reason}`", (made, reason) == (run.many(RETRIES), "max_retries")
