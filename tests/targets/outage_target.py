"""A target that fails while a file exists, and records each invocation and its time in another. The event names both.

The target does not use its log: on a faster clock, MiniStack waits only a few milliseconds for a log.
"""

import json
import os
import time


class Outage(Exception):
    pass


def handler(event, context):
    attempt = event.pop("_retry_metadata", {}).get("attempt", 0)
    event = event.get("_original_payload", event)
    is_out = os.path.exists(event["outage"])
    seen = {"order": event["order"], "attempt": attempt, "at": time.time(), "taken": not is_out, "event": event}
    with open(event["ledger"], "a") as ledger:
        ledger.write(json.dumps(seen) + "\n")
    if is_out:
        raise Outage("the target is out")
