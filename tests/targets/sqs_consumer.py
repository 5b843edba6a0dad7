"""A consumer of docs/consumer.md. Each message says how often it fails, and how. Each run is noted in a file."""

import json
import os
import time

import comeback_sqs
from comeback_sqs import NonRetryable, RetryAfter, consumer

ERRORS = {"RetryAfter": RetryAfter, "NonRetryable": NonRetryable, "OrderRefused": type("OrderRefused", (Exception,), {})}


@consumer(**json.loads(os.environ["OPTIONS"]))
def handler(record, context):
    order = json.loads(record["body"])
    receives = int(record["attributes"]["ApproximateReceiveCount"])
    fails = receives <= order["fails"]
    with open(os.environ["LEDGER"], "a") as ledger:
        seen = {"order": order["order"], "receives": receives, "at": time.time(), "taken": not fails}
        ledger.write(json.dumps(seen) + "\n")
    if fails:
        raise ERRORS[order["error"]](order["message"])
