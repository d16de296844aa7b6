"""The answer of `ended`: ended transactions of one run, and why each of them ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.errors import ConfigError
from txn_analysis.judge.endings import ENDINGS, UNEXPLAINED, IdHistory, ended_with, explains_before_ms
from txn_analysis.questions.ended_rows import ended_rows, newest, with_previous_ends
from txn_analysis.report.formats import Answer, Column
from txn_analysis.runs.asked_states import histories, record_counts
from txn_analysis.runs.named_producers import named_producers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from txn_analysis.judge.endings import Ended
    from txn_analysis.questions.filters import Filters
    from txn_analysis.runs.named_producers import NamedProducers
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
_DATED = ("producer_id", "end_timestamp_ms")
_RECORDS_AT_ONCE = 1 << 16
_ROWS_OF_A_RECORD = 8  # a record is held as an object, a row in columns


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
        shown, number = _of_a_cause(run, filters, wanted)
    else:
        last, number = newest(ended_rows(run, wanted.outcome, **filters.rows), wanted.limit)
        shown = sorted(_explained_of(run, last), key=_newest_first)
    return Answer(ENDED_COLUMNS, tuple(map(_row, shown)), _IN_TEXT), number - len(shown)


def _of_a_cause(run: PastRun, filters: Filters, wanted: EndedFilters) -> tuple[list[Ended], int]:
    """The newest transactions that have the wanted cause or id, and how many there are.

    Most transactions ended before the first record that is left of their ids: their columns alone say so.
    """
    named = named_producers(run)
    shown, number = _newest_that_fit(_with_records(run, filters, wanted, named), filters, wanted)
    if wanted.is_stale or wanted.cause not in {None, UNEXPLAINED}:
        return shown, number
    last, more = newest(_before_records(run, filters, wanted, named), wanted.limit)
    return sorted([*shown, *_explained_of(run, last, named.record_counts)], key=_newest_first)[
        : wanted.limit
    ], number + more


def _with_records(run: PastRun, filters: Filters, wanted: EndedFilters, named: NamedProducers) -> Iterator[Ended]:
    """Every transaction that a record may explain, with its cause; some producers after the others."""
    producers = named.of_ids(filters.has_id)
    counts = Counter[int]()
    for batch in ended_rows(run, wanted.outcome, *_DATED, **filters.rows) if len(producers) else ():
        counts.update(_counted(batch.filter(_has_records(run, batch, named))["producer_id"]))
    for producer_ids in _groups({p: counts[p] for p in producers.to_pylist() if counts[p]}, named.record_counts):
        rows = pa.Table.from_batches(ended_rows(run, wanted.outcome, **filters.places, producer_id=producer_ids))
        yield from _explained(run, rows.filter(_has_records(run, rows, named)).combine_chunks())


def _before_records(
    run: PastRun, filters: Filters, wanted: EndedFilters, named: NamedProducers
) -> Iterator[pa.RecordBatch]:
    """The rows that no record explains, of producers whose transactional id is wanted."""
    ids = named.first_ids.to_pylist()
    is_id = pa.array([filters.has_id(name) for name in ids], pa.bool_())
    for batch in ended_rows(run, wanted.outcome, **filters.rows):
        place = pc.index_in(batch["producer_id"], named.producer_ids)
        is_wanted = pc.fill_null(is_id.take(place), filters.has_id(None))
        yield batch.filter(pc.and_not(is_wanted, _has_records(run, batch, named)))


def _has_records(run: PastRun, rows: pa.RecordBatch | pa.Table, named: NamedProducers) -> pa.Array:
    """Whether the ids of each row's producer have records old enough to explain its end; see `ending_of`."""
    first_ms = named.first_ms.take(pc.index_in(rows["producer_id"], named.producer_ids))
    since_ms = pc.subtract(first_ms, explains_before_ms(run.settings.max_clock_skew_ms))
    return pc.fill_null(pc.greater_equal(rows["end_timestamp_ms"], since_ms), fill_value=False)


def _explained_of(run: PastRun, rows: pa.Table | None, records: Mapping[int, int] | None = None) -> Iterator[Ended]:
    """Some ended transactions at hand, with their causes; `records` is what `record_counts` says, where it is known."""
    if rows is None:
        return
    counts = _counted(rows["producer_id"])
    for producer_ids in _groups(counts, record_counts(run, counts) if records is None else records):
        is_theirs = pc.is_in(rows["producer_id"], pa.array(producer_ids, pa.int64()))
        yield from _explained(run, rows.filter(is_theirs).combine_chunks())


def _counted(producer_ids: pa.Array) -> Counter[int]:
    counts = producer_ids.value_counts()
    return Counter(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


def _groups(ended: Mapping[int, int], records: Mapping[int, int]) -> Iterator[list[int]]:
    """Producer ids, as many at a time as their transactions and the coordinator's records of them can be held of."""
    group: list[int] = []
    number = 0
    for producer_id in sorted(ended):
        own = ended[producer_id] // _ROWS_OF_A_RECORD + records.get(producer_id, 0)
        if group and number + own > _RECORDS_AT_ONCE:
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
