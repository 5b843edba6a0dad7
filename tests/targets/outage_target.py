"""A target that fails while a file is there: its event says which. It logs each invocation, and when it was."""

import json
import os
import time


class Outage(Exception):
    pass


def handler(event, context):
    is_out = os.path.exists(event["outage"])
    attempt = event.get("_retry_metadata", {}).get("attempt", 0)
    seen = {"order": event["order"], "attempt": attempt, "at": time.time(), "taken": not is_out}
    print(json.dumps(seen), flush=True)
    if is_out:
        raise Outage("the target is out")
