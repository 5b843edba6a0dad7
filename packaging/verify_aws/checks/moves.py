"""Does `RecursiveLoop: Allow` let a message be sent again more times than two 12-hour retries need?"""

import make
from facts import Fact

MOVES = 100

OFTEN = Fact("`RecursiveLoop: Allow` lets a function send a message again more than 96 times", f"sent again {MOVES} times")
FACTS = [OFTEN]


def check(run):
    queue, done = make.queue(run, "moved"), make.queue(run, "moved-enough")
    variables = {"Variables": {"QUEUE": queue, "DONE": done}}
    function = make.function(run, "mover", code="mover", timeout=5, Environment=variables)
    make.reads(run, function, queue)
    run.account.sqs.send_message(QueueUrl=queue, MessageBody=str(run.many(MOVES)))
    run.until("message that was moved often enough", 900, lambda: make.receive(run, done))
    yield OFTEN, f"sent again {run.many(MOVES)} times", True
