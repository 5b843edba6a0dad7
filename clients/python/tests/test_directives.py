"""Checks that the retry handler can read what the two errors write, and that their constructors never fail."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
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
        (64.57, "65"),
        (Decimal("64.57"), "65"),
        (Fraction(1, 3), "1"),
        (1789404414, "1789404414"),
        ("120", "120"),
        ("64.57", "64.57"),
        (b"120", "120"),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT"),
        (timedelta(minutes=15), "900"),
        (timedelta(microseconds=1), "1"),
        (timedelta(days=14), "1209600"),
        (timedelta(days=14, microseconds=1), "1209601s"),
        (timedelta.max, "86400000000000s"),
        (datetime(2026, 9, 14, 17, 46, 54, tzinfo=BERLIN), "2026-09-14T15:46:54Z"),
        (datetime(2026, 9, 14, 15, 46, 54, 145000, tzinfo=timezone.utc), "2026-09-14T15:46:54.145000Z"),
    ],
)
def test_retry_after_writes_whole_seconds_or_a_moment(when: Any, message: str) -> None:
    assert str(RetryAfter(when)) == message
    assert str(RetryAfter(when, "the shop is closed")) == message + "; the shop is closed"


def test_a_time_without_a_zone_is_local() -> None:
    local = datetime(2026, 9, 14, 15, 46, 54)
    assert str(RetryAfter(local)) == str(RetryAfter(local.astimezone()))


def test_a_number_is_written_as_it_is_read() -> None:
    """The packages for other languages must write the same strings."""
    cases = Path(__file__).resolve().parents[3] / "tests" / "golden" / "directives" / "written.json"
    for case in json.loads(cases.read_text(encoding="utf-8")):
        assert str(RetryAfter(case["seconds"])) == str(RetryAfter(timedelta(seconds=case["seconds"]))) == case["message"]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("when", "message"),
    [
        (0, "0"),
        (-1, "-1"),
        (-0.5, "0"),
        (timedelta(0), "0"),
        (timedelta(seconds=-1), "-1"),
        (math.inf, "inf"),
        (math.nan, "nan"),
        (Decimal("NaN"), "NaN"),
        (None, "None"),
        (True, "True"),
        ([900], "[900]"),
        ("soon", "soon"),
        (b"\xff", "ÿ"),
        (date(2026, 9, 14), "2026-09-14"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), "9999-12-31 23:59:59.999999-05:00"),
        (Unprintable(), "an unprintable Unprintable"),
    ],
)
def test_nonsense_is_left_to_the_handler(when: Any, message: str) -> None:
    assert str(RetryAfter(when)) == message


def test_unprintable_explanation_does_not_fail() -> None:
    assert str(RetryAfter(10**5000)) == "an unprintable int"
    assert str(RetryAfter(900, Unprintable())) == "900; an unprintable Unprintable"  # type: ignore[arg-type]


def test_unprintable_message_does_not_end_the_runtime() -> None:
    """Lambda's runtime prints the message. If printing fails, the process ends and the error's name is lost."""
    for error in (NonRetryable("held by \ud83d"), NonRetryable(ValueError("held by \ud83d"))):
        assert str(error) == "held by \ufffd"
    assert str(RetryAfter(900, "\udc00, \ud83d\ude00 and \ud83d")) == "900; \ufffd, \U0001f600 and \ufffd"
    assert str(NonRetryable(Unprintable())) == "an unprintable Exception"
    assert (str(NonRetryable()), str(NonRetryable("order", 17))) == ("", "('order', 17)")


def test_text_is_passed_on_unchanged() -> None:
    """`RetryAfter` must pass on the value of any `Retry-After` header."""
    cases = Path(__file__).resolve().parents[3] / "tests" / "golden" / "directives" / "retry-after.json"
    for case in json.loads(cases.read_text(encoding="utf-8")):
        assert str(RetryAfter(case["text"])) == re.sub("[\ud800-\udfff]", "\ufffd", case["text"])


@pytest.mark.parametrize("error", [RetryAfter(900), RetryAfter(timedelta(minutes=15), "the shop is closed")])
def test_copied_errors_are_the_same(error: RetryAfter) -> None:
    for copied in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(copied), str(copied)) == (RetryAfter, str(error))


def test_non_retryable_carries_its_reason() -> None:
    assert str(NonRetryable("order 17 was cancelled")) == "order 17 was cancelled"


def test_names_are_those_the_handler_obeys() -> None:
    assert (RetryAfter.__name__, NonRetryable.__name__) == ("RetryAfter", "NonRetryable")
