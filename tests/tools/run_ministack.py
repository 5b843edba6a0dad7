"""Runs MiniStack 1.5.33 with the corrections that the tests need. The comments say how MiniStack differs from AWS."""

import contextvars
import functools
import hashlib
import json
import os
import re
import select
import socketserver
import threading
import time

import yaml
from recorder import recording

# libyaml parses a template ten times as fast as PyYAML's own parser.
yaml.SafeLoader = yaml.CSafeLoader

# Under faketime, Python's sleep computes its end on the fast clock but waits on the real clock: practically for ever.
time.sleep = lambda seconds: select.select([], [], [], max(0.0, seconds))
# MiniStack runs a server for each environment, and each server checks ten times a second whether to stop. A fast
# clock makes the checks more frequent, so their interval is lengthened.
if "FAKETIME" in os.environ:
    serve = socketserver.BaseServer.serve_forever
    socketserver.BaseServer.serve_forever = lambda server, poll_interval=0.5: serve(server, 60 * poll_interval)

from ministack import app  # noqa: E402
from ministack.core import iam_actions, iam_evaluator, lambda_runtime  # noqa: E402
from ministack.services import cloudwatch, iam, lambda_svc, sqs  # noqa: E402
from ministack.services.cloudformation import provisioners  # noqa: E402

# MiniStack's mappings hold this lock while they replace a queue's list of messages. Other code that uses the list
# must hold it too.
sqs._queues_lock = threading.RLock()


def locked(function):
    @functools.wraps(function)
    def under_lock(*arguments):
        with sqs._queues_lock:
            return function(*arguments)

    return under_lock


# On AWS, but not in MiniStack, the `Invoke` response, the context, the log and the record contain the same request id.
request_id = contextvars.ContextVar("request_id", default=None)


def remembered(handle):
    @functools.wraps(handle)
    async def with_request_id(method, path, headers, query, id):
        request_id.set(id)
        return await handle(method, path, headers, query, id)

    return with_request_id


def named(dispatch):
    @functools.wraps(dispatch)
    def by_request(function, config, event, id, started):
        return with_class(dispatch(function, config, event, request_id.get() or id, started))

    return by_request


# MiniStack reports each error's type as `Runtime.HandlerError`, but on AWS it is the error's class.
RAISED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?:[\w.<>]+\.)?(\w+)", re.MULTILINE)


def with_class(result):
    body = result.get("body") if isinstance(result, dict) and result.get("error") else None
    if isinstance(body, dict) and body.get("errorType") == "Runtime.HandlerError":
        # The last exception in a chain is the uncaught one.
        for raised in RAISED.finditer(result.get("log") or ""):
            body["errorType"] = raised[1]
    return result


def recorded(route):
    @functools.wraps(route)
    def with_request_id(target_arn, *arguments):
        queue = sqs._queue_by_arn(target_arn) or {"messages": []}
        before = len(queue["messages"])
        route(target_arn, *arguments)
        for message in queue["messages"][before:]:
            record = json.loads(message["body"])
            record["requestContext"]["requestId"] = request_id.get()
            message["body"] = json.dumps(record)
            message["md5_body"] = hashlib.md5(message["body"].encode()).hexdigest()

    return with_request_id


app._handle_pre_body_request = remembered(app._handle_pre_body_request)
lambda_svc._execute_function_dispatch = named(lambda_svc._execute_function_dispatch)
lambda_svc._route_async_failure = locked(recorded(lambda_svc._route_async_failure))
for action, function in sqs._HANDLERS.items():
    sqs._HANDLERS[action] = locked(function)
# ReceiveMessage is a coroutine that waits between these steps, so each step takes the lock separately.
for step in ("_expire_retained", "_dlq_sweep", "_collect_msgs"):
    setattr(sqs, step, locked(getattr(sqs, step)))

# Reads a function's whole output for its log, as AWS does. Without this change, MiniStack waits only a few
# milliseconds for output.
class Output:
    def __init__(self, stream, lines):
        self.descriptor, self.lines, self.rest, self.lock = stream.fileno(), lines, b"", threading.Lock()

    def read(self):
        """Reads the available output. Returns false at its end."""
        with self.lock:
            while self.is_there(0):
                read = os.read(self.descriptor, 65536)
                *whole, self.rest = (self.rest + read).split(b"\n")
                for line in whole if read else [self.rest]:
                    self.lines.put(line.decode(errors="replace").rstrip("\r"))
                if not read:
                    self.descriptor = None
            return self.descriptor is not None

    def is_there(self, milliseconds):
        if self.descriptor is None:
            return False
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(milliseconds))


# MiniStack gets this function just before it starts the thread that runs it. The first invocation may end before that
# thread gets the processor, so the output is there before the thread.
def reader(worker, stream):
    worker.output = output = Output(stream, worker._stderr_queue)

    def read_on(*_):
        while output.read():
            output.is_there(None)
        stream.close()

    return read_on


def whole_log(worker, **_):
    worker.output.read()
    return worker._drain_stderr()


lambda_runtime._PROVIDED_LOG_MAX_LINES = 0
lambda_runtime.ProvidedWorker._pump_output = property(lambda worker: reader(worker, worker._proc.stdout))
lambda_runtime.Worker._read_stderr = property(lambda worker: reader(worker, worker._proc.stderr))
lambda_runtime.Worker._drain_stderr_bounded = whole_log

# When a function is updated, MiniStack kills its environments. With this change, running invocations end first.
def when_it_answered(kill):
    def kill_one(worker):
        with worker._lock:
            kill([worker])

    @functools.wraps(kill)
    def kill_each(workers):
        busy = [worker for worker in workers if worker.in_use]
        kill([worker for worker in workers if worker not in busy])
        for worker in busy:
            threading.Thread(target=kill_one, args=[worker], daemon=True).start()

    return kill_each


lambda_runtime.kill_workers = when_it_answered(lambda_runtime.kill_workers)

# In MiniStack, a `MaximumConcurrency` from a template parameter is a string, which stops the mapping's poller.
def whole_number(limit):
    @functools.wraps(limit)
    def with_whole_number(mapping, *arguments):
        scaling = mapping.get("ScalingConfig") or {}
        if isinstance(scaling.get("MaximumConcurrency"), str):
            scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
        return limit(mapping, *arguments)

    return with_whole_number


lambda_svc._sqs_esm_concurrency = whole_number(lambda_svc._sqs_esm_concurrency)
lambda_svc._esm_response = whole_number(lambda_svc._esm_response)

# For batch calls, MiniStack requires permissions such as `sqs:SendMessageBatch`. In IAM, `sqs:SendMessage` also
# allows the batch call.
def of_one_message(action_of):
    @functools.wraps(action_of)
    def without_batch(*arguments):
        action = action_of(*arguments)
        return action.removesuffix("Batch") if action and action.startswith("sqs:") else action

    return without_batch


iam_actions.extract_iam_action = of_one_message(iam_actions.extract_iam_action)

# MiniStack derives the wrong IAM actions for some of Lambda's operations. Except for `Invoke`, an action has the name
# of its operation in botocore.
iam_actions._BOTOCORE_SERVICE_MAP["lambda"] = ["lambda"]


def as_botocore_knows_it(action_of):
    @functools.wraps(action_of)
    def exact(method, path):
        operation = iam_actions._match_rest_action("lambda", method, path)
        return "InvokeFunction" if operation == "Invoke" else operation or action_of(method, path)

    return exact


iam_actions._lambda_action = as_botocore_knows_it(iam_actions._lambda_action)

# Makes MiniStack check the permission to simulate policies for the simulated role. On AWS, the permission can be
# limited to a role; MiniStack's own check ignores the role.
def of_the_role(arn_of):
    @functools.wraps(arn_of)
    def of_simulated(service, method, path, headers, body, query, *arguments):
        role = iam_actions._query_param(query, "PolicySourceArn") if service == "iam" else ""
        return role or arn_of(service, method, path, headers, body, query, *arguments)

    return of_simulated


iam_actions.extract_resource_arn = of_the_role(iam_actions.extract_resource_arn)

# The context entries of the current policy simulation, which MiniStack itself ignores.
simulated = contextvars.ContextVar("simulated", default={})


def in_context(simulate):
    @functools.wraps(simulate)
    def with_entries(parameters):
        entry, entries, number = "ContextEntries.member.{}.ContextKey", {}, 1
        while name := iam._p(parameters, entry.format(number) + "Name"):
            entries[name.lower()] = iam._p(parameters, entry.format(number) + "Values.member.1")
            number += 1
        token = simulated.set(entries)
        try:
            return simulate(parameters)
        finally:
            simulated.reset(token)

    return with_entries


def of_simulation(evaluate):
    @functools.wraps(evaluate)
    def with_entries(context, *policies):
        context.service_context.update(simulated.get())
        return evaluate(context, *policies)

    return with_entries


iam_evaluator.evaluate = of_simulation(iam_evaluator.evaluate)
iam._IAM_HANDLERS["SimulatePrincipalPolicy"] = in_context(iam._IAM_HANDLERS["SimulatePrincipalPolicy"])

# Lambda refuses a destination queue that the function's role cannot send to, but MiniStack accepts any queue.
def if_it_may_send(put):
    @functools.wraps(put)
    def checked(name, qualifier, data):
        function = lambda_svc._functions.get(name)
        queue = ((data.get("DestinationConfig") or {}).get("OnFailure") or {}).get("Destination") or ""
        if function is not None and ":sqs:" in queue:
            role, account = function["config"]["Role"], queue.split(":")[4]
            policies = iam_evaluator._gather_role_policies(role.rsplit("/", 1)[-1], account)
            if "allowed" not in iam._build_simulate_results_real(["sqs:SendMessage"], queue, role, account, policies):
                problem = f"The function's execution role does not have permissions to call SendMessage on {queue}"
                return lambda_svc.error_response_json("InvalidParameterValueException", problem, 400)
        return put(name, qualifier, data)

    return checked


lambda_svc._put_event_invoke_config = if_it_may_send(lambda_svc._put_event_invoke_config)

# MiniStack ignores the dimensions of an alarm's metric, so one test's data would raise another test's alarms.
cloudwatch._evaluate_alarm = lambda alarm: None

# MiniStack refuses metric math alarms and saved queries. With this change, it stores the alarms, and accepts the
# queries without storing them.
def of_an_expression(record):
    @functools.wraps(record)
    def with_metrics(name, properties):
        metrics = properties.get("Metrics")
        if not metrics:
            return record(name, properties)
        alarm = record(name, {**properties, "Metrics": None, "MetricName": "none", "Namespace": "none"})
        single = ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Dimensions", "Unit")
        return {**{key: value for key, value in alarm.items() if key not in single}, "Metrics": metrics}

    return with_metrics


provisioners._cw_metric_alarm_record = of_an_expression(provisioners._cw_metric_alarm_record)
provisioners._RESOURCE_HANDLERS["AWS::Logs::QueryDefinition"] = {
    "create": lambda logical_id, *_: (logical_id, {"QueryDefinitionId": logical_id}),
    "update": lambda physical_id, *_: (physical_id, {"QueryDefinitionId": physical_id}),
    "delete": lambda *_: None,
}

# By default, MiniStack also listens on port 443 if it is free. If two servers started at the same time, one of them
# would hang.
app._port_is_bindable = lambda host, port: False

# By default, MiniStack's web server closes an HTTP/2 connection after a thousand requests, even if some of them are
# still in progress.
from hypercorn.config import Config  # noqa: E402

Config.keep_alive_max_requests = 10**9

if "RECORDED" in os.environ:
    app.app = recording(app.app, os.environ["RECORDED"])
app.main()
