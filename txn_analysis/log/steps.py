"""The steps of linking, as an engine runs them: from pieces of logs to what is open, and to the health of partitions.

batches of sections that must be cut --> their pieces anew
sections, pieces -- by partition --> pairs of copies that differ; their batches -- by pair --> how they differ
sections, pieces, snapshots -- by partition --> health, transactions
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import NONE, Array, Columns, equal_runs, is_in, names_in, numbers
from txn_analysis.columns.records import batch_of, fields_of, records_of
from txn_analysis.columns.values import BatchFunction, GroupFunction, rows_of_kinds, rows_of_values, schema_of_kinds
from txn_analysis.kafka.names import LOG_KINDS, TOPIC_ID
from txn_analysis.log.copies import COMPARED_COLUMNS, Comparison, Pair, compare, pairs_to_compare
from txn_analysis.log.partition_health import with_producers
from txn_analysis.log.rebuild import PartitionEvidence, rebuild_producer_state
from txn_analysis.log.segments import Cuts, SectionKey, proves_nothing, segments_of
from txn_analysis.log.snapshots import STATED
from txn_analysis.log.summarize import SUMMARIZED_COLUMNS, summarize_parts
from txn_analysis.log.transactions import LINKED_SCHEMA, ended_in_linking, open_in_linking
from txn_analysis.tables import (
    ENDED_TRANSACTIONS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    BatchRangeSummary,
    PartitionHealth,
    UsedBatchRange,
)
from txn_analysis.tables.batches import batches_of
from txn_analysis.tables.inputs import InputSection
from txn_analysis.tables.schema import AUDIT, by_audit, given_schema

SNAPSHOT_COLUMNS = ("topic", "partition", "input_id", "section_index", *names_in(STATED))
BATCH_COLUMNS = tuple(dict.fromkeys((*SUMMARIZED_COLUMNS, *COMPARED_COLUMNS)))
SECTIONS = pa.schema([AUDIT, *((name, field.type) for name, field in fields_of(InputSection).items())])
PIECES = given_schema(LOG_PIECES, *LOG_PIECES.names)
BATCHES = given_schema(LOG_BATCHES, *BATCH_COLUMNS)
HEALTH = pa.schema([AUDIT, *(field for field in PARTITION_HEALTH.arrow_schema if field.name != "run_id")])
"""One row is one partition."""
LINKED = pa.schema([AUDIT, *LINKED_SCHEMA])
"""One row is one transaction that is open, or spans pieces, or ended in a section that had to be cut."""
RANGES = pa.schema([*given_schema(ENDED_TRANSACTIONS, *UsedBatchRange._fields), ("is_cut", pa.bool_())])
"""One row is one batch range that a log was linked from; `is_cut` is that of a section that had to be cut."""
PRODUCERS = pa.schema([("producer_id", pa.int64())])
"""One row is one producer id that some pieces name."""
LINKED_LOGS = schema_of_kinds(health=HEALTH, opened=LINKED, ended=LINKED, ranges=RANGES, producers=PRODUCERS)
"""What `link_step` makes."""
SUMMARIZED_AGAIN = schema_of_kinds(pieces=PIECES, ended=LINKED)
"""What `summarize_again` makes."""
SIDES = pa.schema([AUDIT, ("pair", pa.int32()), ("is_a", pa.bool_()), *(BATCHES.field(n) for n in COMPARED_COLUMNS)])
"""One row is a batch of one of two copies that differ."""

_Place = tuple[int, str, int]
_PARTITION = ("audit", "topic", "partition")
_SECTION = ("audit", "input_id", "section_index")


@dataclass(frozen=True)
class Linking:
    """What the partitions of one audit are linked with.

    Attributes:
        as_of_ms: the moment of the capture; None if no broker's clock speaks.
        cut: the sections that had to be cut.
        comparisons: of the pairs of copies that differ, how.
    """

    as_of_ms: int | None
    cut: frozenset[SectionKey]
    comparisons: Mapping[Pair, Comparison]


def section_rows(sections: Mapping[int, Iterable[InputSection]]) -> pa.Table:
    """Rows of `SECTIONS`, of the sections of each audit."""
    rows = [section._asdict() | {"audit": audit} for audit, of_audit in sections.items() for section in of_audit]
    return pa.Table.from_pylist(rows, SECTIONS)


def summarize_again(cuts: Mapping[int, Mapping[SectionKey, Cuts]]) -> BatchFunction:
    """Of rows of `BATCHES` those of sections that must be cut, as rows of `SUMMARIZED_AGAIN`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            parts = [
                (audit, part)
                for audit, batches_of_audit in by_audit(pa.Table.from_batches([rows])).items()
                for part in batches_of(batches_of_audit.select([*SUMMARIZED_COLUMNS]).combine_chunks().to_batches()[0])
                if part.section in cuts.get(audit, ())
            ]
            if parts:
                summaries = summarize_parts(
                    [part for _, part in parts], [cuts[audit][part.section] for audit, part in parts]
                )
                audits = pa.array([audit for audit, _ in parts], AUDIT.type)
                pieces = _placed(summaries.pieces, audits.take(pa.array(summaries.part)), PIECES)
                ended = _placed(summaries.transactions, audits.take(pa.array(summaries.part_of_transaction)), LINKED)
                yield from rows_of_kinds(SUMMARIZED_AGAIN, pieces=pieces, ended=ended).to_batches()

    return run


def _placed(rows: pa.RecordBatch, audits: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([audits, *(rows[name] for name in schema.names[1:])], schema=schema)


def without(cuts: Mapping[int, Mapping[SectionKey, Cuts]]) -> BatchFunction:
    """Of rows of `PIECES` those of sections that need no cut."""
    cut = {(audit, *key) for audit, of_audit in cuts.items() for key in of_audit}
    return lambda batches: (rows.filter(pa.array(~is_in(rows, _SECTION, cut))) for rows in batches)


def of_partitions(wanted: Collection[tuple[int, str, int]]) -> BatchFunction:
    """Of rows that have audit, topic and partition those of some."""
    return lambda batches: (rows.filter(pa.array(is_in(rows, _PARTITION, wanted))) for rows in batches)


def pairs_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By audit, topic and partition, of `sections` and `pieces`. Values: audit and `Pair` of copies that differ."""
    sections, pieces = (
        _by_partition(tables["sections"], InputSection),
        _by_partition(tables["pieces"], BatchRangeSummary),
    )
    logs = {key: [s for s in of_place if s.kind in {*LOG_KINDS, TOPIC_ID}] for key, of_place in sections.items()}
    pairs = [
        (key[0], pair)
        for key, of_place in logs.items()
        for pair in pairs_to_compare(segments_of(of_place, pieces.get(key, [])))
    ]
    return rows_of_values(*pairs)


def sides_of(pairs: Sequence[tuple[int, Pair]]) -> BatchFunction:
    """Of rows of `BATCHES` those that begin where copies differ, as rows of `SIDES`; `pair` is the place of a pair."""
    wanted: defaultdict[tuple[Any, ...], list[tuple[int, bool, Pair]]] = defaultdict(list)
    for number, (audit, pair) in enumerate(pairs):
        wanted[audit, *pair.a].append((number, True, pair))
        wanted[audit, *pair.b].append((number, False, pair))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            for start, stop in equal_runs(rows, _SECTION):
                for number, is_a, pair in wanted.get(tuple(rows[name][start].as_py() for name in _SECTION), ()):
                    side = rows.slice(start, stop - start)
                    base = side["base_offset"]
                    side = side.filter(pc.and_(pc.greater_equal(base, pair.start), pc.less(base, pair.stop)))
                    alike = [
                        pa.repeat(pa.scalar(v, t), len(side)) for v, t in ((number, pa.int32()), (is_a, pa.bool_()))
                    ]
                    columns = [side["audit"], *alike, *(side[name] for name in COMPARED_COLUMNS)]
                    yield pa.RecordBatch.from_arrays(columns, schema=SIDES)

    return run


def compare_step(tables: Mapping[str, pa.Table]) -> pa.Table:
    """By audit and pair, of `sides`. Values: the place of a pair, and its `Comparison`."""
    rows = tables["sides"].sort_by("pair")
    comparisons = []
    for start, stop in equal_runs(rows, ("pair",)) if len(rows) else ():
        both = rows.slice(start, stop - start)
        a, b = both.filter(both["is_a"]), both.filter(pc.invert(both["is_a"]))
        comparisons.append((both["pair"][0].as_py(), compare(a, b)))
    return rows_of_values(*comparisons)


def link_step(linkings: Mapping[int, Linking]) -> GroupFunction:
    """By audit, topic and partition, of `sections`, `pieces` and `snapshots`: rows of `LINKED_LOGS`."""

    def run(tables: Mapping[str, pa.Table]) -> pa.Table:
        pieces, stated = _by_partition(tables["pieces"], BatchRangeSummary), _stated(tables["snapshots"])
        known = {
            key: PartitionEvidence(
                sections, pieces.get(key, []), stated.get(key, {}), given.comparisons, given.as_of_ms
            )
            for key, sections in _by_partition(tables["sections"], InputSection).items()
            for given in (linkings[key[0]],)
            if not all(proves_nothing(s) for s in sections)  # a checkpoint names it, its files are not here
        }
        rebuilt = [rebuild_producer_state(evidence) for evidence in known.values()]
        health, ranges, is_cut = list[tuple[int, Any]](), list[tuple[int, Any]](), list[bool]()
        for (audit, *_), linked in zip(known, rebuilt, strict=True):
            cut = linkings[audit].cut
            whole = tuple(each for each in linked.used if each.section not in cut)
            health.append((audit, linked.health._replace(linked_pieces=whole)))
            ranges += [(audit, each) for each in linked.used]
            is_cut += [each.section in cut for each in linked.used]
        gaps = [reasons for linked in rebuilt for reasons in linked.evidence_gaps]
        placed = partial(_placed_rows, [*known])
        return rows_of_kinds(
            LINKED_LOGS,
            health=with_producers(_audited(PartitionHealth, health, HEALTH), [linked.producers for linked in rebuilt]),
            opened=pa.Table.from_batches(
                placed([r.opened for r in rebuilt], partial(open_in_linking, evidence_gaps=gaps)), LINKED
            ),
            ended=pa.Table.from_batches(placed([r.ended for r in rebuilt], ended_in_linking), LINKED),
            ranges=_audited(UsedBatchRange, ranges, RANGES.remove(len(RANGES) - 1)).append_column(
                RANGES.field("is_cut"), pa.array(is_cut, pa.bool_())
            ),
            producers=producers_of(tables["pieces"]),
        )

    return run


def producers_of(pieces: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `PRODUCERS`, each once: of all batches of pieces, whichever of these a log is put together from."""
    producers = pa.chunked_array(pieces["producers"])
    named = pc.struct_field(pc.list_flatten(producers), "producer_id").unique()
    return pa.RecordBatch.from_arrays([named], schema=PRODUCERS)


def _placed_rows(
    partitions: Sequence[_Place],
    parts: Sequence[Columns],
    rows_in: Callable[[Mapping[str, pa.Array], Columns], pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Columns of each of some partitions, if it has any, as rows of LINKED.

    `rows_in` makes rows of columns, and of where each row lies.
    """
    counts = [len(next(iter(part.values()), ())) for part in parts]
    if any(counts):
        has_rows = [part for part in parts if part]
        columns = {name: np.concatenate([part[name] for part in has_rows]) for name in has_rows[0]}
        number = pa.array(np.repeat(np.arange(len(parts)), counts))
        place = {
            name: pa.array(values, LINKED.field(name).type).take(number)
            for name, values in zip(_PARTITION, zip(*partitions, strict=True), strict=True)
        }
        yield pa.RecordBatch.from_arrays([place["audit"], *rows_in(place, columns).columns], schema=LINKED)


def _audited(kind: type[Any], records: list[tuple[int, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Records, each with the number of its audit, as rows."""
    columns = batch_of(kind, [record for _, record in records], schema.remove(0))
    audits = pa.array([audit for audit, _ in records], AUDIT.type)
    return pa.RecordBatch.from_arrays([audits, *columns.columns], schema=schema)


def _stated(rows: pa.Table) -> dict[_Place, dict[SectionKey, Array]]:
    """What snapshots, and answers to DescribeProducers, state: by audit, topic and partition, and by their sections."""
    columns = np.empty(len(rows), STATED)
    for name in names_in(STATED):
        columns[name] = numbers(rows[name], NONE)
    of_places: defaultdict[_Place, dict[SectionKey, Array]] = defaultdict(dict)
    for start, stop in equal_runs(rows, (*_PARTITION, *_SECTION[1:])) if len(rows) else ():
        *place, input_id, section_index = (rows[name][start].as_py() for name in (*_PARTITION, *_SECTION[1:]))
        of_place, key = of_places[tuple(place)], (input_id, section_index)
        of_place[key] = np.concatenate([of_place.get(key, columns[:0]), columns[start:stop]])
    return dict(of_places)


def _by_partition(rows: pa.Table, kind: type[Any]) -> dict[tuple[int, str, int], list[Any]]:
    """The rows as records, by audit, topic and partition."""
    records: defaultdict[tuple[int, str, int], list[Any]] = defaultdict(list)
    for audit, record in zip(rows["audit"].to_pylist(), records_of(kind, rows), strict=True):
        records[audit, record.topic, record.partition].append(record)
    return dict(records)
