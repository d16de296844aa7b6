"""The answer of `ended`: ended transactions of one run, and why each of them ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.errors import ConfigError
from txn_analysis.judge.ended import ended_with
from txn_analysis.judge.endings import ENDINGS, IdHistory
from txn_analysis.questions.ended_rows import ended_rows, newest, with_previous_ends
from txn_analysis.report.answer import Answer, Column
from txn_analysis.runs.asked_states import histories, record_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.judge.ended import Ended
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.past_run import PastRun

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
_AT_ONCE = 1 << 16


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


def ended_answer(run: PastRun, filters: Filters, wanted: EndedFilters) -> tuple[Answer, int]:
    """The wanted ended transactions, newest first, and how many more there are."""
    if filters.transactional_id_patterns or wanted.cause is not None or wanted.is_stale:
        shown, number = _newest_that_fit(_all_explained(run, filters, wanted), filters, wanted)
    else:
        last, number = newest(ended_rows(run, wanted.outcome, **filters.rows), wanted.limit)
        shown = [] if last is None else sorted(_explained_of(run, last), key=_newest_first)
    return Answer(ENDED_COLUMNS, tuple(map(_row, shown)), _IN_TEXT), number - len(shown)


def _all_explained(run: PastRun, filters: Filters, wanted: EndedFilters) -> Iterator[Ended]:
    """Every transaction that may be wanted, with its cause; some producers after the others."""
    counts = Counter[int]()
    for batch in ended_rows(run, wanted.outcome, "producer_id", **filters.rows):
        counts.update(_counted(batch["producer_id"]))
    for producer_ids in _groups(run, counts):
        rows = ended_rows(run, wanted.outcome, **filters.places, producer_id=producer_ids)
        yield from _explained(run, pa.Table.from_batches(rows))


def _explained_of(run: PastRun, rows: pa.Table) -> Iterator[Ended]:
    """Some ended transactions that are at hand, with their causes."""
    for producer_ids in _groups(run, _counted(rows["producer_id"])):
        is_theirs = pc.is_in(rows["producer_id"], pa.array(producer_ids, pa.int64()))
        yield from _explained(run, rows.filter(is_theirs).combine_chunks())


def _counted(producer_ids: pa.Array) -> Counter[int]:
    counts = producer_ids.value_counts()
    return Counter(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


def _groups(run: PastRun, ended: Counter[int]) -> Iterator[list[int]]:
    """Producer ids, as many at a time as their transactions and the coordinator's records of them can be held of."""
    group: list[int] = []
    number, records = 0, record_counts(run, ended) if ended else Counter[int]()
    for producer_id in sorted(ended):
        own = ended[producer_id] + records[producer_id]
        if group and number + own > _AT_ONCE:
            yield group
            group, number = [], 0
        group.append(producer_id)
        number += own
    if group:
        yield group


def _explained(run: PastRun, rows: pa.Table) -> Iterator[Ended]:
    known = histories(run, set(rows["producer_id"].unique().to_pylist()))
    of_producer = {
        producer_id: {name: IdHistory(records) for name, records in own.items()} for producer_id, own in known.items()
    }
    for one in with_previous_ends(run, rows):
        yield ended_with(one, of_producer.get(one.producer_id, {}), run.settings.max_clock_skew_ms)


def _newest_that_fit(found: Iterable[Ended], filters: Filters, wanted: EndedFilters) -> tuple[list[Ended], int]:
    """The transactions whose end is as it is asked for: the newest ones, and how many there are."""
    kept: list[Ended] = []
    number = 0
    for one in found:
        fits_cause = wanted.cause in {None, one.ending.cause.name}
        fits_stale = not wanted.is_stale or one.ending.stale_because is not None
        if fits_cause and fits_stale and filters.has_id(one.transactional_id):
            kept.append(one)
            number += 1
        if len(kept) > 2 * wanted.limit:
            kept = sorted(kept, key=_newest_first)[: wanted.limit]
    return sorted(kept, key=_newest_first)[: wanted.limit], number


def _newest_first(one: Ended) -> tuple[Any, ...]:
    end_ms = one.transaction.end_timestamp_ms
    return end_ms is None, -(end_ms or 0), one.transaction.topic_partition, -one.transaction.end_offset


def _row(one: Ended) -> tuple[Any, ...]:
    ended, cause = one.transaction, one.ending.cause
    return (
        ended.topic,
        ended.partition,
        ended.txn_start_offset,
        ended.end_offset,
        ended.outcome,
        ended.end_timestamp_ms,
        ended.producer_id,
        one.transactional_id,
        cause.name,
        cause.confidence.value,
        one.ending.stale_because,
        list(cause.evidence_for),
        list(cause.evidence_against),
    )
