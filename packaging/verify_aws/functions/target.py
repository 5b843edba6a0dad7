"""Does what the event requests: `failures` (the number of attempts that fail), `sleep` (seconds), `megabytes` (of
memory to fill)."""

import json
import os
import time


class Failed(Exception):
    pass


def handler(event, context):
    attempt = event.get("_retry_metadata", {}).get("attempt", 0)
    asked = event.get("_original_payload", event)
    trace = os.environ.get("_X_AMZN_TRACE_ID", "")
    print(json.dumps({"verify": attempt, "trace": trace}), flush=True)
    time.sleep(asked.get("sleep", 0))
    filled = bytearray(b"x") * (asked.get("megabytes", 0) * 1_048_576)
    if attempt < asked.get("failures", 0):
        raise Failed(context.aws_request_id)
    return len(filled)
