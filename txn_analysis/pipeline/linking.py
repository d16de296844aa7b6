"""Reconstruct: the logs of partitions, linked step by step on whichever engine there is, and their tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import ABSENT, Array, numbers, tuples_of
from txn_analysis.columns.records import records_of
from txn_analysis.columns.values import VALUES, values_in
from txn_analysis.coordinator.marker_columns import (
    BATCH_RANGES,
    ENDED_COLUMNS,
    MARKERS,
    MARKERS_IN_RANGES,
    markers_in_ranges,
    markers_of_cut_sections,
    markers_of_ended,
    markers_of_health,
)
from txn_analysis.coordinator.steps import OPENED, in_place_order
from txn_analysis.engine.engine import Engine
from txn_analysis.log.copies import Comparison, Pair
from txn_analysis.log.steps import (
    BATCH_COLUMNS,
    LINKED_LOGS,
    PIECES,
    PRODUCERS,
    SIDES,
    SNAPSHOT_COLUMNS,
    SUMMARIZED_AGAIN,
    Linking,
    compare_step,
    link_step,
    of_partitions,
    pairs_step,
    producers_of,
    section_rows,
    sides_of,
    summarize_again,
    without,
)
from txn_analysis.log.transactions import BATCH_RANGE_KEY, ended_by_run
from txn_analysis.pipeline.run import Audit, Given, Run
from txn_analysis.runs.past_run import JUDGED_BY
from txn_analysis.spark.jobs import described, in_parallel
from txn_analysis.tables import (
    ENDED_TRANSACTIONS,
    LOG_BATCHES,
    LOG_PIECES,
    PARTITION_HEALTH,
    PRODUCER_SNAPSHOTS,
    TRANSACTIONS,
    PartitionHealth,
    UsedBatchRange,
)
from txn_analysis.tables.schema import ONLY, by_audit, given_schema, rows_of_run, with_audit
from txn_analysis.tables.transactions import OPEN
from txn_analysis.text import count

_BARE = given_schema(PARTITION_HEALTH, "topic", "partition", "bare_markers")
_ENDED = given_schema(ENDED_TRANSACTIONS, *ENDED_COLUMNS)


class Logs(NamedTuple):
    """What judging asks of linked logs, whether they have just been linked or were read back.

    Attributes:
        opened: rows of `OPENED`: all that is open, sorted by audit, partition and start.
        health: by audit, what is known of each partition, as far as the columns of `JUDGED_BY`.
        producers: the producer ids of all batches, of open transactions, and of end markers, in order.
        end_markers: rows of `MARKERS`: every end marker of the logs.
    """

    opened: pa.Table
    health: Mapping[int, list[PartitionHealth]]
    producers: Array
    end_markers: Any


class LinkedLogs(NamedTuple):
    """The logs of some audits, linked.

    Attributes:
        logs: what judging asks of them.
        engine: whose rows the others are.
        linked: rows of `LINKED_LOGS`.
        anew: rows of `SUMMARIZED_AGAIN`; None where nothing had to be cut.
        used: by audit and place, the batch ranges of sections that had to be cut, of which logs were linked.
    """

    logs: Logs
    engine: Engine[Any]
    linked: Any
    anew: Any | None
    used: frozenset[tuple[Any, ...]]

    def write(self, run: Run) -> None:
        """Fill the tables `partition_health`, `transactions` and `ended_transactions` of the run of one audit."""
        engine, run_id = self.engine, run.run_id
        used = frozenset(key[1:] for key in self.used)
        health, opened = (engine.of_kind(self.linked, kind) for kind in ("health", "opened"))
        linked_and_cut = [rows for rows in (self.linked, self.anew) if rows is not None]
        ended = engine.together(*(engine.of_kind(rows, "ended") for rows in linked_and_cut))
        health_of_run = partial(map, rows_of_run(PARTITION_HEALTH, run_id))
        opened_of_run = partial(map, rows_of_run(TRANSACTIONS, run_id))
        ended_of_run = partial(map, partial(ended_by_run, run_id=run_id, used=used))
        with described("reconstruct: write partition_health, transactions and ended_transactions"):
            in_parallel(
                partial(engine.write, health, health_of_run, PARTITION_HEALTH, run_id=run_id),
                partial(engine.write, opened, opened_of_run, TRANSACTIONS, run_id=run_id),
                partial(engine.write, ended, ended_of_run, ENDED_TRANSACTIONS, ingest_id=run_id),
            )


@contextmanager
def linked_logs(given: Given) -> Iterator[LinkedLogs]:
    """Bring the evidence of each partition together and link it; what was linked is kept meanwhile."""
    engine, audits = given.engine, given.audits
    cuts = {number: audit.cuts for number, audit in audits.items() if audit.cuts}
    with ExitStack() as kept:
        pieces, anew = given.rows(LOG_PIECES, *LOG_PIECES.names), None
        if cuts:
            inputs = sorted({input_id for section_cuts in cuts.values() for input_id, _ in section_cuts})
            batches = given.rows(LOG_BATCHES, *BATCH_COLUMNS, input_id=inputs)
            anew = kept.enter_context(engine.kept(engine.mapped(batches, summarize_again(cuts), SUMMARIZED_AGAIN)))
            whole = engine.mapped(pieces, without(cuts), PIECES)
            pieces = engine.together(whole, engine.of_kind(anew, "pieces"))
        compared = _comparisons(given, pieces)
        linkings = {
            number: Linking(audit.moments.as_of_ms, frozenset(audit.cuts), compared.get(number, {}))
            for number, audit in audits.items()
        }
        linked = engine.grouped(
            ["audit", "topic", "partition"],
            link_step(linkings),
            LINKED_LOGS,
            _size_bytes(audits),
            sections=engine.made(section_rows({number: audit.log_sections for number, audit in audits.items()})),
            pieces=pieces,
            snapshots=given.rows(PRODUCER_SNAPSHOTS, *SNAPSHOT_COLUMNS),
        )
        yield _collected_logs(given, kept.enter_context(engine.kept(linked)), anew)


def _collected_logs(given: Given, linked: Any, anew: Any | None) -> LinkedLogs:
    """Links; the driver gets as many rows as there are partitions, ranges of text, and open transactions."""
    engine = given.engine
    places = {(s.topic, s.partition) for audit in given.audits.values() for s in audit.log_sections}
    with described(f"reconstruct: replay {count(len(places), 'partition')}"):
        of_partitions = engine.collected(engine.of_kind(linked, "health", "audit", *JUDGED_BY))
    with described("reconstruct: collect what is open, and which batch ranges and producer ids the logs have"):
        opened, ranges, producers = in_parallel(
            partial(engine.collected, engine.of_kind(linked, "opened", *OPENED.names)),
            partial(engine.collected, engine.of_kind(linked, "ranges")),
            partial(engine.collected, engine.of_kind(linked, "producers")),
        )
    health = {n: records_of(PartitionHealth, of_audit) for n, of_audit in by_audit(of_partitions).items()}
    used = frozenset(tuples_of(ranges.filter(ranges["is_cut"]), ("audit", *BATCH_RANGE_KEY)))
    whole = ranges.filter(pc.invert(ranges["is_cut"])).select(BATCH_RANGES.names).cast(BATCH_RANGES)
    markers = [
        markers_in_logs(given, whole),
        engine.mapped(engine.of_kind(linked, "ended", *_ENDED.names), partial(map, markers_of_ended), MARKERS),
        engine.mapped(engine.of_kind(linked, "health", *_BARE.names), partial(map, markers_of_health), MARKERS),
    ]
    if anew is not None:
        markers.append(engine.mapped(engine.of_kind(anew, "ended"), markers_of_cut_sections(used), MARKERS))
    opened = in_place_order(opened.cast(OPENED))
    logs = Logs(opened, health, _producers(producers, opened), engine.together(*markers))
    return LinkedLogs(logs, engine, linked, anew, used)


def _size_bytes(audits: Mapping[int, Audit]) -> dict[tuple[int, str, int], int]:
    """How much text the log of each partition of each audit was read from."""
    sizes = defaultdict[tuple[int, str, int], int](int)
    for number, audit in audits.items():
        for section in audit.log_sections:
            sizes[number, section.topic, section.partition] += section.text_end_bytes - section.text_start_bytes
    return sizes


def _comparisons(given: Given, pieces: Any) -> dict[int, dict[Pair, Comparison]]:
    """Of all copies that differ somewhere, how; as many as there are such stretches of files."""
    engine, audits = given.engine, given.audits
    places = {(number, *place) for number, audit in audits.items() for place in audit.overlapping}
    if not places:
        return {}
    sections = {n: [s for s in one.log_sections if (n, s.topic, s.partition) in places] for n, one in audits.items()}
    pair_rows = engine.grouped(
        ["audit", "topic", "partition"],
        pairs_step,
        VALUES,
        sections=engine.made(section_rows(sections)),
        pieces=engine.mapped(pieces, of_partitions(places), PIECES),
    )
    with described("reconstruct: pair the copies of partitions"):
        pairs: list[tuple[int, Pair]] = list(values_in(engine.collected(pair_rows)))
    if not pairs:
        return {}
    inputs = sorted({input_id for _, pair in pairs for input_id, _ in (pair.a, pair.b)})
    sides = engine.mapped(given.rows(LOG_BATCHES, *BATCH_COLUMNS, input_id=inputs), sides_of(pairs), SIDES)
    compared: defaultdict[int, dict[Pair, Comparison]] = defaultdict(dict)
    with described(f"reconstruct: compare {count(len(pairs), 'pair')} of copies"):
        differing = engine.collected(engine.grouped(["audit", "pair"], compare_step, VALUES, sides=sides))
    for number, comparison in values_in(differing):
        audit_number, pair = pairs[number]
        compared[audit_number][pair] = comparison
    return compared


def _producers(rows: pa.Table, opened: pa.Table) -> Array:
    columns = [numbers(rows_of["producer_id"], ABSENT) for rows_of in (rows, opened)]
    producer_ids = np.unique(np.concatenate(columns))
    producers: Array = producer_ids[producer_ids != ABSENT]
    return producers


def markers_in_logs(given: Given, ranges: pa.Table) -> Any:
    """The end markers of transactions that ended in some batch ranges."""
    ended = given.candidates(ENDED_TRANSACTIONS, *ENDED_COLUMNS, *UsedBatchRange._fields)
    markers = given.engine.mapped(ended, markers_in_ranges, MARKERS_IN_RANGES)
    return given.engine.matched(markers, ranges, BATCH_RANGES.names, MARKERS)


def written_logs(run: Run) -> Logs:
    """The logs of a run as an earlier command has written them."""
    engine = run.engine
    opened_rows = map(with_audit(OPENED), run.batches(TRANSACTIONS, *OPENED.names[1:], outcome=[OPEN]))
    opened = in_place_order(pa.Table.from_batches(opened_rows, OPENED))
    named = engine.mapped(run.rows(LOG_PIECES, "producers"), lambda batches: map(producers_of, batches), PRODUCERS)
    with described("judge: collect the producer ids of the logs"):
        producers = _producers(engine.collected(named), opened)
    ranges = pa.Table.from_batches(map(with_audit(BATCH_RANGES), run.linked_pieces.to_batches()), BATCH_RANGES)
    spanning = engine.table(ENDED_TRANSACTIONS, *_ENDED.names[1:], ingest_id=[run.run_id])
    health = engine.table(PARTITION_HEALTH, *_BARE.names[1:], run_id=[run.run_id])
    end_markers = engine.together(
        markers_in_logs(run, ranges),
        engine.mapped(spanning, lambda ended: map(markers_of_ended, map(with_audit(_ENDED), ended)), MARKERS),
        engine.mapped(health, lambda bare: map(markers_of_health, map(with_audit(_BARE), bare)), MARKERS),
    )
    return Logs(opened, {ONLY: run.health()}, producers, end_markers)
