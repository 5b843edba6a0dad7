"""A target that knows nothing about envelopes. It refuses an order as many times as the event says, and then accepts
it."""

import json


class OrderRefused(Exception):
    pass


def handler(event, context):
    print(json.dumps({"received": event}), flush=True)
    # Counts the invocations in a file, because the next invocation may run in a different execution environment.
    with open(event["ledger"], "a+") as ledger:
        ledger.write(f"{event['order']}\n")
        ledger.seek(0)
        times_seen = ledger.readlines().count(f"{event['order']}\n")
    if times_seen <= event["refusals"]:
        raise OrderRefused(f"order {event['order']} is refused for now")
    print(json.dumps({"taken": event["order"]}), flush=True)
