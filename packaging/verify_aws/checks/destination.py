"""What does a failed invocation send to its destination queue?"""

import json
import re

import make
from facts import Fact

SHAPE = Fact(
    "the record of a failed invocation",
    "members `requestContext`, `requestPayload`, `responseContext`, `responsePayload`, `timestamp`, `version`",
)
REQUEST_ID = Fact(
    "the request id that `Invoke` returns is the function's own, and the record's", "one id in all three", emulated=True
)
SENDER = Fact("`SenderId` of the message is the function's role", "`AROA…:FUNCTION`")
HEADER = Fact("the message of a traced function has the header `AWSTraceHeader`", "`Root=1-…`")
FACTS = [SHAPE, REQUEST_ID, SENDER, HEADER]


def check(run):
    queue = make.queue(run, "failures")
    function = make.function(run, "fails", TracingConfig={"Mode": "Active"})
    make.fails_to(run, function, queue)
    invoked = make.invoke(run, function, {"failures": 1})
    message = run.until("record", 120, lambda: make.receive(run, queue))
    record = json.loads(message["Body"])

    members = ", ".join(f"`{name}`" for name in sorted(record))
    yield SHAPE, f"members {members}", SHAPE.expected == f"members {members}"
    ids = [invoked, record["responsePayload"]["errorMessage"], record["requestContext"].get("requestId")]
    yield REQUEST_ID, "one id in all three" if len(set(ids)) == 1 else ", ".join(map(str, ids)), len(set(ids)) == 1
    sender = message["Attributes"].get("SenderId", "none")
    role, _, session = sender.partition(":")
    # The table shows only the beginning of the role's id, because the id is private.
    yield SENDER, f"`{role[:4]}…:{session}`", role.startswith("AROA") and session == function
    header = message["Attributes"].get("AWSTraceHeader", "none")
    yield HEADER, f"`{header}`", re.match("Root=1-[0-9a-f]{8}-[0-9a-f]{24}", header) is not None
