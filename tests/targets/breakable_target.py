"""A target that fails while its variable FAIL_WITH names an error."""

import json
import os


def handler(event, context):
    error = os.environ.get("FAIL_WITH")
    if error:
        raise type(error, (Exception,), {})("FAIL_WITH is set")
    print(json.dumps({"took": event.get("_original_payload", event)}))
