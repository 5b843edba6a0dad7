"""Runs the cases that all consumers share, from tests/golden/consumer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import comeback_sqs
from comeback_sqs import consumer

CASES = sorted((Path(__file__).parents[3] / "tests/golden/consumer").glob("*.json"))
NOW = 1_795_694_400.0  # 2026-11-26T12:00:00Z


class Refused(Exception):
    response = {"Error": {"Code": "AccessDenied"}}


class Sqs:
    def __init__(self, refuses: list[str]) -> None:
        self.refuses = refuses
        self.hides: list[Any] = []
        self.dead_letters: list[dict[str, Any]] = []
        self.hiding_calls = 0

    def send_message(self, **call: Any) -> dict[str, Any]:
        self.dead_letters.append(call)
        if "SendMessage" in self.refuses:
            raise Refused
        return {"MessageId": "1"}

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.hiding_calls += 1
        self.hides += [[entry["ReceiptHandle"][2:], entry["VisibilityTimeout"]] for entry in Entries]
        if "ChangeMessageVisibilityBatch" in self.refuses:
            raise Refused
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}


def record(message: dict[str, Any], queue: str) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(message["receives"]),
        "SentTimestamp": str(round((NOW - message["sent_ago"]) * 1_000)),
        "ApproximateFirstReceiveTimestamp": str(round((NOW - message["first_ago"]) * 1_000)),
    }
    if "group" in message:
        attributes["MessageGroupId"] = message["group"]
    return {
        "messageId": message["id"],
        "receiptHandle": f"h-{message['id']}",
        "body": message.get("body", message["id"]),
        "attributes": message.get("attributes", attributes),
        "messageAttributes": {},
        "eventSourceARN": queue,
    }


def context(time_left: list[float]) -> Any:
    answers = list(time_left)

    def remaining() -> int:
        return round((answers.pop(0) if len(answers) > 1 else answers[0]) * 1_000)

    return SimpleNamespace(
        get_remaining_time_in_millis=remaining,
        invoked_function_arn="arn:aws:lambda:eu-west-1:123456789012:function:orders",
    )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    case = json.loads(path.read_text())
    sqs = Sqs(case.get("refuses", []))
    monkeypatch.setattr(comeback_sqs, "_sqs", lambda queue_arn: sqs)
    monkeypatch.setattr("time.time", lambda: NOW)
    monkeypatch.setattr(comeback_sqs._RANDOM, "random", lambda: case["draw"])
    messages = {message["id"]: message for message in case["batch"]}
    ran: list[str] = []

    @consumer(**case["options"])
    def handler(record: dict[str, Any], context: Any) -> object:
        message = messages[record["messageId"]]
        ran.append(record["messageId"])
        assert record["body"] == message.get("sees", message["id"])
        record.clear()  # the function's changes must have no effect
        if message["does"] == "returns_an_iterator":
            return map(str, [1])
        if message["does"] != "succeeds":
            name, text = message["does"]["fails"]
            raise type(name, (Exception,), {})(text)
        return None

    event = {"Records": [record(message, case["queue"]) for message in case["batch"]]}
    response = handler(event, context(case.get("time_left", [60])))
    assert [failure["itemIdentifier"] for failure in response["batchItemFailures"]] == case["response"]
    assert ran == case["runs"]
    assert sqs.hides == case["hides"]
    assert sqs.hiding_calls == case.get("hiding_calls", 1 if case["hides"] else 0)
    sent = [json.loads(call["MessageBody"]) for call in sqs.dead_letters]
    assert [[body["origin_request_id"], body["reason"]] for body in sent] == case["dead_letters"]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        del line["timestamp"]
        line.pop("stack_trace", None)
    assert lines == case.get("lines", lines)
