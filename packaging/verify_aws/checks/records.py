"""What does the record say about an invocation that timed out, crashed or never started?"""

import json

import make
from facts import Fact

TIMEOUT = Fact("the record of an invocation that timed out", "`RetriesExhausted`, status 200, `Sandbox.Timedout`", emulated=True)
MEMORY = Fact("the record of one that ran out of memory", "`RetriesExhausted`, status 200, `Runtime.OutOfMemory`")
ZERO = Fact("the record of an event whose function has no concurrency", "`ZeroReservedConcurrency`, status 429, no error")
FACTS = [TIMEOUT, MEMORY, ZERO]


def check(run):
    yield TIMEOUT, *seen(TIMEOUT, record_of(run, "timed-out", {"sleep": 10}, timeout=1))
    yield MEMORY, *seen(MEMORY, record_of(run, "out-of-memory", {"megabytes": 0 if run.account.is_emulator else 512}))
    yield ZERO, *seen(ZERO, record_of(run, "zero", {}, concurrency=0))


def record_of(run, name, event, timeout=10, concurrency=None):
    function, queue = make.function(run, name, timeout=timeout), make.queue(run, name)
    make.fails_to(run, function, queue)
    if concurrency is not None:
        run.account.functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=concurrency)
    make.invoke(run, function, {"failures": 1, **event})
    return json.loads(run.until(f"record of {name}", 300, lambda: make.receive(run, queue))["Body"])


def seen(fact, record):
    """Returns the record's content and whether it was expected."""
    condition = record["requestContext"].get("condition", "no condition")
    status = (record.get("responseContext") or {}).get("statusCode", "no status")
    error = (record.get("responsePayload") or {}).get("errorType")
    status = f"status {status}" if isinstance(status, int) else status
    text = f"`{condition}`, {status}, {f'`{error}`' if error else 'no error'}"
    return text, text == fact.expected
