"""Explain: everything that one run knows of some of its transactions, brought together from the tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from txn_analysis.errors import ConfigError
from txn_analysis.filters import where_place, where_producer
from txn_analysis.frames import collected
from txn_analysis.judge.finding import place_of
from txn_analysis.judge.history import in_order
from txn_analysis.judge.records import OpenTransaction, StateRecord
from txn_analysis.judge.rules import asked
from txn_analysis.judge.state_frames import histories
from txn_analysis.judge.timeline import timeline
from txn_analysis.judging import judgements
from txn_analysis.report.explanation import Explanation
from txn_analysis.tables import LOG_BATCHES, TRANSACTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from txn_analysis.filters import Filters
    from txn_analysis.judge.judgement import Judgement
    from txn_analysis.run import Run

Row = dict[str, Any]

MOST_EXPLAINED = 20
_OWN_BATCHES = 3
_MARKERS = 2
_RECORDS_BEFORE, _RECORDS_AFTER, _LAST_RECORDS = 4, 6, 3
_SHOWN = (
    "base_offset",
    "last_offset",
    "record_count",
    "producer_id",
    "producer_epoch",
    "is_control",
    "marker",
    "coordinator_epoch",
    "max_timestamp_ms",
    "timestamp_type",
)


def explain(run: Run, filters: Filters, start_offset: int | None = None) -> list[Explanation]:
    """Each open transaction of a finished run that is wanted, explained.

    Args:
        run: whose evidence counts.
        filters: which partitions and producers are wanted.
        start_offset: of the one that is wanted; None asks for all.

    Raises:
        ConfigError: none fits, or too many to read.
    """
    rows = where_producer(where_place(run.rows(TRANSACTIONS).where("outcome = 'open'"), filters), filters)
    if start_offset is not None:
        rows = rows.where(F.col("txn_start_offset") == start_offset)
    opened = collected(rows.limit(MOST_EXPLAINED + 1))
    if not opened:
        raise ConfigError("no open transaction of this run fits; the verb `report` lists them")
    if len(opened) > MOST_EXPLAINED:
        raise ConfigError(f"more than {MOST_EXPLAINED} open transactions fit; say more with --topic, --partition, ...")
    health, states = run.health(), run.states().persist()
    # What the operator gave their word for can be disproved by any other transaction: all of them are judged.
    every = collected(run.rows(TRANSACTIONS).where("outcome = 'open'"))
    _, judged = judgements(run, every, health, states)
    wanted = {OpenTransaction.of(row) for row in opened}
    records = histories(run.warehouse.rows(opened, TRANSACTIONS), states).persist()
    asked_about = sorted((j for j in judged.of_open if j.opened in wanted), key=_in_order)
    explained = [_explanation(run, judgement, records) for judgement in asked_about]
    records.unpersist()
    states.unpersist()
    return explained


def _in_order(judgement: Judgement) -> tuple[Any, ...]:
    where, _, start = place_of(judgement)
    return where, start


def _explanation(run: Run, judgement: Judgement, records: DataFrame) -> Explanation:
    opened, facts = judgement.opened, judgement.facts
    transactional_id = None if facts.coordinator is None else facts.coordinator.transactional_id
    batches = _batches(run, opened)
    events = timeline(batches, _records_around(opened, transactional_id, records), opened.producer_id)
    return Explanation.model_validate(
        {
            "run_id": run.run_id,
            "topic": opened.topic,
            "partition": opened.partition,
            "producer_id": opened.producer_id,
            "txn_start_offset": opened.txn_start_offset,
            "transactional_id": transactional_id,
            "verdict": judgement.rule.verdict,
            "rule": judgement.rule.name,
            "cause": asdict(judgement.cause),
            "events": events,
            "rules": [
                {"rule": rule.name, "verdict": rule.verdict, "has_fired": holds, "reason": because}
                for rule, holds, because in asked(facts)
            ],
            "would_change": judgement.rule.would_change_in(facts),
            "are_batches_kept": bool(batches),
        }
    )


def _batches(run: Run, opened: OpenTransaction) -> list[Row]:
    """The first and last batches of the transaction, its producer's marker before it, and the markers around it."""
    place = (F.col("topic") == opened.topic) & (F.col("partition") == opened.partition)
    # Copies and captures hold the same batch; of each place in the log one is enough to be read.
    batches = run.evidence.of(LOG_BATCHES).where(place).select(*_SHOWN).dropDuplicates(["base_offset"])
    start, last = opened.txn_start_offset, opened.last_offset
    is_own = F.col("producer_id") == opened.producer_id
    own = batches.where(is_own & ~F.col("is_control") & (F.col("base_offset") >= start))
    markers = batches.where("is_control")
    before, after = markers.where(F.col("base_offset") < start), markers.where(F.col("base_offset") > F.lit(last))
    parts = (
        own.orderBy("base_offset").limit(_OWN_BATCHES),
        own.orderBy(F.desc("base_offset")).limit(_OWN_BATCHES),
        before.where(is_own).orderBy(F.desc("base_offset")).limit(1),
        before.orderBy(F.desc("base_offset")).limit(_MARKERS),
        after.orderBy("base_offset").limit(_MARKERS),
    )
    found = parts[0]
    for part in parts[1:]:
        found = found.unionByName(part)
    return collected(found.dropDuplicates(["base_offset"]))


def _records_around(opened: OpenTransaction, transactional_id: str | None, records: DataFrame) -> list[StateRecord]:
    """The coordinator's records before and after the data was appended, and its last ones."""
    is_of_id = F.col("transactional_id") == transactional_id
    of_id = records.where((F.col("asked_producer_id") == opened.producer_id) & is_of_id)
    moments = (opened.first_appended_before_ms, opened.appended_before_ms, opened.last_marker_ms)
    pivot_ms = next((ms for ms in moments if ms is not None), None)
    moment = F.greatest("recorded_ms", "last_update_ms")
    newest = F.desc("record_order")
    parts = [of_id.orderBy(newest).limit(_LAST_RECORDS)]
    if pivot_ms is not None:
        pivot = F.lit(pivot_ms)
        parts.append(of_id.where(moment <= pivot).orderBy(newest).limit(_RECORDS_BEFORE))
        parts.append(of_id.where(moment > pivot).orderBy("record_order").limit(_RECORDS_AFTER))
    return in_order(StateRecord.placed(found) for part in parts for found in collected(part))
