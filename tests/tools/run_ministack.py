"""Runs MiniStack 1.5.33 such that it loses no message, on a faster clock as well."""

import random
import select
import sys
import time
import uuid

# Under faketime, Python's own sleep is begun on the faster clock and ended on the other: it never ends.
time.sleep = lambda seconds: select.select([], [], [], max(0.0, seconds))

# The record of a failed invocation is appended to a queue's list of messages while another thread may put a new list in
# its place: the record is lost with the old one. So no thread gives way between taking the list and appending to it:
# not by its time being up, and not by asking the operating system for a random id.
sys.setswitchinterval(0.1)
from ministack.services import lambda_svc  # noqa: E402

lambda_svc.new_uuid = lambda: str(uuid.UUID(int=random.getrandbits(128), version=4))

# Its web server ends an HTTP/2 connection after a thousand requests, those under way included: their answers never come.
from hypercorn.config import Config  # noqa: E402

Config.keep_alive_max_requests = 10**9

from ministack.app import main  # noqa: E402

main()
