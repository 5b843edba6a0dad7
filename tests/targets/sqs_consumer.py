"""The Python consumer from docs/consumer.md. Each message says how many of its runs fail, and with which error.

The consumer records each run in a file.
"""

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
