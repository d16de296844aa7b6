"""`describe-producers` and the plan, held against what the brokers themselves answered when the captures were made."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.captures import CASES, FIND_HANGING, VARIANTS, Variant
from tests.table_rows import listed
from txn_analysis.plan.plan_file import write_txn_markers
from txn_analysis.questions.answers import FIND_HANGING as FIND_HANGING_COLUMNS
from txn_analysis.questions.answers import find_hanging
from txn_analysis.questions.filters import Filters
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import ABORT_PLAN, PARTITION_HEALTH, AbortRecord

DUMPED = [v for v in VARIANTS if "segments" in v.parts and "transaction-state" in v.parts]
ANSWERED = [v for v in DUMPED if list((CASES / v.capture / "oracle").glob("producers-*.txt"))]
COLUMNS = (
    ("ProducerId", "producer_id"),
    ("ProducerEpoch", "producer_epoch"),
    ("LatestCoordinatorEpoch", "coordinator_epoch"),
    ("LastSequence", "last_sequence"),
    ("LastTimestamp", "last_timestamp_ms"),
    ("CurrentTransactionStartOffset", "txn_start_offset"),
)
COLUMNS_OF_FIND_HANGING = [
    column.name for column in FIND_HANGING_COLUMNS if column.name not in {"TransactionalId", "Rule"}
]


def brokers_answer(file: Path) -> list[dict[str, int | None]]:
    """The tool's table; its -1 and None mean that there is no such value."""
    header, *lines = [[cell.strip() for cell in line.split("\t")] for line in file.read_text().splitlines()]
    names = dict(COLUMNS)
    rows = [{names[h]: cell for h, cell in zip(header, line, strict=True) if h} for line in lines]
    known = [{n: None if c in {"-1", "None"} else int(c) for n, c in row.items()} for row in rows]
    return sorted(known, key=lambda row: row["producer_id"] or 0)


@pytest.mark.parametrize("variant", ANSWERED, ids=lambda v: v.capture)
def test_producers_are_what_the_brokers_said(tables_of: Callable[[Variant], RunTables], variant: Variant) -> None:
    """No difference needs explaining: nothing was written between these captures and the brokers' answers."""
    health = listed(tables_of(variant), PARTITION_HEALTH, "topic", "partition", "producers")
    found = {f"{row['topic']}-{row['partition']}": row["producers"] for row in health}
    for file in sorted((CASES / variant.capture / "oracle").glob("producers-*.txt")):
        assert found[file.stem.removeprefix("producers-")] == brokers_answer(file), file.name


@pytest.mark.parametrize(
    ("oracle", "filters"),
    [
        ("find-hanging", Filters()),
        ("find-hanging-partition-2", Filters(topics=("audit-log",), partitions=(2,))),
    ],
    ids=["all", "specified-partition"],
)
def test_what_hangs_is_what_kafkas_own_tool_says(
    tables_of: Callable[[Variant], RunTables], oracle: str, filters: Filters
) -> None:
    """The cases of Kafka's `TransactionsCommandTest`: its table, cell by cell, but for how old things have become."""
    answer = find_hanging(tables_of(FIND_HANGING).findings(), filters)
    tool = (CASES / FIND_HANGING.capture / f"oracle/{oracle}.txt").read_text()
    assert cells(replace(answer, text_columns=len(COLUMNS_OF_FIND_HANGING)).text()) == cells(tool)


def cells(table: str) -> tuple[list[str], set[tuple[str, ...]]]:
    """The header, and the rows in any order, without the last column: the minutes since the last write."""
    header, *rows = [[cell.strip() for cell in line.split("\t")] for line in table.splitlines()]
    at = len(COLUMNS_OF_FIND_HANGING) - 1
    return header[: at + 1], {tuple(row[:at]) for row in rows}


def plan_of(tables: RunTables) -> list[AbortRecord]:
    return [AbortRecord.model_validate(row) for row in listed(tables, ABORT_PLAN)]


def test_the_plan_holds_what_hangs_and_nothing_that_is_pending(
    tables_of: Callable[[Variant], RunTables],
) -> None:
    variant = next(v for v in DUMPED if v.capture == "kafka-4.2/capture-1" and "segments" in v.parts)
    plan = plan_of(tables_of(variant))
    ended = {str(record.transactional_id) for record in plan if record.must_end_producer}
    text, left_out = write_txn_markers(plan, 1, ended)
    assert left_out == []
    assert json.loads(text) == {
        "markers": [
            _marker(3, "payments", 0),
            _marker(1002, "orders", 0),
            _marker(1004, "ledger.events", 1),
            _marker(987654321, "orders", 2, epoch=3),
        ]
    }
    brokers = "".join(file.read_text() for file in (CASES / variant.capture / "oracle").glob("find-hanging-*.txt"))
    assert len(re.findall(r"^(?:orders|payments|ledger\.events)\s", brokers, re.MULTILINE)) == 4


def _marker(producer_id: int, topic: str, partition: int, *, epoch: int = 0) -> dict[str, Any]:
    return {
        "producerId": producer_id,
        "producerEpoch": epoch,
        "transactionResult": False,
        "topics": [{"name": topic, "partitionIndexes": [partition]}],
        "coordinatorEpoch": 0,
    }
