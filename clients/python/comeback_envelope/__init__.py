"""Read an event that Comeback retries, and say how to be retried. This file needs nothing but Python."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, TypedDict, TypeVar

__all__ = ["Event", "NonRetryable", "Opened", "RetryAfter", "open_event", "opened"]

_Result = TypeVar("_Result")


class Event(NamedTuple):
    """An event out of its envelope."""

    payload: Any
    attempt: int
    """0 on the first invocation, 1 on the first retry."""
    key: str
    """The same on every attempt: an idempotency key."""


class Opened(TypedDict):
    """The same as the dict that a handler below `@opened` receives."""

    payload: Any
    attempt: int
    key: str


class RetryAfter(Exception):
    """Raise it to have the event retried then, instead of after the ordinary backoff.

    `when` is a wait from the failure on (seconds, or a `timedelta`), or a `datetime` with a time zone. `text` is for
    people. The handler goes by the name of the class, so a subclass of another name means nothing to it.
    """

    def __init__(self, when: float | timedelta | datetime, text: str | None = None) -> None:
        super().__init__(_moment(when) if text is None else f"{_moment(when)}; {text}")
        self._given = (when, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class NonRetryable(Exception):
    """Raise it if no retry can help: the event is dead-lettered, with this error's message."""


def open_event(event: Any, request_id: str) -> Event:
    """The payload, the number of the attempt and the idempotency key of what a handler received.

    `request_id` is `context.aws_request_id`. Raises a `ValueError` for a malformed envelope. Let it fail the invocation:
    the event is then dead-lettered as `malformed_envelope`.
    """
    if not isinstance(event, dict) or "_retry_metadata" not in event:
        return Event(event, 0, request_id)  # the first invocation
    metadata = event["_retry_metadata"]
    _check(isinstance(metadata, dict), "_retry_metadata is not an object")
    attempt, since = metadata.get("attempt"), metadata.get("initial_timestamp")
    key, style = metadata.get("origin_request_id"), metadata.get("style")
    _check(type(attempt) is int and attempt >= 1, "attempt is not an integer of at least 1")
    _check(type(since) is int and since >= 0, "initial_timestamp is not an integer of at least 0")
    _check(key is None or isinstance(key, str) and key != "", "origin_request_id is not a string that is not empty")
    _check(style in (None, "wrap", "inline"), "style is neither wrap nor inline")
    rest = {name: value for name, value in event.items() if name != "_retry_metadata"}
    if style == "inline":
        return Event(rest, attempt, key or request_id)
    _check("_original_payload" in rest, "_original_payload is missing")
    _check(len(rest) == 1, "another key stands beside _original_payload")
    payload = rest["_original_payload"]
    _check(not isinstance(payload, dict) or "_retry_metadata" not in payload, "_original_payload is itself an envelope")
    return Event(payload, attempt, key or request_id)


def opened(handler: Callable[..., _Result]) -> Callable[..., _Result]:
    """Opens each event before a handler: its event is `{"payload": …, "attempt": …, "key": …}`.

    Above Powertools' `@idempotent`, `event_key_jmespath="key"` makes the event's attempts one operation.
    """

    @functools.wraps(handler)
    def open_first(event: Any, context: Any, *args: Any, **kwargs: Any) -> _Result:
        payload, attempt, key = open_event(event, context.aws_request_id)
        return handler(Opened(payload=payload, attempt=attempt, key=key), context, *args, **kwargs)

    return open_first


def _moment(when: float | timedelta | datetime) -> str:
    """As the retry handler reads it: whole seconds, or RFC 3339."""
    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise ValueError(f"RetryAfter needs a time zone: {when!r} has none")
        try:
            return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
        except OverflowError:
            raise ValueError(f"RetryAfter needs a date of the years 1 to 9999, not {when!r}") from None
    seconds = when.total_seconds() if isinstance(when, timedelta) else when
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"RetryAfter takes seconds, a timedelta or a datetime, not {when!r}")
    if not 0 < seconds < 2**64:
        raise ValueError(f"RetryAfter needs a wait of more than no time and less than 2^64 s, not {when!r}")
    return str(math.ceil(seconds))


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError("malformed envelope: " + problem)
