"""`described-producers.json` beside a segment: an answer is read whole, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.log_dir.test_stated import log_dir, stated

NAME = "orders-0/described-producers.json"
PRODUCER: dict[str, Any] = {
    "producer_id": 7,
    "producer_epoch": 0,
    "coordinator_epoch": None,
    "current_txn_start_offset": 2,
    "last_timestamp_ms": 1,
    "last_sequence": None,
}


def answer(**changes: Any) -> bytes:
    head = {"format": "txn-capture described producers", "version": 1, "topic": "orders", "partition": 0}
    offsets = {"first_offset": 2, "high_watermark": 5, "producers": [PRODUCER]}
    return json.dumps(head | offsets | changes).encode()


def test_it_states_from_where_on_was_fetched_and_up_to_where_it_counts(tmp_path: Path) -> None:
    assert stated(log_dir(tmp_path, {NAME: answer()})) == [("described_producers", "orders", 0, 2, "5")]


def test_fields_of_tomorrow_are_read_over(tmp_path: Path) -> None:
    assert stated(log_dir(tmp_path, {NAME: answer(more=1)})) == [("described_producers", "orders", 0, 2, "5")]


@pytest.mark.parametrize(
    "content",
    [
        answer(topic="payments"),
        answer(partition=1),
        answer(version=2),
        answer(high_watermark=None),
        answer(first_offset=-1),
        answer(producers=[PRODUCER, PRODUCER]),
        answer(producers=[PRODUCER | {"producer_id": -1}]),
        answer(producers=[PRODUCER | {"current_txn_start_offset": True}]),
        answer(producers=[{"producer_id": 7}]),
        answer()[:-1],
        answer().replace(b'"version": 1', b'"version": 1, "version": 1'),
    ],
)
def test_what_no_broker_answered_is_refused(tmp_path: Path, content: bytes) -> None:
    (plan,) = log_dir(tmp_path, {NAME: content})
    assert plan.problem is not None
    assert plan.problem.startswith("byte 0: not what a broker writes into")
