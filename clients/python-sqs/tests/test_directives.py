"""The cases of what an error asks for, which every implementation has in common: tests/golden/directives."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import comeback_sqs

FOLDER = Path(__file__).parents[3] / "tests/golden/directives"


@pytest.mark.parametrize("case", json.loads((FOLDER / "retry-after.json").read_text()), ids=lambda case: repr(case["text"]))
def test_wait(case: dict[str, Any]) -> None:
    failed_at = datetime.fromisoformat(case["failed_at"].replace("Z", "+00:00")).timestamp()
    try:
        found: dict[str, Any] = {"wait": comeback_sqs._requested_wait(case["text"], failed_at)}
    except comeback_sqs._Unreadable as why:
        found = {"ignored": str(why)}
    expected = {name: case[name] for name in ("wait", "ignored") if name in case}
    assert list(found) == list(expected), found
    assert found == expected or found["wait"] == pytest.approx(expected["wait"], abs=0.001)
