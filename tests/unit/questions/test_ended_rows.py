"""The end of its producer before each ended transaction, from rows that come some at a time."""

import random
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest

from txn_analysis.judge.endings import EndedTransaction
from txn_analysis.questions import ended
from txn_analysis.questions.ended import with_previous_ends
from txn_analysis.tables import TRANSACTIONS

Row = dict[str, Any]

STORED = [name for name in EndedTransaction._fields if name != "previous_end_ms"]
SCHEMA = pa.schema([TRANSACTIONS.arrow_schema.field(name) for name in STORED])
NO_RUN: Any = None
KEY = ("topic", "partition", "producer_id")
ORDER = itemgetter(*KEY)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Ends of six producers on four partitions, in whatever order; every tenth has no time."""
    chance = random.Random(7)
    found = [dict.fromkeys(STORED) | ended_at(offset, chance) for offset in range(0, 900, 3)]
    chance.shuffle(found)
    return found


def ended_at(offset: int, chance: random.Random) -> Row:
    return {
        "topic": chance.choice(["orders", "payments"]),
        "partition": chance.choice([0, 1]),
        "producer_id": chance.randrange(6),
        "txn_start_offset": offset,
        "end_offset": offset + 2,
        "outcome": chance.choice(["ABORT", "COMMIT"]),
        "end_timestamp_ms": None if chance.random() < 0.1 else 1_000 + chance.randrange(300),
    }


def batches(rows: list[Row], at_once: int = 7) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_pylist(rows, SCHEMA)
    end = table.select([*KEY, "end_offset", "end_offset", "end_timestamp_ms"])
    yield from end.rename_columns([*KEY, "below", "before_offset", "before_ms"]).to_batches(at_once)


def test_the_end_before_is_that_of_the_same_producer_and_partition(
    rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended, "asked_batches", lambda *_: batches(rows))
    monkeypatch.setattr(ended, "_ENDS_AT_ONCE", 20)
    aborted = [row for row in rows if row["outcome"] == "ABORT"]
    found = with_previous_ends(NO_RUN, pa.Table.from_pylist(aborted, SCHEMA))
    known = {(one.topic_partition, one.producer_id, one.end_offset): one.previous_end_ms for one in found}
    expected = {}
    for row in aborted:
        before = [r for r in rows if ORDER(r) == ORDER(row) and r["end_offset"] < row["end_offset"]]
        last = max(before, key=itemgetter("end_offset"), default=None)
        expected[(row["topic"], row["partition"]), row["producer_id"], row["end_offset"]] = (
            last and last["end_timestamp_ms"]
        )
    assert known == expected
    assert None in known.values()
