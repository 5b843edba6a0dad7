"""Measures listing and redriving 100,000 dead-letters, for docs/operate.md. Runs on Linux only.

The command talks to MiniStack (tests/scale/indexed_queues.py). First, one dead-letter in ten is redriven while the
others are hidden; then all others are redriven. The rates include the time of the server, which is a Python program on
this machine. The memory is that of the command alone.

The console scans the same dead-letters, and shows a page of them and the next page.

The script fails if a command needs more than 80 MB or the console more than 128 MB, if the console's scan takes a
quarter longer than listing, if one of its pages takes more than a tenth of a second, or if a dead-letter is left over
or lost.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

LETTERS = 100_000
MOST_MEGABYTES = 80
MOST_MEGABYTES_OF_THE_CONSOLE = 128
REGION, ACCOUNT = "eu-south-2", "000000000000"
FUNCTION_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:orders"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(port, folder):
    endpoint = f"http://127.0.0.1:{port}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}
    none = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true"}
    serving = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LETTERS": str(LETTERS), "FUNCTION_ARN": FUNCTION_ARN}
    # The server imports modules from the folder that contains run_ministack.py.
    tools = {"PYTHONPATH": "tests/tools", "AWS_ENDPOINT_URL": endpoint, "TMPDIR": folder}
    return {**os.environ, **keys, **none, **serving, **tools}


def wait_until_healthy(port):
    for _ in range(600):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health").close()
        except OSError:
            time.sleep(0.1)
    sys.exit("MiniStack did not start")


def deploy(variables, folder):
    """Creates the two queues, and a function with the handler's environment variables, which is never invoked."""
    def aws(*arguments):
        command = [".tools/aws/bin/aws", *arguments, "--output", "text"]
        return subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    dead, retry = (aws("sqs", "create-queue", "--queue-name", name, "--cli-read-timeout", "300")
                   for name in ("dead-letters", "retry"))
    archive = os.path.join(folder, "handler.zip")
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr("bootstrap", "#!/bin/sh")
    settings = {"DEAD_LETTER_QUEUE_URL": dead, "RETRY_QUEUE_URL": retry, "TARGET_FUNCTIONS": FUNCTION_ARN}
    aws("lambda", "create-function", "--function-name", "handler", "--runtime", "provided.al2023", "--handler", "bootstrap",
        "--role", f"arn:aws:iam::{ACCOUNT}:role/handler", "--zip-file", f"fileb://{archive}",
        "--environment", json.dumps({"Variables": settings}))
    return retry, aws


def peak_megabytes(pid):
    """A process's peak memory in MB; 0 once it has ended. (The figure of `wait4` includes the memory of this script.)"""
    with open(f"/proc/{pid}/status") as status:
        return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), 0)


def measure(variables, command):
    """Runs a command. Returns its output, its time in seconds, and its memory in MB."""
    start, megabytes = time.monotonic(), 0
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE) as child, ThreadPoolExecutor() as reader:
        output = reader.submit(child.stdout.read)
        while peak := peak_megabytes(child.pid):
            megabytes = peak
            time.sleep(0.01)
        output = output.result()
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return output, time.monotonic() - start, megabytes


def row(name, count, seconds, megabytes):
    cells = [name, f"{count:,}", f"{seconds:.2g} s", f"{count / seconds:,.0f} a second", f"{megabytes:.0f} MB"]
    print(f"| {' | '.join(cells)} |", flush=True)


def run(name, letters, variables, command):
    """Prints a row. Returns the command's output, and whether its memory is within the limit."""
    output, seconds, megabytes = measure(variables, command)
    row(name, letters, seconds, megabytes)
    return output, megabytes <= MOST_MEGABYTES


def scan(comeback, variables, folder, seconds_of_a_list):
    """Returns true if the console shows the dead-letters about as fast as the command, with little memory."""
    # Imported here, because `console` imports this file.
    from console import MOST_SECONDS_OF_A_PAGE, Console, link

    with Console(comeback, variables, folder) as console:
        console.page("/dead")
        start = time.monotonic()
        console.post("/dead/scan", once="1")
        seconds = time.monotonic() - start
        row("scan in the console", LETTERS, seconds, console.megabytes())
        first, seconds_of_first = console.page("/dead/each")
        row("its first page of letters", 100, seconds_of_first, console.megabytes())
        _, seconds_of_next = console.page(link(first, "next"))
        row("the next page", 100, seconds_of_next, console.megabytes())
        groups, seconds_of_groups = console.page("/dead")
        row("the page of groups", LETTERS, seconds_of_groups, console.megabytes())
        is_soon = seconds <= 1.25 * seconds_of_a_list + 2
        is_quick = max(seconds_of_first, seconds_of_next) <= MOST_SECONDS_OF_A_PAGE
        return is_soon and is_quick and console.megabytes() <= MOST_MEGABYTES_OF_THE_CONSOLE and f"{LETTERS:,} of about {LETTERS:,} dead-letters" in groups


def main():
    comeback, port = sys.argv[1], free_port()
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(port, folder)
        serve = [".tools/ministack/bin/python", "tests/scale/indexed_queues.py"]
        with open(os.path.join(folder, "log"), "w") as log:
            server = subprocess.Popen(serve, env=variables, stdout=log, stderr=log)
        try:
            wait_until_healthy(port)
            retry, aws = deploy(variables, folder)
            dead = [comeback, "dead"]
            flags = ["--handler", "handler", "--json"]
            redrive = [*dead, "redrive", *flags, "--yes", "--rate", "1000000/s"]
            print("| command | letters | time | rate | memory |\n|---|---|---|---|---|")
            one, small = run("one letter", 1, variables, [*dead, "show", "key-1", *flags])
            groups, seconds, megabytes = measure(variables, [*dead, "list", *flags])
            row("list", LETTERS, seconds, megabytes)
            flat, is_scanned = megabytes <= MOST_MEGABYTES, scan(comeback, variables, folder, seconds)
            some, held = run("redrive --error Timeout", LETTERS // 10, variables, [*redrive, "--error", "Timeout"])
            rest, all_flat = run("redrive --all", LETTERS * 9 // 10, variables, [*redrive, "--all"])
            there = aws("sqs", "get-queue-attributes", "--queue-url", retry, "--attribute-names", "All",
                        "--query", "Attributes.ApproximateNumberOfMessages")
        finally:
            server.terminate()
            server.wait()
    counted = sum(group["count"] for group in json.loads(groups)["groups"])
    redriven = json.loads(some)["redriven"] + json.loads(rest)["redriven"]
    if [counted, redriven, int(there)] != [LETTERS] * 3:
        sys.exit(f"{counted} dead-letters were listed, {redriven} redriven, and {there} are in the retry queue")
    if not (one and small and flat and held and all_flat):
        sys.exit(f"a command needed more than {MOST_MEGABYTES} MB")
    if not is_scanned:
        sys.exit("the console was too slow, or needed too much memory")


if __name__ == "__main__":
    LETTERS = int(sys.argv[2]) if len(sys.argv) > 2 else LETTERS
    main()
