"""A target that knows nothing of envelopes. It refuses an order as often as its event says, then takes it."""

import collections
import json

TIMES_SEEN = collections.Counter()


class OrderRefused(Exception):
    pass


def handler(event, context):
    print(json.dumps({"received": event}), flush=True)
    TIMES_SEEN[event["order"]] += 1
    if TIMES_SEEN[event["order"]] <= event["refusals"]:
        raise OrderRefused(f"order {event['order']} is refused for now")
    print(json.dumps({"taken": event["order"]}), flush=True)
