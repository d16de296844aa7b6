"""`describe-producers` and the plan, held against what the brokers themselves answered when the captures were made."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.captures import FIND_HANGING, VARIANTS, TablesOf, Variant
from tests.tools.repository import CASES
from tests.tools.table_rows import listed
from txn_analysis.questions.answers import FIND_HANGING as FIND_HANGING_COLUMNS
from txn_analysis.questions.answers import find_hanging
from txn_analysis.questions.filters import Filters
from txn_analysis.tables import PARTITION_HEALTH

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
def test_producers_are_what_the_brokers_said(tables_of: TablesOf, variant: Variant) -> None:
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
def test_what_hangs_is_what_kafkas_own_tool_says(tables_of: TablesOf, oracle: str, filters: Filters) -> None:
    """The cases of Kafka's `TransactionsCommandTest`: its table, cell by cell, but for how old things have become."""
    answer = find_hanging(tables_of(FIND_HANGING).findings(), filters)
    tool = (CASES / FIND_HANGING.capture / f"oracle/{oracle}.txt").read_text()
    assert cells(replace(answer, text_columns=len(COLUMNS_OF_FIND_HANGING)).text()) == cells(tool)


def cells(table: str) -> tuple[list[str], set[tuple[str, ...]]]:
    """The header, and the rows in any order, without the last column: the minutes since the last write."""
    header, *rows = [[cell.strip() for cell in line.split("\t")] for line in table.splitlines()]
    at = len(COLUMNS_OF_FIND_HANGING) - 1
    return header[: at + 1], {tuple(row[:at]) for row in rows}
