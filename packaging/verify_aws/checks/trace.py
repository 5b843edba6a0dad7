"""Is a re-invocation part of the trace of the invocation that failed?"""

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
    """Returns the trace of each attempt, once the log has two attempts."""
    traces = {line["verify"]: line["trace"] for line in make.printed(run, function)}
    return traces if {0, 1} <= traces.keys() else None


def root_of(header):
    return next((part for part in header.split(";") if part.startswith("Root=")), "")
