"""Measures a recall of 100,000 waiting events, for docs/operate.md. Runs on Linux only.

The command talks to MiniStack (tests/scale/hidden_messages.py), on this machine. It first waits 38 seconds for the
handler to read the request. The script fails if a message is not recalled, or if the command takes more than three
minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from dead_letters import FUNCTION_ARN, deploy, environment, free_port, measure, row, wait_until_healthy
from waiting import line, log

EVENTS = 100_000
MOST_SECONDS = 180


def lines(now):
    for number in range(EVENTS):
        yield json.dumps(json.loads(line(now, number, "defer")) | {"receipt_handle": f"{number:0400}"})


def visible(aws, queue):
    answer = aws("sqs", "get-queue-attributes", "--queue-url", queue, "--attribute-names", "ApproximateNumberOfMessages",
                 "--query", "Attributes.ApproximateNumberOfMessages")
    return int(answer)


def main():
    comeback, port = sys.argv[1], free_port()
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(port, folder) | {"LETTERS": str(EVENTS)}
        with open(os.path.join(folder, "log"), "w") as out:
            server = subprocess.Popen([".tools/ministack/bin/python", "tests/scale/hidden_messages.py"], env=variables, stdout=out, stderr=out)
        try:
            wait_until_healthy(port)
            queue, aws = deploy(variables, folder)
            dead = aws("sqs", "get-queue-url", "--queue-name", "dead-letters")
            settings = {"DEAD_LETTER_QUEUE_URL": dead, "RETRY_QUEUE_URL": queue, "TARGET_FUNCTIONS": FUNCTION_ARN, "PAUSES": "/pauses"}
            aws("lambda", "update-function-configuration", "--function-name", "handler",
                "--environment", json.dumps({"Variables": settings}), "--logging-config", "LogGroup=all-wait")
            log(aws, "all-wait", lines(time.time() - 60), time.time() - 60, folder)
            print("| command | messages | time | rate | memory |\n|---|---|---|---|---|")
            command = [comeback, "retry", "--all", "--within", "0s", "--handler", "handler", "--yes", "--json"]
            text, seconds, megabytes = measure(variables, command)
            row("retry, which recalls them", EVENTS, seconds, megabytes)
            recalled = json.loads(text)["result"]["recalled"]
            if [recalled, visible(aws, queue)] != [EVENTS, EVENTS] or seconds > MOST_SECONDS:
                sys.exit(f"{recalled} messages were recalled in {seconds:.0f} s; {visible(aws, queue)} are visible")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    EVENTS = int(sys.argv[2]) if len(sys.argv) > 2 else EVENTS
    main()
