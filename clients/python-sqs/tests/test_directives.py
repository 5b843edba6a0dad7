"""Runs the directive cases that all implementations share, from tests/golden/directives."""

from __future__ import annotations

import contextlib
import importlib
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import comeback_sqs
from comeback_sqs import NonRetryable, RetryAfter, consumer

FOLDER = Path(__file__).parents[3] / "tests/golden/directives"


def cases(name: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("case", cases("retry-after.json"), ids=lambda case: repr(case["text"]))
def test_wait(case: dict[str, Any]) -> None:
    failed_at = datetime.fromisoformat(case["failed_at"].replace("Z", "+00:00")).timestamp()
    try:
        found: dict[str, Any] = {"wait": comeback_sqs._requested_wait(case["text"], failed_at)}
    except comeback_sqs._Unreadable as why:
        found = {"ignored": str(why)}
    expected = {name: case[name] for name in ("wait", "ignored") if name in case}
    assert list(found) == list(expected), found
    assert found == expected or found["wait"] == pytest.approx(expected["wait"], abs=0.001)


@pytest.mark.parametrize("case", cases("max-age.json"), ids=lambda case: repr(case["text"]))
def test_max_age(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="max_age is") if case["seconds"] is None else contextlib.nullcontext():
        consumer(max_age=case["text"])
    assert case["seconds"] in (None, comeback_sqs._option_seconds(case["text"]))


@pytest.mark.parametrize("case", cases("names.json"), ids=lambda case: repr(case["error_type"]))
def test_name(case: dict[str, str]) -> None:
    assert comeback_sqs._simple_name(case["error_type"]) == case["name"]


def test_a_long_name_is_read_at_once() -> None:
    assert comeback_sqs._simple_name("$" * 300_000 + "x") == "x"


@pytest.mark.parametrize("case", cases("written.json"), ids=lambda case: case["message"])
def test_retry_after_writes(case: dict[str, Any]) -> None:
    assert str(RetryAfter(case["seconds"])) == str(RetryAfter(timedelta(seconds=case["seconds"]))) == case["message"]


def test_retry_after_writes_dates() -> None:
    berlin = timezone(timedelta(hours=2))
    assert str(RetryAfter(datetime(2026, 9, 14, 17, 46, 54, tzinfo=berlin), "closed")) == "2026-09-14T15:46:54Z; closed"
    local = datetime(2026, 9, 14, 15, 46, 54)
    assert str(RetryAfter(local)) == str(RetryAfter(local.astimezone()))
    assert str(RetryAfter(1789404414)) == "1789404414", "an epoch time"


def test_both_packages_have_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each package is a single file that users can copy, so both define these errors."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "python"))
    envelope = importlib.import_module("comeback_envelope")

    given = [0, -1, 0.5, 900, 10**6, 10**7, 10**9, 10**5000, True, None, "soon", b"120", timedelta.max, datetime.max]
    for when in given:
        for text in (None, "closed"):
            assert str(RetryAfter(when, text)) == str(envelope.RetryAfter(when, text))
    assert NonRetryable.__name__ == envelope.NonRetryable.__name__
