"""Measures the time that a consumer adds to a cold start in Python and in Node.js, and the time of its first failure.

Prints medians over RUNS new processes, in milliseconds of processor time, which other work on the machine hardly
affects. Run it in the environment of the clients' tests, which has boto3:

    .tools/clients/bin/python tests/scale/consumer_start.py
"""

import json
import os
import statistics
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

RUNS = 15
CLIENTS = Path(__file__).resolve().parents[2] / "clients"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
RECORD = {"messageId": "m", "receiptHandle": "h", "body": "{}", "attributes": {}, "messageAttributes": {}, "eventSourceARN": QUEUE}

# Each program measures how long it takes to create a consumer and to handle a success, a first failure and a second
# failure.
PYTHON = """
import sys, time
from types import SimpleNamespace
# Lambda's runtime client (awslambdaric) loads these modules before it loads a function.
import decimal, http.client, json, logging, traceback
start = time.process_time()
import comeback_sqs
fails = False
@comeback_sqs.consumer()
def handler(record, context):
    if fails:
        raise ValueError("no")
times = [time.process_time() - start]
event = {"Records": [json.loads(sys.argv[1])]}
context = SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000, invoked_function_arn="f")
for fails in (False, True, True):
    start = time.process_time()
    handler(event, context)
    times.append(time.process_time() - start)
print(json.dumps([1_000 * it for it in times]))
"""
NODE = """
const event = { Records: [JSON.parse(process.argv[1])] };
const context = { getRemainingTimeInMillis: () => 60_000, invokedFunctionArn: 'f' };
const now = () => Object.values(process.cpuUsage()).reduce((one, other) => one + other) / 1_000;
let fails = false;
let start = now();
const { consumer } = require('comeback-sqs');
const handler = consumer({}, async () => { if (fails) throw new Error('no'); });
const times = [now() - start];
(async () => {
  for (fails of [false, true, true]) {
    start = now();
    await handler(event, context);
    times.push(now() - start);
  }
  console.log(JSON.stringify(times));
})();
"""


class Sqs(BaseHTTPRequestHandler):
    """Answers each call immediately."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"Successful":[],"Failed":[]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Sqs)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = os.environ | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    # With -B, Python writes no bytecode files, and so compiles the client on every start. It does the same on Lambda if
    # the function's package contains no such files.
    python = [sys.executable, "-B", "-c", PYTHON]
    for name, command, folder in (("Python", python, "python-sqs"), ("Node.js", ["node", "-e", NODE], "node-sqs")):
        figures = [run([*command, json.dumps(RECORD)], CLIENTS / folder, environment) for _ in range(RUNS)]
        start, success, first, second = (statistics.median(column) for column in zip(*figures, strict=True))
        print(
            f"{name}: {start + success:.1f} ms added to a start without a failure ({start:.1f} to load it, {success:.1f} for"
            f" the first batch); {first:.0f} ms for the first failure, {second:.1f} for the next"
        )


def run(command: list[str], folder: Path, environment: dict[str, str]) -> list[float]:
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    figures: list[float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
