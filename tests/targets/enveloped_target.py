"""A target that opens the envelope itself. It refuses an order as many times as the event says, and then accepts it."""

import json


class OrderRefused(Exception):
    pass


def handler(event, context):
    order = event.get("_original_payload", event)
    attempt = event.get("_retry_metadata", {}).get("attempt", 0)
    print(json.dumps({"order": order["order"], "attempt": attempt}), flush=True)
    if attempt < order["refusals"]:
        raise OrderRefused(f"order {order['order']} is refused for now")
