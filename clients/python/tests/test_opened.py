"""Tests of `@opened`, alone and above Powertools' `@idempotent`."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from comeback_envelope import NonRetryable, Opened, RetryAfter, open_event, opened

ORDER = {"order": 17}


@dataclasses.dataclass
class Context:
    aws_request_id: str
    function_name: str = "orders"

    def get_remaining_time_in_millis(self) -> int:
        return 3_000


class Memory(BasePersistenceLayer):
    """Replaces the DynamoDB table with a dict."""

    def __init__(self) -> None:
        self.records: dict[str, DataRecord] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    def _get_record(self, idempotency_key: str) -> DataRecord:
        if idempotency_key not in self.records:
            raise IdempotencyItemNotFoundError
        return self.records[idempotency_key]

    def _put_record(self, data_record: DataRecord) -> None:
        if data_record.idempotency_key in self.records:
            raise IdempotencyItemAlreadyExistsError(old_data_record=self.records[data_record.idempotency_key])
        self.records[data_record.idempotency_key] = data_record

    def _update_record(self, data_record: DataRecord) -> None:
        self.records[data_record.idempotency_key] = data_record

    def _delete_record(self, data_record: DataRecord) -> None:
        del self.records[data_record.idempotency_key]


def retry(attempt: int, of: str) -> dict[str, Any]:
    metadata = {"attempt": attempt, "initial_timestamp": 1643667670, "origin_request_id": of}
    return {"_retry_metadata": metadata, "_original_payload": ORDER}


def test_a_handler_receives_the_opened_event() -> None:
    @opened
    def handler(event: Opened, context: Context) -> Opened:
        """Ships."""
        return event

    assert handler(ORDER, Context("a1")) == {"payload": ORDER, "attempt": 0, "key": "a1"}
    assert handler(retry(2, of="a1"), Context("b2")) == {"payload": ORDER, "attempt": 2, "key": "a1"}
    assert (handler.__name__, handler.__doc__) == ("handler", "Ships.")


def test_a_malformed_envelope_fails_before_the_handler_runs() -> None:
    @opened
    def handler(event: Opened, context: Context) -> None:
        pytest.fail("it ran")

    with pytest.raises(ValueError, match="^malformed envelope: attempt is not an integer of at least 1$"):
        handler(retry(0, of="a1"), Context("b2"))


def test_opened_event_has_attributes() -> None:
    event = open_event(retry(2, of="a1"), "b2")
    assert (event.payload, event.attempt, event.key) == (ORDER, 2, "a1")


def test_all_attempts_are_one_powertools_operation() -> None:
    shipped: list[str] = []
    failures = [RetryAfter(900), NonRetryable("cancelled")]

    @opened
    @idempotent(config=IdempotencyConfig(event_key_jmespath="key"), persistence_store=Memory())
    def handler(event: Opened, context: Any) -> dict[str, int]:
        if failures:
            raise failures.pop()
        shipped.append(event["key"])
        return {"shipped": len(shipped)}

    with pytest.raises(NonRetryable):
        handler(ORDER, Context("a1"))
    with pytest.raises(RetryAfter):
        handler(retry(1, of="a1"), Context("b2"))
    assert handler(retry(2, of="a1"), Context("c3")) == {"shipped": 1}, "a failed attempt leaves no record"
    assert handler(retry(2, of="a1"), Context("d4")) == {"shipped": 1}, "a second copy of the event"
    assert handler(ORDER, Context("e5")) == {"shipped": 2}, "another event with the same payload"
    assert shipped == ["a1", "e5"]
