"""Backoff, jitter and dead-letters for the individual messages that a Lambda function reads from an SQS queue.

Needs only Python and, if a message fails, boto3.
"""

from __future__ import annotations

import base64
import contextvars
import functools
import json
import math
import os
import random
import re
import threading
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

__all__ = ["NonRetryable", "RetryAfter", "consumer"]

_Record = dict[str, Any]
_Handler = Callable[[_Record, Any], Any]
_Response = dict[str, list[dict[str, str]]]

# Durations are in seconds. SQS cannot hide a message for longer than 12 hours after it is received.
_LONGEST_BACKOFF = 43_170
# The longest time to hide a message after its second or any later receive. SQS reports only the time of the first
# receive. A throttled poller may have held the message for 1,230 s of SQS's 12 hours.
_LONGEST_LATER_HIDING = 41_940
_LONGEST_AGE = 1_209_600
# While a message is hidden, a FIFO queue does not deliver other messages from the same group.
_FIFO_MAX_BACKOFF = 60
_MAX_BACKOFF = 3_600
# SQS limits a batch of messages, and each message, to 1 MiB.
_MOST_BYTES = 1_048_576
_MOST_ATTRIBUTES = 10
_MOST_ENTRIES = 10
_ATTRIBUTE_CHARACTERS = 256
_ERROR_CHARACTERS = 8_192
_LONGEST_TIMEOUT = 900.0  # Lambda's maximum
# Types of return values that are not results yet, because they still have to be called or awaited.
_UNRUN = (Awaitable, types.FunctionType, types.MethodType, functools.partial)
_MORE_TIME = "raise the function's timeout, or lower the batch size"
_NOT_PLAIN = 0x20 | 0x80 | 0x200  # inspect.CO_GENERATOR, CO_COROUTINE and CO_ASYNC_GENERATOR
_NEVER_RUN = "the function of a consumer must be neither async nor a generator: nothing would run it"
_NOT_SQS = "; comeback-sqs is for functions behind an SQS event source mapping"
# Domains of the AWS partitions that do not use amazonaws.com, from AWS's endpoint rules.
_SUFFIXES = {
    "aws-cn": "amazonaws.com.cn",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
}
_WAIT_CHARACTERS = 64
_DECIMAL = r"[0-9]+(?:[.,][0-9]+)?"
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_ISO_DAYS = {"W": 604_800.0, "D": 86_400.0}
_ISO_TIME = {"H": 3_600.0, "M": 60.0, "S": 1.0}
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_NUMERIC_ZONE = r"[+-]\d\d(?::?\d\d)?"
_DATES = (
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[Tt ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
    rf"(?:[.,](?P<fraction>\d+))?(?P<zone>[Zz]|{_NUMERIC_ZONE})",
    rf"(?P<weekday>[A-Z][a-z]{{2}}), (?P<day>\d\d) (?P<month>[A-Z][a-z]{{2}}) (?P<year>\d{{4}}) {_TIME}"
    rf" (?P<zone>GMT|UTC|{_NUMERIC_ZONE})",
    rf"(?P<weekday>[A-Z][a-z]+day), (?P<day>\d\d)-(?P<month>[A-Z][a-z]{{2}})-(?P<year>\d{{2}}) {_TIME}"
    rf" (?P<zone>GMT|UTC|{_NUMERIC_ZONE})",
    rf"(?P<weekday>[A-Z][a-z]{{2}}) (?P<month>[A-Z][a-z]{{2}}) (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})"
    rf"(?P<zone> GMT| UTC| {_NUMERIC_ZONE})?",
)


class _Unreadable(Exception):
    """Raised for a string that is not a wait. The text gives the reason."""


_NOT_A_WAIT = _Unreadable("it does not begin with a duration or a date")
_REASONS = ("max_retries", "max_age", "non_retryable_error")
# A requested wait is lengthened by up to a tenth, so that messages do not all become visible at the same time.
_SPREAD = 0.1
# Its numbers do not repeat, even if the function seeds `random` or Lambda restores a SnapStart snapshot.
_RANDOM = random.SystemRandom()


class RetryAfter(Exception):
    """Raise this exception to choose when the message is retried, instead of using the ordinary backoff.

    `when` is a wait counted from the failure (seconds or a `timedelta`), a `datetime` (local time if it has no time
    zone), or the value of a `Retry-After` header. `text` is an explanation for people.
    """

    def __init__(self, when: object, text: str | None = None) -> None:
        super().__init__(_moment(when) if text is None else f"{_moment(when)}; {_words(text)}")
        self._given = (when, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class NonRetryable(Exception):
    """Raise this exception if no retry can help. The message is dead-lettered."""


def consumer(
    *,
    base_backoff: float | str = 10,
    max_backoff: float | str | None = None,
    jitter: str = "full",
    max_age: float | str = "14d",
    max_receives: int | None = None,
    dead_letter_queue_url: str | None = None,
    concurrency: int = 1,
) -> Callable[[_Handler], Callable[[dict[str, Any], Any], _Response]]:
    """Turns a function that handles one record into a Lambda handler for an SQS event source mapping.

    If the function raises for a record, only that record's message is retried. The message is hidden for a jittered
    backoff of at most min(`max_backoff`, `base_backoff` · 2^(receives − 1)), and reported in `batchItemFailures`. The
    mapping needs `ReportBatchItemFailures`. Durations are seconds, or strings such as `"15m"`.

    - `base_backoff`: 1 s to `max_backoff`.
    - `max_backoff`: up to 43,170 s. The default is an hour, or a minute for FIFO queues.
    - `jitter`: `"full"`, `"equal"` or `"none"`.
    - `max_age`: the age, counted from when the message was sent, at which a failing message is dead-lettered; 60 s to
      14 days.
    - `max_receives`: the number of receives after which a failing message is dead-lettered. By default, only the age
      matters.
    - `dead_letter_queue_url`: the URL of the dead-letter queue. Without one, messages that get no retry are hidden for
      `max_backoff` again and again, until the queue's redrive policy moves them or its retention period ends.
    - `concurrency`: the number of records that are processed at the same time, in threads. Records of one FIFO group
      are processed one after another.

    Raises a `ValueError` that lists every problem with the options.
    """
    policy = _Policy.of(
        base_backoff=base_backoff,
        max_backoff=max_backoff,
        jitter=jitter,
        max_age=max_age,
        max_receives=max_receives,
        dead_letter_queue_url=dead_letter_queue_url,
        concurrency=concurrency,
    )

    def decorate(handler: _Handler) -> Callable[[dict[str, Any], Any], _Response]:
        if getattr(getattr(handler, "__code__", None), "co_flags", 0) & _NOT_PLAIN:
            raise TypeError(_NEVER_RUN)

        @functools.wraps(handler)
        def handle(event: dict[str, Any], context: Any) -> _Response:
            _check_event(event)
            return _Batch(policy, handler, event, context).handle()

        return handle

    return decorate


class _Policy(NamedTuple):
    base_backoff: int
    max_backoff: int | None
    jitter: str
    max_age: int
    max_receives: int | None
    dead_letter_queue_url: str | None
    concurrency: int

    @classmethod
    def of(cls, *, base_backoff: Any, max_backoff: Any, jitter: Any, max_age: Any, **rest: Any) -> _Policy:
        problems: list[str] = []

        def seconds(name: str, value: object, least: int, most: int, default: int) -> int:
            read = _option_seconds(value)
            if read is None or not least <= read <= most:
                problems.append(f"{name} is {value!r}; it must be {least} s to {most} s, as a number or text such as '15m'")
                return default
            return read

        highest = None if max_backoff is None else seconds("max_backoff", max_backoff, 1, _LONGEST_BACKOFF, _LONGEST_BACKOFF)
        base = seconds("base_backoff", base_backoff, 1, highest or _MAX_BACKOFF, 1)
        age = seconds("max_age", max_age, 60, _LONGEST_AGE, _LONGEST_AGE)
        if jitter not in ("full", "equal", "none"):
            problems.append(f"jitter is {jitter!r}; it must be 'full', 'equal' or 'none'")
        for name, least, most in (("max_receives", 1, 1_000), ("concurrency", 1, 1_000)):
            value = rest[name]
            if name == "max_receives" and value is None:
                continue
            if type(value) is not int or not least <= value <= most:
                problems.append(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
        url = rest["dead_letter_queue_url"]
        if url is not None and not (isinstance(url, str) and re.fullmatch(r"https?://[^/\s]+/\S+", url)):
            problems.append(f"dead_letter_queue_url is {url!r}; it must be the URL of an SQS queue")
        elif url is not None and (elsewhere := _other_region(url)):
            problems.append(f"dead_letter_queue_url is in {elsewhere}; it must be in the function's region")
        if problems:
            raise ValueError("; ".join(problems))
        return cls(base, highest, jitter, age, **rest)

    def cap(self, fifo: bool) -> int:
        return self.max_backoff or (max(self.base_backoff, _FIFO_MAX_BACKOFF) if fifo else _MAX_BACKOFF)

    def draw(self, receives: int, fifo: bool) -> int:
        """Draws a backoff in whole seconds."""
        # The shift avoids floating point, and its limit avoids huge numbers.
        ceiling = min(self.cap(fifo), self.base_backoff << min(receives - 1, 32))
        least = {"full": 1, "equal": -(-ceiling // 2), "none": ceiling}[self.jitter]
        return least + math.floor(_RANDOM.random() * (ceiling - least + 1))

    def ends(self, message: _Message, error: BaseException) -> _End | None:
        """Returns the reason not to retry a failed message; None if it may be retried. Ignores the message's age."""
        error_type = type(error).__name__
        if isinstance(error, NonRetryable) or _simple_name(error_type) in ("NonRetryable", "NonRetriable", "NeverRetry"):
            return _End("non_retryable_error", f"{error_type} forbids retries")
        if self.max_receives is not None and message.receives >= self.max_receives:
            return _End("max_retries", f"received {message.receives} times; max_receives is {self.max_receives}")
        return None

    def too_old(self, message: _Message) -> _End:
        return _End("max_age", f"sent at {_rfc3339(message.sent)}; max_age is {self.max_age} s")

    def due(self, message: _Message, asked: float | None, now: float, fifo: bool) -> tuple[float | None, str]:
        """Returns the time of the retry for a message that fails now, and the rule that set it. A message that is too
        old gets no retry and the time None."""
        if asked is None:
            due, due_by = now + self.draw(message.receives, fifo), "policy"
        else:
            due, due_by = asked + (asked - now) * _SPREAD * _RANDOM.random(), "retry_after"
        # The last receive is due shortly before the message reaches `max_age`, so that the function has time to run.
        margin = min(60.0, self.max_age / 10)
        last = message.sent + self.max_age - margin
        if due <= last:
            return due, due_by
        return (last if last >= now + margin else None), due_by


class _End(NamedTuple):
    reason: str
    detail: str


class _Message:
    def __init__(self, record: _Record, fifo: bool, now: float) -> None:
        attributes = record.get("attributes") or {}

        def number(name: str, default: float) -> float:
            text = str(attributes.get(name))
            return int(text) if re.fullmatch("[0-9]{1,13}", text) else default

        self.record = record
        self.message_id: str = record["messageId"]
        self.receives = max(1, int(number("ApproximateReceiveCount", 1)))
        self.sent = number("SentTimestamp", now * 1_000) / 1_000
        self.first_receive = number("ApproximateFirstReceiveTimestamp", now * 1_000) / 1_000
        # None on a standard queue, where groups do not order messages.
        self.group: str | None = attributes.get("MessageGroupId") if fifo else None
        # True if the record was processed successfully, or the dead-letter queue accepted the message.
        self.settled = False
        # When the message becomes visible again. 0 means immediately, and None means after the queue's own timeout.
        self.due: float | None = None
        # True if SQS has hidden or deleted the message.
        self.applied = False

    def hiding(self, now: float) -> int:
        """Returns the visibility timeout to set, in seconds."""
        if not self.due:
            return 0
        longest = _LONGEST_LATER_HIDING
        if self.receives == 1:
            longest = max(1, _LONGEST_BACKOFF - math.ceil(max(0.0, now - self.first_receive)))
        return min(longest, max(1, math.ceil(round(self.due - now, 3))))


class _Batch:
    def __init__(self, policy: _Policy, handler: _Handler, event: dict[str, Any], context: Any) -> None:
        self.policy, self.handler, self.context = policy, handler, context
        self.function_arn = str(getattr(context, "invoked_function_arn", None) or "")
        self.records: list[_Record] = event["Records"]
        self.queue_arn = str((self.records[0] if self.records else {}).get("eventSourceARN") or "")
        self.fifo = self.queue_arn.endswith(".fifo")
        # The time just before the timeout is reserved for hiding and dead-lettering failed messages.
        time_left = self.time_left()
        self.reserve = min(5.0, time_left / 10)
        self.until_reserve = time_left - self.reserve
        self.started = False
        self.ended = threading.Event()
        self.settling = threading.Lock()

    def time_left(self) -> float:
        """In seconds. Without a context, as in a unit test, this is Lambda's maximum timeout."""
        remaining = getattr(self.context, "get_remaining_time_in_millis", None)
        return _LONGEST_TIMEOUT if remaining is None else float(remaining()) / 1_000

    def time_for_a_call(self) -> float:
        """Returns how long a call to SQS may take, in seconds; zero means that no call may be started. A fifth of the
        time that is reserved for such calls stays unused: if a call were still running at the function's timeout,
        Lambda would deliver the whole batch again."""
        return max(0.0, self.time_left() - self.reserve / 5)

    def handle(self) -> _Response:
        if not all(isinstance(record.get("messageId"), str) and record["messageId"] for record in self.records):
            _log("ERROR", action="keep", problem="a record has no messageId, so none of the batch was run")
            # An empty identifier makes Lambda keep the whole batch.
            return {"batchItemFailures": [{"itemIdentifier": ""}]}
        messages = [_Message(record, self.fifo, time.time()) for record in self.records]
        if len(messages) > 1:  # with a single record, a timeout cannot affect others
            early = threading.Thread(target=contextvars.copy_context().run, args=(self.settle_early, messages), daemon=True)
            early.start()
        if self.policy.concurrency == 1:
            self.run_in_order(messages)
        else:
            self.run_at_once(messages)
        self.ended.set()
        with self.settling:
            self.hide(messages)
        return {"batchItemFailures": [{"itemIdentifier": it.message_id} for it in messages if not it.settled]}

    def settle_early(self, messages: list[_Message]) -> None:
        """When only the time reserved for calls to SQS is left, hides or deletes the messages with a known outcome, so
        that a timeout affects only the records still being processed. The response waits for those records, because
        otherwise they would continue in the next invocation."""
        if self.ended.wait(self.until_reserve):
            return
        with self.settling:
            if not self.ended.is_set():
                running = sum(not message.settled and message.due is None for message in messages)
                problem = f"records not done when the function's time was nearly up: {running}"
                _log("WARN", action="keep", problem=problem, remedy=_MORE_TIME)
                self.hide(messages)
                self.delete(messages)

    # Processing the records

    def run_in_order(self, messages: list[_Message]) -> None:
        blocked: set[str] = set()
        for message in messages:
            if message.group in blocked:
                message.due = 0  # comes back at once, even if no time is left
            elif self.has_time() and not self.settles(message) and message.group is not None:
                blocked.add(message.group)

    def run_at_once(self, messages: list[_Message]) -> None:
        from concurrent.futures import ThreadPoolExecutor  # rarely needed, and slow to load

        lanes: dict[object, list[_Message]] = {}
        for message in messages:
            lanes.setdefault(message.group or message.message_id, []).append(message)
        with ThreadPoolExecutor(self.policy.concurrency) as pool:
            # Each list of messages is processed with its own copy of the invocation's context variables.
            running = [pool.submit(contextvars.copy_context().run, self.run_in_order, lane) for lane in lanes.values()]
            for lane in running:
                lane.result()

    def has_time(self) -> bool:
        if self.started and self.time_left() <= self.reserve:
            return False
        self.started = True  # the first record always starts
        return True

    def settles(self, message: _Message) -> bool:
        """Runs the function for a message. Returns true if the function succeeded, or the message was dead-lettered."""
        try:
            # The handler gets a copy, because it may replace the body. A dead-letter needs the record as received.
            result = self.handler({**_redriven(message.record)}, self.context)
            _check_result(result)
            message.settled = True
        except BaseException as error:  # including SystemExit, which would end the whole batch
            try:
                self.fail(message, error)
            except BaseException as unreported:  # the message returns after the queue's own timeout
                problem = f"its failure could not be reported: {type(unreported).__name__}"
                _log("ERROR", message_id=message.message_id, action="keep", problem=problem)
        return message.settled

    # Handling a failed record

    def fail(self, message: _Message, error: BaseException) -> None:
        failed_at = time.time()
        error_type = type(error).__name__
        line: dict[str, Any] = {
            "message_id": message.message_id,
            "target": self.function_arn or None,
            "retry": message.receives,
            "error_type": error_type,
            "error_message": _text(error),
            "stack_trace": _stack(error),
        }
        asked, line["retry_after_ignored"] = _asked(error, failed_at)
        end = self.policy.ends(message, error)
        due, due_by = self.policy.due(message, asked, failed_at, self.fifo)
        if end is None and due is None:
            end = self.policy.too_old(message)
        if end is None:
            message.due = due
            level = "INFO" if line["retry_after_ignored"] is None else "WARN"
            _log(level, action="defer", due=_rfc3339(due or 0), due_by=due_by, **line)
            return
        problem, remedy = self.dead_letter(message, error, end, failed_at)
        message.settled = problem is None
        line |= {"action": "dead_letter", **end._asdict()}
        if problem is None:
            _log("WARN", **line)
            return
        backoff = self.policy.draw(message.receives, self.fifo)
        message.due = failed_at + (backoff if self.policy.dead_letter_queue_url else self.policy.cap(self.fifo))
        _log("ERROR", due=_rfc3339(message.due), problem=problem, remedy=remedy, **line)

    def dead_letter(
        self, message: _Message, error: BaseException, end: _End, now: float
    ) -> tuple[str | None, str | None]:
        """Dead-letters a message. If that fails, returns the problem and its remedy."""
        url = self.policy.dead_letter_queue_url
        if url is None:
            return "nothing ends its retries", "set dead_letter_queue_url, or give the queue a redrive policy"
        if url.split("/")[-2:] == self.queue_arn.split(":")[-2:]:
            return "dead_letter_queue_url is the queue itself", "set another queue"
        seconds = self.time_for_a_call()
        if not seconds:
            return "no time was left to send it", _MORE_TIME
        try:
            call = _dead_letter(message, error, end, self.function_arn, now)
            if url.endswith(".fifo"):
                call |= {
                    "MessageGroupId": message.group or message.message_id,
                    "MessageDeduplicationId": message.message_id,
                }
            answer = _call(seconds, self.queue_arn, "send_message", QueueUrl=url, **call)
            if not answer.get("MessageId"):  # boto3 reads a truncated response as an empty one
                return "SQS did not say that it has the dead-letter", None
        except Exception as refused:
            return _problem(refused, "sqs:SendMessage", url)
        return None, None

    # Calls to SQS

    def hide(self, messages: list[_Message]) -> None:
        """Hides each failed message until its retry is due. A message that cannot be hidden becomes visible again after
        the queue's own visibility timeout."""
        failed = [message for message in messages if not message.settled and message.due is not None and not message.applied]
        self.apply("change_message_visibility_batch", "sqs:ChangeMessageVisibility", "hide", failed)

    def delete(self, messages: list[_Message]) -> None:
        """Deletes the messages that succeeded, as the event source mapping does at the end of a batch."""
        done = [message for message in messages if message.settled and not message.applied]
        self.apply("delete_message_batch", "sqs:DeleteMessage", "delete", done)

    def apply(self, call: str, action: str, verb: str, messages: list[_Message]) -> None:
        """Hides or deletes messages, ten per call."""
        url = _queue_url(self.queue_arn)
        for start in range(0, len(messages), _MOST_ENTRIES):
            seconds = self.time_for_a_call()
            if not seconds:
                problem = f"messages that no time was left to {verb}: {len(messages) - start}"
                _log("ERROR", action="keep", problem=problem, remedy=_MORE_TIME)
                return
            part, now = messages[start : start + _MOST_ENTRIES], time.time()
            entries: list[dict[str, Any]] = [
                {"Id": str(index), "ReceiptHandle": it.record.get("receiptHandle")} for index, it in enumerate(part)
            ]
            if verb == "hide":
                for entry, message in zip(entries, part):
                    entry["VisibilityTimeout"] = message.hiding(now)
            remedy = None
            try:
                answer = _call(seconds, self.queue_arn, call, QueueUrl=url, Entries=entries)
                # If the response is truncated, this problem remains for each message that is missing from it.
                problems = {str(index): f"SQS did not say that it would {verb} it" for index in range(len(part))}
                for entry in answer.get("Successful") or []:
                    problems.pop(entry.get("Id"), None)
                for entry in answer.get("Failed") or []:
                    problems[entry["Id"]] = f"SQS refused to {verb} it: {entry.get('Code')}: {entry.get('Message')}"
            except Exception as refused:
                problem, remedy = _problem(refused, action, self.queue_arn)
                problems = {str(index): problem for index in range(len(part))}
            for index, message in enumerate(part):
                refusal = problems.get(str(index))
                message.applied = refusal is None
                if refusal is not None:
                    _log("ERROR", message_id=message.message_id, action="keep", problem=refusal, remedy=remedy)


# Checks on the event that Lambda passes, and on the result that the caller's function returns


def _check_event(event: object) -> None:
    """Refuses an event that is not from SQS. Such an event would otherwise count as handled."""
    if not isinstance(event, dict):
        problem: str | None = "it is not an object"
    elif not isinstance(event.get("Records"), list):
        problem = "it has no list of Records"
    else:
        problem = next((problem for record in event["Records"] if (problem := _foreign(record))), None)
    if problem is not None:
        raise ValueError(f"not an SQS event: {problem}{_NOT_SQS}")


def _foreign(record: object) -> str | None:
    """Returns the problem with a record that is not from SQS; None for one that is."""
    if not isinstance(record, dict):
        return "a record is not an object"
    source = record.get("eventSource", record.get("EventSource"))
    if source is None:
        named = "messageId" in record or ":sqs:" in str(record.get("eventSourceARN"))
        return None if named else "a record has no eventSource"
    return None if source == "aws:sqs" else f"a record is from {str(source)[:_WAIT_CHARACTERS]}"


def _check_result(result: object) -> None:
    """Refuses a return value that is not a result yet, such as an awaitable, or a generator that a wrapper hid."""
    for it in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(it, _UNRUN) or _is_lazy(it):
            raise TypeError(_NEVER_RUN)
        if hasattr(type(it), "add_done_callback"):
            raise TypeError("the function of a consumer returned a future: nobody would wait for it")


def _is_lazy(it: object) -> bool:
    """Returns true for a lazy iterator. One that can be closed, such as a file, does not count."""
    return isinstance(it, Generator) or (isinstance(it, (Iterator, AsyncIterator)) and not hasattr(type(it), "close"))


# Messages and dead-letters


def _redriven(record: _Record) -> _Record:
    """Returns the record as originally sent. If the body is a Comeback dead-letter that was moved back to the queue,
    restores the original body from the dead-letter."""
    body = record.get("body")
    if not (isinstance(body, str) and body.startswith('{"reason":')):
        return record
    try:
        dead_letter = json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: the JSON is nested too deeply
        return record
    ours = (
        dead_letter.get("reason") in _REASONS
        and "dead_lettered_at" in dead_letter
        and isinstance(dead_letter.get("payload"), str)
    )
    return {**record, "body": dead_letter["payload"]} if ours else record


def _dead_letter(message: _Message, error: BaseException, end: _End, function_arn: str, now: float) -> dict[str, Any]:
    """Returns the body and attributes of a dead-letter. If they are too large for SQS, returns the received body with
    the reason as an attribute."""
    received = str(message.record.get("body", ""))
    body: dict[str, Any] = {
        "reason": end.reason,
        "detail": end.detail,
        "function_arn": function_arn,
        "retries_made": message.receives - 1,
        "initial_timestamp": int(message.sent),
        "dead_lettered_at": int(now),
        "origin_request_id": message.message_id,
        "error": {"type": type(error).__name__, "message": _text(error)},
        "payload": _redriven(message.record).get("body", ""),
    }
    ours = {
        "Reason": _string(end.reason),
        "TargetFunction": _string(function_arn),
        "RetriesMade": {"DataType": "Number", "StringValue": str(message.receives - 1)},
        "ErrorType": _string(type(error).__name__),
    }
    ours = {name: value for name, value in ours.items() if value["StringValue"]}
    attributes = {**ours, **_own_attributes(message.record, ours)}
    beside = _beside(message.record)
    for error_text in (body["error"]["message"], ""):
        body["error"]["message"] = error_text
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        text = re.sub("[\ud800-\udfff\ufffe\uffff]", lambda it: f"\\u{ord(it[0]):04x}", text)  # SQS refuses them raw
        if _size(text, attributes) <= _MOST_BYTES:
            return {"MessageBody": text, "MessageAttributes": attributes, **beside}
    attributes = {"Reason": _string(end.reason)}
    if _size(received, attributes) <= _MOST_BYTES:
        return {"MessageBody": received, "MessageAttributes": attributes, **beside}
    return {"MessageBody": received, **beside}


def _beside(record: _Record) -> dict[str, Any]:
    """Returns a message's group and trace header, as parameters of `send_message`."""
    attributes, beside = record.get("attributes") or {}, {}
    if group := attributes.get("MessageGroupId"):
        beside["MessageGroupId"] = group
    if trace := attributes.get("AWSTraceHeader"):
        beside["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    return beside


def _own_attributes(record: _Record, ours: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns as many of the message's own attributes as fit beside `ours`. SQS allows ten attributes in all."""
    own: dict[str, dict[str, Any]] = {}
    for name, value in sorted((record.get("messageAttributes") or {}).items()):
        data_type = value.get("dataType", "String")
        if name in ours or len(ours) + len(own) == _MOST_ATTRIBUTES:
            continue
        if value.get("binaryValue"):
            own[name] = {"DataType": data_type, "BinaryValue": base64.b64decode(value["binaryValue"])}
        elif value.get("stringValue"):
            own[name] = {"DataType": data_type, "StringValue": value["stringValue"]}
    return own


def _string(text: str) -> dict[str, str]:
    # SQS refuses characters outside these ranges (`SendMessage` in the SQS API reference).
    accepted = re.sub("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]", "\ufffd", text)
    return {"DataType": "String", "StringValue": accepted[:_ATTRIBUTE_CHARACTERS]}


def _size(body: str, attributes: dict[str, dict[str, Any]]) -> int:
    values = [(name, it["DataType"], it.get("StringValue", ""), it.get("BinaryValue", b"")) for name, it in attributes.items()]
    texts = sum(len(text.encode(errors="replace")) for name, kind, value, _ in values for text in (name, kind, value))
    return len(body.encode(errors="replace")) + texts + sum(len(binary) for *_, binary in values)


# Parsing of errors and of the waits that they request


def _asked(error: BaseException, now: float) -> tuple[float | None, str | None]:
    """Returns the time that a `RetryAfter` requests, or the reason for ignoring it."""
    if not (isinstance(error, RetryAfter) or _simple_name(type(error).__name__) == "RetryAfter"):
        return None, None
    said = _text(error)
    try:
        wait = _requested_wait(said, now)
    except _Unreadable as why:
        ignored = why
    else:
        if wait > 0:
            return now + wait, None
        ignored = _Unreadable("its time is not after the failure")
    return None, f"{json.dumps(said.partition(';')[0].strip()[:_WAIT_CHARACTERS], ensure_ascii=False)}: {ignored}"


def _simple_name(error_type: str) -> str:
    """Returns an error's type without a final `Error` or `Exception`, and without what compilers and bundlers add. The
    retry handler uses the same rules."""
    name = _without_generics(re.sub("^Function<(.*)>$", r"\1", error_type).lstrip("&"))
    numbers = name.find("$", max(1, len(name.rstrip("$0123456789"))))
    name = name if numbers < 0 else name[:numbers]
    name = re.split("[.$/]", name)[-1].rpartition("::")[2]
    return re.sub("(?<=.)(Error|Exception)$", "", name)


def _without_generics(name: str) -> str:
    """Returns the name without the `<…>` at its end, if it has one."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += {">": 1, "<": -1}.get(name[position], 0)
        if depth <= 0:
            return name[:position] if depth == 0 and position > 0 and name[position] == "<" else name
    return name


def _requested_wait(text: str, now: float) -> float:
    """Returns the seconds to wait, according to the grammar in docs/envelope.md."""
    text = text.partition(";")[0].strip(" \t\n\r\f")
    if len(text) > _WAIT_CHARACTERS:
        raise _NOT_A_WAIT
    if text.startswith("P"):
        days, time_sign, rest = text[1:].partition("T")
        if not time_sign:
            return _sum(days, _ISO_DAYS)
        if re.search("[.,]", days):
            raise _NOT_A_WAIT
        return (_sum(days, _ISO_DAYS) if days else 0) + _sum(rest, _ISO_TIME)
    if re.match("[0-9]", text) and text[4:5] != "-":
        return _bare_number(text, now) if re.fullmatch(_DECIMAL, text) else _sum(text, _UNITS)
    return max(0.0, _date(text) - now)


def _bare_number(text: str, now: float) -> float:
    whole, _, fraction = text.replace(",", ".").partition(".")
    seconds = float(whole) + bool(fraction.strip("0"))
    if seconds <= _LONGEST_AGE:
        return seconds
    number = float(text.replace(",", "."))
    if number < 10**9:
        raise _Unreadable("its number is over 14 days of seconds, and too small for an epoch time")
    wait = (number if number < 10**12 else number / 1_000) - now
    if wait > _LONGEST_AGE:
        raise _Unreadable("its number is an epoch time over 14 days away")
    return max(0.0, wait)


def _sum(text: str, units: dict[str, float]) -> float:
    """Adds up numbers with units, such as `1h 30m`. Each unit may occur once, longest first, and only the last number
    may have a fraction."""
    total, left = 0.0, list(units)
    while True:
        found = re.match(rf"({_DECIMAL})[ \t]*([A-Za-z]*)[ \t]*", text)
        if found is None:
            raise _NOT_A_WAIT
        number, unit = found.groups()
        if unit not in left:
            if unit not in units and re.match("[yYM]|mo", unit):
                raise _Unreadable("years and months have no fixed length (minutes are a lower-case m)")
            raise _NOT_A_WAIT
        total += float(number.replace(",", ".")) * units[unit]
        text, left = text[found.end() :], left[left.index(unit) + 1 :]
        if not text:
            return total
        if not number.isdigit():
            raise _NOT_A_WAIT


def _date(text: str) -> float:
    """Parses an RFC 3339 time (seconds are optional) or a date in one of the three HTTP formats. Returns epoch
    seconds."""
    for form in _DATES:
        found = re.fullmatch(form, text, re.ASCII)
        if found is None:
            continue
        part = found.groupdict()
        month = part["month"]
        year = int(part["year"])
        if len(part["year"]) == 2:
            year += 2_000 if year < 70 else 1_900
        try:
            number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
            hour, minute, second = (int(part[name] or 0) for name in ("hour", "minute", "second"))
            if second == 60 and form == _DATES[0]:
                second = 59  # as in the handler, a leap second, but not in an HTTP date
            moment = datetime(year, number, int(part["day"]), hour, minute, second, tzinfo=timezone.utc)
        except ValueError:
            break
        weekday = part.get("weekday")
        if year < 1970 or (weekday is not None and weekday[:3] != _DAYS[moment.weekday()]):
            break
        fraction = float(f"0.{part.get('fraction') or 0}")
        return moment.timestamp() + fraction - _offset((part["zone"] or "").strip())
    raise _NOT_A_WAIT


def _offset(zone: str) -> int:
    """Returns a time zone's offset from UTC in seconds, positive to the east."""
    if zone[:1] not in ("+", "-"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise _NOT_A_WAIT
    return (-60 if zone[0] == "-" else 60) * (hours * 60 + minutes)


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_ERROR_CHARACTERS]
    except BaseException:  # `str` runs the error's own code, which can raise anything
        return ""


def _stack(error: BaseException) -> str | None:
    """Returns the stack traces of an error and its causes, the first cause first. Long output is cut in the middle, to
    keep the first cause and the error itself."""
    import traceback  # needed only for failures

    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        half = _ERROR_CHARACTERS // 2
        return text if len(text) <= _ERROR_CHARACTERS else text[:half] + text[-half:]
    except BaseException:  # formatting runs the error's own code, which can raise anything
        return None


def _option_seconds(value: object) -> int | None:
    """Returns an option's duration in whole seconds; None if the value is not a duration."""
    if isinstance(value, str):
        try:
            # The sum is rounded, because 1.1 · 3600 is not a whole number in floating point.
            value = _bare_number(value, 0) if re.fullmatch("[0-9]+", value) else round(_sum(value, _UNITS), 9)
        except _Unreadable:
            return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(when: object) -> str:
    """Formats a time as whole seconds or in RFC 3339. Any other value is converted to a string."""
    try:
        if isinstance(when, datetime):
            return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
        if isinstance(when, timedelta):
            return _seconds(math.ceil(when.total_seconds()))
        if not isinstance(when, (str, bytes, bool)):
            number = math.ceil(when)  # type: ignore[call-overload]
            # The retry handler reads a number of 10⁹ or more as an epoch time.
            return _seconds(number) if number < 10**9 else str(number)
    except Exception:
        pass  # `when` is not a number, or is a date after the year 9999.
    return _words(when)


def _seconds(seconds: int) -> str:
    """Adds a unit to a wait of over 14 days. Without one, the number could be taken for a date."""
    return str(seconds) if seconds <= 1_209_600 else f"{seconds}s"


def _words(thing: object) -> str:
    """Never fails, because constructing an error must not fail."""
    try:
        return thing.decode("latin-1") if isinstance(thing, bytes) else str(thing)
    except Exception:
        return f"an unprintable {type(thing).__name__}"


# Calls to AWS, and the log


def _call(seconds: float, queue_arn: str, name: str, **arguments: Any) -> Any:
    """Calls SQS, and waits at most `seconds` for the response. Another thread makes the call, because boto3 cannot be
    interrupted."""
    from concurrent.futures import Future

    answer: Future[Any] = Future()

    def make() -> None:
        _CALL.until = time.time() + seconds
        try:
            with _LOADING:
                client = _sqs(queue_arn)
            answer.set_result(getattr(client, name)(**arguments))
        except Exception as refused:
            answer.set_exception(refused)

    threading.Thread(target=contextvars.copy_context().run, args=(make,), daemon=True).start()
    return answer.result(seconds)


_CALL = threading.local()


def _check_time(**_: Any) -> None:
    """Stops a call that has run out of time, so that it is not sent again after Lambda has frozen and thawed the
    function. By then, its message may have been delivered again."""
    if time.time() > _CALL.until:
        raise TimeoutError


# In boto3, creating a client is not thread-safe, but using one is.
_LOADING = threading.Lock()


@functools.lru_cache(maxsize=None)
def _sqs(queue_arn: str) -> Any:
    """Returns the SQS client for a queue. boto3 is loaded on the first failure, because loading it may take longer than
    the function itself."""
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]

    # The timeouts are short, because calls are made shortly before the function times out.
    config = Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 2, "mode": "standard"})
    client = boto3.client("sqs", region_name=(queue_arn.split(":") + [""] * 4)[3] or None, config=config)
    client.meta.events.register("before-send.sqs", _check_time)
    return client


def _queue_url(queue_arn: str) -> str:
    """Returns the queue's URL, which only identifies the queue. The SDK decides where to send the call."""
    _, partition, _, region, account, name = (queue_arn.split(":") + [""] * 6)[:6]
    return f"https://sqs.{region}.{_SUFFIXES.get(partition, 'amazonaws.com')}/{account}/{name}"


def _other_region(queue_url: str) -> str | None:
    """Returns the region of a queue if it is not the function's region. Calls go to the function's region, where
    another queue may have the same name."""
    host = re.match(r"https?://(?:sqs(?:-fips)?\.([a-z]+(?:-[a-z]+)+-[0-9]+)|([a-z0-9-]+)\.queue)\.", queue_url)
    ours = os.environ.get("AWS_REGION")
    region = host and (host[1] or host[2])
    return region if ours and region and region != ours else None


def _problem(error: Exception, action: str, resource: str) -> tuple[str, str | None]:
    code = type(error).__name__
    try:
        code = str(error.response["Error"]["Code"])  # type: ignore[attr-defined]
    except Exception:
        pass  # Some errors have no code, such as a connection error.
    # For an encrypted queue, SQS passes on errors from KMS.
    needed = "kms:GenerateDataKey and kms:Decrypt" if code[:3].upper() == "KMS" else action
    remedy = f"allow {needed} in the function's role" if "AccessDenied" in code else None
    return f"{action} on {resource}: {code}", remedy


def _log(level: str, **line: Any) -> None:
    known = {name: value for name, value in line.items() if value is not None}
    text = json.dumps({"timestamp": _rfc3339(time.time()), "level": level, "v": 1, **known})
    try:
        print(text + "\n", end="", flush=True)  # one write, because several threads print
    except Exception:
        pass  # A log line that cannot be written does not affect the message's outcome.


def _rfc3339(seconds: float) -> str:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=round(seconds * 1_000))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
