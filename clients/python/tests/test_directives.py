"""The two errors write what the retry handler reads, and refuse what it would refuse."""

from __future__ import annotations

import copy
import math
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from comeback_envelope import NonRetryable, RetryAfter

BERLIN = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("when", "message"),
    [
        (900, "900"),
        (0.25, "1"),
        (1.5, "2"),
        (2**64 - 1, "18446744073709551615"),
        (timedelta(minutes=15), "900"),
        (timedelta(microseconds=1), "1"),
        (datetime(2026, 9, 14, 17, 46, 54, tzinfo=BERLIN), "2026-09-14T15:46:54Z"),
        (datetime(2026, 9, 14, 15, 46, 54, 145000, tzinfo=timezone.utc), "2026-09-14T15:46:54.145000Z"),
    ],
)
def test_retry_after_writes_whole_seconds_or_a_moment(when: Any, message: str) -> None:
    assert str(RetryAfter(when)) == message
    assert str(RetryAfter(when, "the shop is closed")) == message + "; the shop is closed"


@pytest.mark.parametrize(
    "when", [0, -1, -0.5, timedelta(0), timedelta(seconds=-1), math.inf, math.nan, 2**64, 1e300]
)
def test_a_wait_of_no_time_or_past_all_time_is_refused(when: Any) -> None:
    with pytest.raises(ValueError, match=r"RetryAfter needs a positive wait of less than 2\^64 s, not "):
        RetryAfter(when)


def test_a_date_past_all_years_is_refused() -> None:
    with pytest.raises(ValueError, match="RetryAfter needs a date in the years 1 to 9999, not "):
        RetryAfter(datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))))


@pytest.mark.parametrize("error", [RetryAfter(900), RetryAfter(timedelta(minutes=15), "the shop is closed")])
def test_an_error_of_another_process_is_the_same(error: RetryAfter) -> None:
    for copied in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(copied), str(copied)) == (RetryAfter, str(error))


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="RetryAfter needs a time zone: datetime.datetime"):
        RetryAfter(datetime(2026, 9, 14))


@pytest.mark.parametrize("when", ["900", None, True, [900]])
def test_what_is_no_time_is_refused(when: Any) -> None:
    with pytest.raises(TypeError, match="RetryAfter takes seconds, a timedelta or a datetime, not "):
        RetryAfter(when)


def test_non_retryable_carries_its_reason() -> None:
    assert str(NonRetryable("order 17 was cancelled")) == "order 17 was cancelled"


def test_the_names_are_the_ones_that_the_retry_handler_obeys() -> None:
    assert (RetryAfter.__name__, NonRetryable.__name__) == ("RetryAfter", "NonRetryable")
