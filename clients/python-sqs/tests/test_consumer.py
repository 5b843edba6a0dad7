"""Tests of what the shared cases leave out."""

from __future__ import annotations

import base64
import contextlib
import contextvars
import functools
import inspect
import io
import itertools
import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import comeback_sqs
from comeback_sqs import NonRetryable, RetryAfter, consumer

# The retry handler's settings; the consumer has the same defaults and limits.
SETTINGS = json.loads((Path(__file__).parents[3] / "infra/src/settings.json").read_text())
NOW = 1_795_694_400.0
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
DEAD = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dead"
CONTEXT = SimpleNamespace(
    get_remaining_time_in_millis=lambda: 60_000,
    invoked_function_arn="arn:aws:lambda:eu-west-1:123456789012:function:orders",
)


def record(number: int = 0, **more: Any) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": "1",
        "SentTimestamp": str(int(NOW * 1_000)),
        "ApproximateFirstReceiveTimestamp": str(int(NOW * 1_000)),
    }
    base = {"messageId": f"m-{number}", "receiptHandle": f"h-{number}", "body": "{}", "eventSourceARN": QUEUE}
    return {**base, "attributes": attributes, **more}


class Sqs:
    meta = Mock()

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.hidden: list[int] = []

    def send_message(self, **call: Any) -> dict[str, Any]:
        self.sent.append(call)
        return {"MessageId": "1"}

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.hidden += [entry["VisibilityTimeout"] for entry in Entries]
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Sqs:
    fake = Sqs()
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: fake)
    monkeypatch.setattr("time.time", lambda: NOW)
    return fake


def test_every_bad_option_is_named() -> None:
    with pytest.raises(ValueError) as refused:
        consumer(
            base_backoff=0,
            max_backoff="13h",
            jitter="some",
            max_age="1m30",
            max_receives=0,
            dead_letter_queue_url="arn:aws:sqs:eu-west-1:1:dead",
            concurrency=1.5,  # type: ignore[arg-type]
        )
    assert str(refused.value).split("; ") == [
        "max_backoff is '13h'",
        "it must be 1 s to 43170 s, as a number or text such as '15m'",
        "base_backoff is 0",
        "it must be 1 s to 43170 s, as a number or text such as '15m'",
        "max_age is '1m30'",
        "it must be 60 s to 1209600 s, as a number or text such as '15m'",
        "jitter is 'some'",
        "it must be 'full', 'equal' or 'none'",
        "max_receives is 0",
        "it must be a whole number from 1 to 1000",
        "concurrency is 1.5",
        "it must be a whole number from 1 to 1000",
        "dead_letter_queue_url is 'arn:aws:sqs:eu-west-1:1:dead'",
        "it must be the URL of an SQS queue",
    ]


def test_no_call_outlasts_the_function(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = threading.Event()

    def never(**call: Any) -> None:
        answers.wait()

    hanging = SimpleNamespace(send_message=never, change_message_visibility_batch=never)
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: hanging)
    left = iter([60_000, 1_010, 1_010])  # a fifth of the reserve of 5 s is kept free
    context = SimpleNamespace(**{**vars(CONTEXT), "get_remaining_time_in_millis": lambda: next(left)})

    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise NonRetryable("no")

    assert handler({"Records": [record()]}, context) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    answers.set()
    assert [json.loads(line)["problem"] for line in capsys.readouterr().out.splitlines()] == [
        f"sqs:SendMessage on {DEAD}: TimeoutError",
        f"sqs:ChangeMessageVisibility on {QUEUE}: TimeoutError",
    ]


@pytest.mark.parametrize(
    "option, others, setting, most",
    [
        ("base_backoff", {}, "BASE_BACKOFF", SETTINGS["MAX_BACKOFF"]["default"]),
        ("base_backoff", {"max_backoff": SETTINGS["MAX_BACKOFF"]["max"]}, "BASE_BACKOFF", SETTINGS["BASE_BACKOFF"]["max"]),
        ("max_backoff", {"base_backoff": 1}, "MAX_BACKOFF", SETTINGS["MAX_BACKOFF"]["max"]),
        ("max_age", {}, "MAX_AGE", SETTINGS["MAX_AGE"]["max"]),
    ],
)
def test_the_range_is_the_handlers(option: str, others: Any, setting: str, most: int) -> None:
    least = SETTINGS[setting]["min"]
    for value in (least, most):
        consumer(**others | {option: value})
    for value in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"^{option} is {value}; it must be {least} s to {most} s"):
            consumer(**others | {option: value})


def test_the_default_backoff_and_the_jitters_are_the_handlers() -> None:
    parameters = inspect.signature(consumer).parameters
    assert parameters["base_backoff"].default == SETTINGS["BASE_BACKOFF"]["default"]
    assert comeback_sqs._MAX_BACKOFF == SETTINGS["MAX_BACKOFF"]["default"]
    assert parameters["jitter"].default == SETTINGS["JITTER"]["default"]
    for jitter in SETTINGS["JITTER"]["choices"]:
        if jitter == "decorrelated":  # needs the previous delay, which no message carries
            continue
        consumer(jitter=jitter)


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), 1.5, 10**400, None, "", "-5", "1M", "²", [10]])
def test_invalid_durations_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="base_backoff is"):
        consumer(base_backoff=value)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_function_that_never_runs_is_refused(sqs: Sqs) -> None:
    async def coroutine(record: Any, context: Any) -> None: ...

    async def steps(record: Any, context: Any) -> Any:
        yield

    def generator(record: Any, context: Any) -> Any:
        yield

    for function in (coroutine, steps, generator):
        with pytest.raises(TypeError, match="neither async nor a generator"):
            consumer()(function)
        hidden = consumer()(functools.partial(function))
        assert hidden({"Records": [record()]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert len(sqs.hidden) == 3


@pytest.mark.parametrize(("jitter", "least", "mean"), [("full", 1, 320.5), ("equal", 320, 480.0)])
def test_draws_stay_in_bounds_and_spread(jitter: str, least: int, mean: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comeback_sqs, "_RANDOM", random.Random(7))
    policy = comeback_sqs._Policy.of(
        base_backoff=10,
        max_backoff=None,
        jitter=jitter,
        max_age="14d",
        max_receives=None,
        dead_letter_queue_url=None,
        concurrency=1,
    )
    draws = [policy.draw(7, False) for _ in range(20_000)]
    assert (min(draws), max(draws)) == (least, 640)
    assert set(draws) == set(range(least, 641)), "every whole second is drawn"
    assert abs(sum(draws) / len(draws) - mean) < 5
    for receives in (1, 2, 30, 1_000, 10**9):
        ceiling = min(3_600, 10 * 2 ** min(receives - 1, 64))
        assert all(1 <= policy.draw(receives, False) <= ceiling for _ in range(200))


def test_seeding_random_does_not_affect_draws(sqs: Sqs) -> None:
    @consumer(base_backoff=3_600)
    def handler(record: Any, context: Any) -> None:
        random.seed(7)
        raise ValueError

    handler({"Records": [record(number) for number in range(10)]}, CONTEXT)
    assert len(set(sqs.hidden)) > 1


def test_dead_letter_has_all_fields(sqs: Sqs) -> None:
    own = {f"a{number}": {"stringValue": "x", "dataType": "String"} for number in range(5)}
    own["Reason"] = {"stringValue": "theirs", "dataType": "String"}
    own["zeta"] = {"stringValue": "the eleventh by name", "dataType": "String"}
    own["raw"] = {"binaryValue": base64.b64encode(b"\x00\xff").decode(), "dataType": "Binary"}

    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise NonRetryable("cancelled \ud800\x00\uffff")

    handler({"Records": [record(body='{"n": 1E400}', messageAttributes=own)]}, CONTEXT)
    (call,) = sqs.sent
    assert call["QueueUrl"] == DEAD
    assert "\uffff" not in call["MessageBody"] and call["MessageBody"].encode(), "SQS refuses it"
    assert json.loads(call["MessageBody"]) == {
        "reason": "non_retryable_error",
        "detail": "NonRetryable forbids retries",
        "function_arn": CONTEXT.invoked_function_arn,
        "retries_made": 0,
        "initial_timestamp": int(NOW),
        "dead_lettered_at": int(NOW),
        "origin_request_id": "m-0",
        "error": {"type": "NonRetryable", "message": "cancelled \ud800\x00\uffff"},
        "payload": '{"n": 1E400}',
    }
    attributes = call["MessageAttributes"]
    assert list(attributes) == ["Reason", "TargetFunction", "RetriesMade", "ErrorType", *(f"a{n}" for n in range(5)), "raw"]
    assert attributes["Reason"]["StringValue"] == "non_retryable_error"
    assert attributes["raw"] == {"DataType": "Binary", "BinaryValue": b"\x00\xff"}


def test_too_large_dead_letter_is_body_with_reason(sqs: Sqs) -> None:
    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise NonRetryable("cancelled")

    for size, attributes in ((1_048_500, ["Reason"]), (1_048_576, [])):
        handler({"Records": [record(body="x" * size)]}, CONTEXT)
        call = sqs.sent.pop()
        assert (call["MessageBody"], list(call.get("MessageAttributes", {}))) == ("x" * size, attributes)
    handler({"Records": [record(body="ж" * 500_000)]}, CONTEXT)
    assert json.loads(sqs.sent.pop()["MessageBody"])["payload"] == "ж" * 500_000, "a million bytes"


def test_impossible_dead_letter_keeps_its_message(sqs: Sqs) -> None:
    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise NonRetryable

    odd = record(messageAttributes={"odd": {"binaryValue": "%A", "dataType": "Binary"}})
    assert handler({"Records": [odd, record(1)]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert (len(sqs.sent), len(sqs.hidden)) == (1, 1)


def test_an_error_without_a_name_is_dead_lettered(sqs: Sqs) -> None:
    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise type("", (NonRetryable,), {})

    handler({"Records": [record()]}, CONTEXT)
    assert list(sqs.sent[0]["MessageAttributes"]) == ["Reason", "TargetFunction", "RetriesMade"], "SQS refuses empty ones"


def test_any_error_fails_only_its_record(sqs: Sqs) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise SystemExit

    untraceable = SyntaxError("no", ("file", 1, 2, 3))  # type: ignore[arg-type]  # the text is not a string
    errors: list[BaseException] = [SystemExit(1), Unprintable(), KeyboardInterrupt(), untraceable]

    @consumer(jitter="none")
    def handler(record: Any, context: Any) -> None:
        raise errors.pop()

    response = handler({"Records": [record(number) for number in range(4)]}, CONTEXT)
    assert (len(response["batchItemFailures"]), sqs.hidden) == (4, [10] * 4)


def test_too_deep_body_is_passed_unchanged(sqs: Sqs) -> None:
    body = '{"reason":' + "[" * 100_000
    seen = []

    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        seen.append(record["body"])
        raise NonRetryable

    assert handler({"Records": [record(body=body)]}, CONTEXT) == {"batchItemFailures": []}
    [call] = sqs.sent
    assert (seen, json.loads(call["MessageBody"])["payload"]) == ([body], body)


def test_only_groups_run_in_order(sqs: Sqs) -> None:
    meeting = threading.Barrier(2, timeout=10)
    ran: list[str] = []

    @consumer(concurrency=2)
    def handler(record: Any, context: Any) -> None:
        meeting.wait()  # waits until both records run
        ran.append(record["messageId"])

    handler({"Records": [record(0), record(1)]}, CONTEXT)
    assert sorted(ran) == ["m-0", "m-1"]
    running: set[str] = set()

    @consumer(concurrency=8)
    def fifo(record: Any, context: Any) -> None:
        group = record["attributes"]["MessageGroupId"]
        assert group not in running
        running.add(group)
        ran.append(record["messageId"])
        running.discard(group)

    records = [record(number, eventSourceARN=QUEUE + ".fifo") for number in range(40)]
    for number, it in enumerate(records):
        it["attributes"] = {**it["attributes"], "MessageGroupId": str(number % 2)}
    ran.clear()
    assert fifo({"Records": records}, CONTEXT) == {"batchItemFailures": []}
    assert [id for id in ran if int(id[2:]) % 2 == 0] == [f"m-{number}" for number in range(0, 40, 2)]


def test_the_line_of_a_failure(sqs: Sqs, capsys: pytest.CaptureFixture[str]) -> None:
    @consumer(jitter="none")
    def handler(record: Any, context: Any) -> None:
        raise RetryAfter("soon", "the quota is used up")

    handler({"Records": [record(body="secret")]}, CONTEXT)
    printed = capsys.readouterr().out
    line = json.loads(printed)
    assert "Traceback" in line.pop("stack_trace") and "secret" not in printed
    assert line == {
        "timestamp": "2026-11-26T12:00:00.000Z",
        "level": "WARN",
        "v": 1,
        "action": "defer",
        "due": "2026-11-26T12:00:10.000Z",
        "due_by": "policy",
        "message_id": "m-0",
        "target": CONTEXT.invoked_function_arn,
        "retry": 1,
        "error_type": "RetryAfter",
        "error_message": "soon; the quota is used up",
        "retry_after_ignored": '"soon": it does not begin with a duration or a date',
    }


@pytest.mark.parametrize(
    ("code", "needed"),
    [
        ("AccessDenied", "sqs:ChangeMessageVisibility"),
        ("KmsAccessDenied", "kms:GenerateDataKey and kms:Decrypt"),
        ("KMS.AccessDeniedException", "kms:GenerateDataKey and kms:Decrypt"),
    ],
)
def test_a_missing_permission_is_named(
    code: str, needed: str, sqs: Sqs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Denied(Exception):
        response = {"Error": {"Code": code}}

    def deny(**call: Any) -> None:
        raise Denied

    monkeypatch.setattr(sqs, "change_message_visibility_batch", deny)

    @consumer()
    def handler(record: Any, context: Any) -> None:
        raise ValueError

    assert handler({"Records": [record()]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (line["level"], line["remedy"]) == ("ERROR", f"allow {needed} in the function's role")


def test_answer_about_another_message_is_ignored(sqs: Sqs, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"Failed": [{"Id": "10", "Code": "InternalError"}]}
    monkeypatch.setattr(sqs, "change_message_visibility_batch", lambda **call: answer)

    @consumer()
    def handler(record: Any, context: Any) -> None:
        raise ValueError

    assert handler({"Records": [record()]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}


def test_a_line_is_written_at_once(sqs: Sqs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of two threads may mix between writes."""
    written: list[str] = []
    monkeypatch.setattr("sys.stdout", SimpleNamespace(write=written.append, flush=lambda: None))
    comeback_sqs._log("INFO", action="defer")
    assert [text[-2:] for text in written if text] == ["}\n"]


def test_failing_threads_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 can create only one client at a time."""
    fake, made = Sqs(), []
    another = threading.Barrier(2)

    def client(*_: Any, **__: Any) -> Sqs:
        made.append(threading.get_ident())
        with contextlib.suppress(threading.BrokenBarrierError):
            another.wait(0.2)
        return fake

    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=client))
    monkeypatch.setitem(sys.modules, "botocore.config", SimpleNamespace(Config=dict))
    together = threading.Barrier(4)

    @consumer(concurrency=4, dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        together.wait()
        raise NonRetryable("no")

    comeback_sqs._sqs.cache_clear()
    assert handler({"Records": [record(number) for number in range(4)]}, CONTEXT) == {"batchItemFailures": []}
    comeback_sqs._sqs.cache_clear()
    assert (len(made), len(fake.sent)) == (1, 4)


def test_timed_out_call_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    comeback_sqs._sqs.cache_clear()
    client = comeback_sqs._sqs(QUEUE)
    comeback_sqs._sqs.cache_clear()
    monkeypatch.setattr(comeback_sqs._CALL, "until", time.time() - 1, raising=False)
    with pytest.raises(TimeoutError):
        client.send_message(QueueUrl=DEAD, MessageBody="late")


def test_no_sdk_is_loaded_without_a_failure() -> None:
    script = (
        "import sys, types, comeback_sqs\n"
        "handler = comeback_sqs.consumer()(lambda record, context: None)\n"
        "context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 1000, invoked_function_arn='f')\n"
        "print(handler({'Records': [{'messageId': 'm', 'attributes': {}}]}, context), 'boto3' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "{'batchItemFailures': []} False\n"


EVENTS = json.loads((Path(__file__).parents[3] / "tests/golden/consumer-events.json").read_text())


@pytest.mark.parametrize("case", EVENTS, ids=lambda case: json.dumps(case["event"])[:40])
def test_event_from_another_source_is_an_error(case: dict[str, Any]) -> None:
    handler = consumer()(lambda record, context: None)
    if "problem" not in case:
        assert handler(case["event"], CONTEXT) == {"batchItemFailures": []}
        return
    with pytest.raises(ValueError) as said:
        handler(case["event"], CONTEXT)
    more = "; comeback-sqs is for functions behind an SQS event source mapping"
    assert str(said.value) == f"not an SQS event: {case['problem']}{more}"


class Broken(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError


@pytest.mark.parametrize(
    "thrown",
    [
        type("ReadTimeoutError", (Exception,), {"response": None})(),
        type("ConnectionClosedError", (Exception,), {})(),
        type("Odd", (Exception,), {"response": {"Error": None}})(),
        type("Text", (Exception,), {"response": "bad gateway"})(),
        Broken(),
    ],
)
def test_failed_call_leaves_records_deleted_or_reported(
    thrown: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**call: Any) -> None:
        raise thrown

    stub = SimpleNamespace(send_message=fails, change_message_visibility_batch=fails)
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: stub)
    ran = []

    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        ran.append(record["messageId"])
        if record["messageId"] == "m-1":
            raise ValueError
        if record["messageId"] == "m-2":
            raise NonRetryable

    failed = handler({"Records": [record(number) for number in range(4)]}, CONTEXT)["batchItemFailures"]
    assert ran == ["m-0", "m-1", "m-2", "m-3"]
    assert failed == [{"itemIdentifier": "m-1"}, {"itemIdentifier": "m-2"}]
    problems = [json.loads(line).get("problem", "") for line in capsys.readouterr().out.splitlines()]
    assert sum(type(thrown).__name__ in problem for problem in problems) == 3


def test_unreportable_failure_keeps_its_record(sqs: Sqs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comeback_sqs, "_asked", lambda error, now: 1 / 0)

    @consumer()
    def handler(record: Any, context: Any) -> None:
        if record["messageId"] == "m-0":
            raise ValueError

    answer = handler({"Records": [record(0), record(1)]}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}


def test_truncated_answer_settles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = SimpleNamespace(send_message=lambda **_: {}, change_message_visibility_batch=lambda **_: {})
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: empty)

    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise NonRetryable

    assert handler({"Records": [record()]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}


@pytest.mark.parametrize(
    "result",
    [
        Future(),
        map(str, [1]),
        iter([]),
        itertools.chain(),
        functools.partial(print),
        lambda: None,
        (it for it in "a"),
        [Future(), Future()],
        ({}, map(str, [1])),
    ],
)
def test_unrun_result_is_a_failure(result: Any, sqs: Sqs) -> None:
    handler = consumer()(lambda record, context: result)
    assert handler({"Records": [record()]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}


@pytest.mark.parametrize("result", [None, [], ["a"], {}, range(3), io.StringIO(), sqlite3.connect(":memory:").execute("")])
def test_finished_result_is_a_success(result: Any) -> None:
    assert consumer()(lambda record, context: result)({"Records": [record()]}, CONTEXT) == {"batchItemFailures": []}


@pytest.mark.parametrize("context", [None, {}])
def test_a_unit_test_needs_no_context(context: Any, sqs: Sqs) -> None:
    handler = consumer()(lambda record, context: 1 / 0)
    assert handler({"Records": [record()]}, context) == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert len(sqs.hidden) == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.us-east-1.amazonaws.com/1/dead",
        "https://sqs-fips.us-gov-west-1.amazonaws.com/1/dead",
        "https://us-east-2.queue.amazonaws.com/1/dead",
    ],
)
def test_dead_letter_queue_in_another_region_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    consumer(dead_letter_queue_url=DEAD)
    consumer(dead_letter_queue_url="http://127.0.0.1:4566/1/dead")
    with pytest.raises(ValueError, match="must be in the function's region"):
        consumer(dead_letter_queue_url=url)


def test_threads_see_the_context_variables(sqs: Sqs) -> None:
    request = contextvars.ContextVar("request", default="none")
    seen = []

    @consumer(concurrency=3)
    def handler(record: Any, context: Any) -> None:
        seen.append(request.get())

    request.set("r-1")
    handler({"Records": [record(number) for number in range(5)]}, CONTEXT)
    assert seen == ["r-1"] * 5


def test_sdk_sees_the_context_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    request = contextvars.ContextVar("request", default="none")
    seen = []
    deleted = threading.Event()

    def hide(**call: Any) -> dict[str, Any]:
        seen.append(request.get())
        return {}

    def delete(**call: Any) -> dict[str, Any]:
        seen.append(request.get())
        deleted.set()
        return {}

    stub = SimpleNamespace(change_message_visibility_batch=hide, delete_message_batch=delete)
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: stub)
    left = iter([1_000])  # 1 s is left at the start; every later query returns 60 s
    context = SimpleNamespace(get_remaining_time_in_millis=lambda: next(left, 60_000))

    @consumer()
    def handler(record: Any, context: Any) -> None:
        if record["messageId"] == "m-1":
            assert deleted.wait(60)
            raise ValueError

    request.set("r-1")
    handler({"Records": [record(0), record(1)]}, context)
    assert seen == ["r-1", "r-1"]


def test_dead_letter_drops_the_error_text_first(sqs: Sqs) -> None:
    @consumer(dead_letter_queue_url=DEAD)
    def handler(record: Any, context: Any) -> None:
        raise NonRetryable("y" * 2_000_000)

    large = record(body="x" * 1_045_000)
    large["attributes"] |= {"MessageGroupId": "customer-7", "AWSTraceHeader": "Root=1"}
    handler({"Records": [large]}, CONTEXT)
    [sent] = sqs.sent
    assert len(sent["MessageAttributes"]) == 4
    assert json.loads(sent["MessageBody"])["error"]["message"] == ""
    assert sent["MessageGroupId"] == "customer-7"
    assert sent["MessageSystemAttributes"]["AWSTraceHeader"]["StringValue"] == "Root=1"


@pytest.mark.parametrize("concurrency", [1, 4])
def test_hanging_record_does_not_affect_others(concurrency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted = threading.Event()
    calls: list[tuple[str, list[str]]] = []

    class Stub(Sqs):
        def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
            calls.append(("hide", [entry["ReceiptHandle"] for entry in Entries]))
            return super().change_message_visibility_batch(QueueUrl, Entries)

        def delete_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
            calls.append(("delete", [entry["ReceiptHandle"] for entry in Entries]))
            deleted.set()
            return {"Successful": Entries}

    stub = Stub()
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: stub)
    left = iter([1_000])  # 1 s is left at the start; every later query returns 60 s
    context = SimpleNamespace(**{**vars(CONTEXT), "get_remaining_time_in_millis": lambda: next(left, 60_000)})

    @consumer(concurrency=concurrency)
    def handler(record: Any, context: Any) -> None:
        if record["messageId"] == "m-1":
            raise ValueError
        if record["messageId"] == "m-2":
            assert deleted.wait(60)

    answer = handler({"Records": [record(number) for number in range(3)]}, context)
    assert calls == [("hide", ["h-1"]), ("delete", ["h-0"])]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


URLS = json.loads((Path(__file__).parents[3] / "tests/golden/queue-urls.json").read_text())


@pytest.mark.parametrize("arn", URLS)
def test_queue_url_is_that_of_all_consumers(arn: str) -> None:
    assert comeback_sqs._queue_url(arn) == URLS[arn]


@pytest.mark.parametrize("long", ["cause", "error"])
def test_long_text_hides_no_cause(
    long: str, sqs: Sqs, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {long: "y" * 2_000_000}

    @consumer()
    def handler(record: Any, context: Any) -> None:
        try:
            raise KeyError(f"column zip is missing {more.get('cause')}")
        except KeyError as cause:
            raise ValueError(f"could not ship {more.get('error')}") from cause

    handler({"Records": [record()]}, CONTEXT)
    stack = json.loads(capsys.readouterr().out.splitlines()[0])["stack_trace"]
    assert len(stack) == 8_192
    assert "column zip is missing" in stack and "could not ship" in stack
