"""Is a re-invocation part of the trace of the invocation that failed?"""

import json

import make
from facts import Fact

ONE_TRACE = Fact("the attempts of an event are one X-Ray trace", "attempts 0 and 1 in one trace")
FACTS = [ONE_TRACE]


def check(run):
    function = make.function(run, "traced", TracingConfig={"Mode": "Active"})
    make.fails_to(run, function, run.release["RetryQueueUrl"])
    make.invoke(run, function, {"failures": 1})
    traces = run.until("log of attempts 0 and 1", 300, lambda: attempts(run, function))
    roots = [root_of(traces[attempt]) for attempt in (0, 1)]
    seen = "attempts 0 and 1 in one trace" if roots[0] == roots[1] else f"attempt 0 in {roots[0]}, attempt 1 in {roots[1]}"
    yield ONE_TRACE, seen, bool(roots[0]) and roots[0] == roots[1]


def attempts(run, function):
    """Returns the trace of each attempt, once the log has two."""
    logs = run.account.logs
    try:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{function}", filterPattern="verify")
        lines = [event["message"] for page in pages for event in page["events"]]
    except logs.exceptions.ResourceNotFoundException:
        return None
    lines = [json.loads(line) for line in lines if line.startswith('{"verify"')]
    traces = {line["verify"]: line["trace"] for line in lines}
    return traces if {0, 1} <= traces.keys() else None


def root_of(header):
    return next((part for part in header.split(";") if part.startswith("Root=")), "")
