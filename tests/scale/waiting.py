"""Measures reading 100,000 lines of the handler's log, for docs/operate.md. Runs on Linux only.

The command talks to MiniStack (tests/scale/paged_log.py). In one log, each event was retried immediately and only a few
are still waiting; in another, all are waiting. The rates include the time of the server, which is a Python program on
this machine. The memory is that of the command alone. The console reads the same logs, and shows the overview, a page
of events and the next page.

The script fails if a command needs more than 80 MB or finds a wrong number of events, or if the console takes a quarter
longer for its first page than the command, more than a tenth of a second for another page, or more than twice the
command's memory.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

from console import MOST_SECONDS_OF_A_PAGE, Console, link
from dead_letters import FUNCTION_ARN, MOST_MEGABYTES, deploy, environment, free_port, measure, row, run, wait_until_healthy

LINES = 100_000
# PutLogEvents accepts at most 1 MiB in one call.
LINES_OF_A_CALL = 2_500


def time_text(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


def line(now, number, action):
    due = time_text(now + 3_600)
    fields = {"timestamp": time_text(now), "level": "INFO", "v": 1, "message_id": f"message-{number:028}", "key": f"key-{number:032}",
              "target": FUNCTION_ARN, "retry": 3, "first_failure": time_text(now - 3_600), "request_id": f"request-{number:028}",
              "error_type": f"Error{number % 9}", "action": action, "due": due}
    fields |= {"due_by": "policy", "delay": 3_600} if action == "defer" else {"invoke_request_id": f"request-{number:027}x"}
    return json.dumps(fields)


def log(aws, group, lines, now, folder):
    aws("logs", "create-log-group", "--log-group-name", group)
    aws("logs", "create-log-stream", "--log-group-name", group, "--log-stream-name", "one")
    path = os.path.join(folder, "lines.json")
    while some := [{"timestamp": int(now * 1_000), "message": it} for it in itertools.islice(lines, LINES_OF_A_CALL)]:
        with open(path, "w") as file:
            json.dump(some, file)
        aws("logs", "put-log-events", "--log-group-name", group, "--log-stream-name", "one", "--log-events", f"file://{path}")


def shows(comeback, variables, folder, lines, seconds_of_the_command, megabytes_of_the_command):
    """Returns true if the console shows the waiting events about as fast as the command, with little memory."""
    with Console(comeback, variables, folder) as console:
        start = time.monotonic()
        while "most frequent error" not in console.page("/")[0]:
            time.sleep(0.05)
        seconds = time.monotonic() - start
        row("the console's first page", lines, seconds, console.megabytes())
        page, seconds_of_list = console.page("/waiting")
        row("its page of waiting events", 100, seconds_of_list, console.megabytes())
        # After six seconds, the console considers its log lines out of date and reads the log again.
        time.sleep(6)
        _, seconds_of_next = console.page(link(page, "next"))
        row("the next page", 100, seconds_of_next, console.megabytes())
        is_soon = seconds <= 1.25 * seconds_of_the_command + 2
        is_soon = is_soon and max(seconds_of_list, seconds_of_next) <= MOST_SECONDS_OF_A_PAGE
        return is_soon and console.megabytes() <= 2 * megabytes_of_the_command


def main():
    comeback, port = sys.argv[1], free_port()
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(port, folder)
        with open(os.path.join(folder, "log"), "w") as out:
            server = subprocess.Popen([".tools/ministack/bin/python", "tests/scale/paged_log.py"], env=variables, stdout=out, stderr=out)
        try:
            wait_until_healthy(port)
            _, aws = deploy(variables, folder)
            now, few, ok = time.time() - 60, LINES // 100, []
            print("| command | lines | time | rate | memory |\n|---|---|---|---|---|")
            for name, retried, waiting in [("few-lines", 0, few), ("few-wait", (LINES - few) // 2, few), ("all-wait", 0, LINES)]:
                settled = (line(now, number, action) for number in range(retried) for action in ("defer", "reinvoke"))
                waits = (line(now, LINES + number, "defer") for number in range(waiting))
                log(aws, name, itertools.chain(settled, waits), now, folder)
                aws("lambda", "update-function-configuration", "--function-name", "handler", "--logging-config", f"LogGroup={name}")
                command = [comeback, "waiting", "--handler", "handler", "--each", "--limit", str(LINES)]
                lines = 2 * retried + waiting
                text, seconds, megabytes = measure(variables, command)
                row(f"waiting, of {waiting:,} events", lines, seconds, megabytes)
                ok.append(megabytes <= MOST_MEGABYTES and text.count(b"\nkey-") == waiting)
                ok.append(shows(comeback, variables, folder, lines, seconds, megabytes))
                found, is_small = run("the same with --json", lines, variables, [*command, "--json"])
                found = json.loads(found)
                ok.append(is_small and [found["found"], found["lines"], len(found["events"])] == [waiting, lines, waiting])
        finally:
            server.terminate()
            server.wait()
    if not all(ok):
        sys.exit(f"a command needed more than {MOST_MEGABYTES} MB, or did not find every waiting event, or the console was too slow or too large")


if __name__ == "__main__":
    LINES = int(sys.argv[2]) if len(sys.argv) > 2 else LINES
    main()
