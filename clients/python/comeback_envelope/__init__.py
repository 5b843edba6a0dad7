"""Opens events that Comeback retries, and exports the errors that control a retry. Needs only Python."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict, TypeVar

__all__ = ["Event", "NonRetryable", "Opened", "RetryAfter", "open_event", "opened"]

_Result = TypeVar("_Result")


class Event(NamedTuple):
    """An opened event."""

    payload: Any
    attempt: int
    """The number of the attempt: 0 on the first invocation, 1 on the first retry."""
    key: str
    """An idempotency key, which is the same on every attempt."""


class Opened(TypedDict):
    """An opened event as a dict, which is what a handler decorated with `@opened` receives."""

    payload: Any
    attempt: int
    key: str


class RetryAfter(Exception):
    """Raise this exception to choose when the event is retried, instead of using the ordinary backoff.

    `when` is a wait counted from the failure (seconds or a `timedelta`), a `datetime` (local time if it has no time
    zone), or a string such as an HTTP `Retry-After` header. `text` is an explanation for people. The handler recognises
    the error by its class name, so a subclass must keep that name.

    The constructor never raises. The handler ignores a value that is not a wait, logs the reason, and retries with the
    ordinary backoff.
    """

    def __init__(self, when: float | Decimal | Fraction | timedelta | datetime | str, text: str | None = None) -> None:
        super().__init__(_moment(when) if text is None else f"{_moment(when)}; {_words(text)}")
        self._given = (when, text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class NonRetryable(Exception):
    """Raise this exception if no retry can help. The event is dead-lettered with this error's message."""

    def __str__(self) -> str:
        return _words(Exception(*self.args))


def open_event(event: Any, request_id: str) -> Event:
    """Opens the event that a handler received. Returns the payload, the attempt number and the idempotency key.

    `request_id` is `context.aws_request_id`. Raises `ValueError` for a malformed envelope. Let this error fail the
    invocation: the retry handler then dead-letters the event as `malformed_envelope`.
    """
    if not isinstance(event, dict) or "_retry_metadata" not in event:
        return Event(event, 0, request_id)  # this is the first invocation
    metadata = event["_retry_metadata"]
    _check(isinstance(metadata, dict), "_retry_metadata is not an object")
    attempt, since = metadata.get("attempt"), metadata.get("initial_timestamp")
    key, style = metadata.get("origin_request_id"), metadata.get("style")
    _check(type(attempt) is int and 1 <= attempt < 2**64, "attempt is not an integer of at least 1")
    _check(type(since) is int and 0 <= since < 2**64, "initial_timestamp is not an integer of at least 0")
    _check(key is None or isinstance(key, str) and _is_id(key), "origin_request_id is not a string that is not empty")
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
    """Opens each event, so that the handler receives `{"payload": …, "attempt": …, "key": …}`.

    Put this decorator above Powertools' `@idempotent`. With `event_key_jmespath="key"`, all attempts of an event are then
    one operation.
    """

    @functools.wraps(handler)
    def open_first(event: Any, context: Any, *args: Any, **kwargs: Any) -> _Result:
        payload, attempt, key = open_event(event, context.aws_request_id)
        return handler(Opened(payload=payload, attempt=attempt, key=key), context, *args, **kwargs)

    return open_first


def _moment(when: object) -> str:
    """Formats a time as whole seconds or in RFC 3339. Any other value is converted to a string."""
    try:
        if isinstance(when, datetime):
            return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
        if isinstance(when, timedelta):
            return _seconds(math.ceil(when.total_seconds()))
        if not isinstance(when, (str, bytes, bool)):
            number = math.ceil(when)  # type: ignore[call-overload]
            # The handler reads a number of 10⁹ or more as an epoch time.
            return _seconds(number) if number < 10**9 else str(number)
    except Exception:
        pass  # `when` is not a number, or is a date after the year 9999.
    return _words(when)


def _seconds(seconds: int) -> str:
    """Adds a unit to a wait of over 14 days. Without one, the number could be taken for a date."""
    return str(seconds) if seconds <= 1_209_600 else f"{seconds}s"


def _words(thing: object) -> str:
    """Converts a value to a string without lone surrogates. Otherwise, Lambda's runtime might crash when it prints the
    error, and the directive would be lost."""
    try:
        text = thing.decode("latin-1") if isinstance(thing, bytes) else str(thing)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except Exception:
        return f"an unprintable {type(thing).__name__}"


def _is_id(key: str) -> bool:
    """Refuses an empty key, and one with a lone surrogate, which no other system could store."""
    return key != "" and not any("\ud800" <= character <= "\udfff" for character in key)


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError("malformed envelope: " + problem)
