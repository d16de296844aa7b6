"""The answer of `ended`: ended transactions of one run, and why each of them ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from txn_analysis.errors import ConfigError
from txn_analysis.filters import where_place, where_producer
from txn_analysis.judge.ended import ENDED, ended_transactions, with_causes
from txn_analysis.judge.endings import ENDINGS
from txn_analysis.report.answer import Answer, Column
from txn_analysis.tables import TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Row

    from txn_analysis.filters import Filters
    from txn_analysis.run import Run

ENDED_COLUMNS = (
    Column("Topic"),
    Column("Partition"),
    Column("StartOffset"),
    Column("EndOffset"),
    Column("Outcome"),
    Column("EndTimeMs"),
    Column("ProducerId"),
    Column("TransactionalId"),
    Column("Cause"),
    Column("Confidence"),
    Column("Stale"),
    Column("EvidenceFor"),
    Column("EvidenceAgainst"),
)
_IN_TEXT = len(ENDED_COLUMNS) - 2


@dataclass(frozen=True)
class EndedFilters:
    """Which ended transactions are wanted; None asks for all. The newest `limit` are shown."""

    outcome: str | None
    cause: str | None
    is_stale: bool
    limit: int

    def __post_init__(self) -> None:
        """Refuses a cause that does not exist.

        Raises:
            ConfigError: it names the causes.
        """
        if self.cause is not None and self.cause not in ENDINGS:
            raise ConfigError(f"--cause {self.cause}: unknown; the causes of an end are {', '.join(ENDINGS)}")


def ended_answer(run: Run, filters: Filters, wanted: EndedFilters) -> tuple[Answer, int]:
    """The wanted ended transactions, newest first, and how many more there are."""
    rows = where_producer(where_place(ended_transactions(run.rows(TRANSACTIONS)), filters), filters)
    if wanted.outcome is not None:
        rows = rows.where(F.col("outcome") == wanted.outcome)
    found = with_causes(rows, run.states(), run.settings.max_clock_skew_ms)
    if filters.transactional_id_patterns:
        found = found.mapInArrow(_of_wanted_ids(filters), ENDED)
    if wanted.cause is not None:
        found = found.where(F.col("cause.name") == wanted.cause)
    if wanted.is_stale:
        found = found.where("stale_because IS NOT NULL")
    found = found.persist()
    order = (F.desc("end_timestamp_ms"), "topic", "partition", F.desc("end_offset"))
    newest = found.orderBy(*order).limit(wanted.limit).collect()
    left_out_count = found.count() - len(newest)
    found.unpersist()
    return Answer(ENDED_COLUMNS, tuple(_row(row) for row in newest), _IN_TEXT), left_out_count


def _of_wanted_ids(filters: Filters) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Python decides which ids match, as in every other verb: Java reads some patterns differently."""

    def keep(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            is_wanted = [filters.has_id(name) for name in part.column("transactional_id").to_pylist()]
            yield part.filter(pa.array(is_wanted, pa.bool_()))

    return keep


def _row(row: Row) -> tuple[Any, ...]:
    cause = row["cause"]
    return (
        row["topic"],
        row["partition"],
        row["txn_start_offset"],
        row["end_offset"],
        row["outcome"],
        row["end_timestamp_ms"],
        row["producer_id"],
        row["transactional_id"],
        cause["name"],
        cause["confidence"],
        row["stale_because"],
        list(cause["evidence_for"]),
        list(cause["evidence_against"]),
    )
