"""The audit of histories in memory: fold, link, look at the coordinator, judge, plan."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.advise.abort_plan import AbortRecord, abort_plan
from txn_analysis.core.history import by, named_in
from txn_analysis.ingest.sections import SNAPSHOT, STATE, STATED_OF_PARTITION
from txn_analysis.judge.coordinator_view import Views, views_of
from txn_analysis.judge.finding import Finding, finding_of, impacts_of, place_of
from txn_analysis.judge.judgement import Judgement, judgements_of
from txn_analysis.judge.records import OpenTransaction, PartitionView
from txn_analysis.judge.state_coverage import StateEvidence, state_evidence_of
from txn_analysis.judge.state_sections import console_sections, sections_of, sums_of
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.reconstruct.copies import Comparison, Pair, compare, pairs_to_compare
from txn_analysis.reconstruct.fold import fold_all
from txn_analysis.reconstruct.link import link_partition
from txn_analysis.reconstruct.segments import segments_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.core.history import History
    from txn_analysis.ingest.batches import Batches
    from txn_analysis.judge.records import StateRecord

Row = dict[str, Any]

_RUN = "in-memory"


@dataclass(frozen=True)
class Answer:
    """What an audit says of one history.

    Attributes:
        judgements: one for each open transaction, by partition, start and producer id.
        findings: the same as rows of the table `findings`; in memory every run has one name.
        plan: the abort markers that are recommended.
        health: rows of `partition_health`.
        state: what was seen of `__transaction_state`.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
    """

    judgements: tuple[Judgement, ...]
    findings: tuple[Finding, ...]
    plan: tuple[AbortRecord, ...]
    health: tuple[Row, ...]
    state: StateEvidence
    as_of_ms: int | None

    @property
    def hanging(self) -> tuple[Finding, ...]:
        """The findings that an abort marker would repair."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.HANGING)


def answer_of(history: History) -> Answer:
    """Findings and plan of one history."""
    return answers_of([history])[0]


def answers_of(histories: Sequence[History]) -> list[Answer]:
    """The same of many; all their logs are folded in one go."""
    return [_answer(history, pieces) for history, pieces in zip(histories, _pieces(histories), strict=True)]


def _pieces(histories: Sequence[History]) -> list[list[Row]]:
    """Of each history the rows of `log_pieces`, cut where its copies and snapshots are compared."""
    parts = [(n, part) for n, history in enumerate(histories) for part in _parts(history)]
    found: list[list[Row]] = [[] for _ in histories]
    if parts:
        cuts = [histories[n].cuts.get(part.section, ()) for n, part in parts]
        folded = fold_all([part for _, part in parts], cuts)
        for part, piece in zip(folded.part.tolist(), folded.pieces.to_pylist(), strict=True):
            found[parts[part][0]].append(piece)
    return found


def _parts(history: History) -> Iterable[Batches]:
    return (part for part in history.batches if len(part))


def _answer(history: History, pieces: list[Row]) -> Answer:
    settings, as_of_ms = history.settings, _as_of_ms(history, pieces)
    opened, health = _linked(history, pieces, as_of_ms)
    state = _state(history, pieces, health)
    views = _views(history, opened)
    partitions = {view.topic_partition: view for view in map(PartitionView.of, health)}
    judged = judgements_of(opened, partitions, views, state, settings, as_of_ms)
    impacts = impacts_of(judged, {}, settings, as_of_ms)
    findings = tuple(_finding(judgement, impacts) for judgement in judged)
    plan = abort_plan([f.row() for f in findings if f.verdict is Verdict.HANGING], settings, as_of_ms)
    return Answer(tuple(judged), findings, plan, tuple(health), state, as_of_ms)


def _finding(judgement: Judgement, impacts: Any) -> Finding:
    where, producer_id, start = place = place_of(judgement)
    return finding_of(judgement, _RUN, f"{where}/{producer_id}/{start}", impacts.get(place))


def _as_of_ms(history: History, pieces: Iterable[Row]) -> int | None:
    """When the files were copied, or else the newest moment that a broker's clock wrote in the judged capture."""
    if history.settings.as_of_ms is not None:
        return history.settings.as_of_ms
    own = {s["input_id"] for s in history.sections if not s["capture_rank"]}
    moments = [piece["max_moment_ms"] for piece in pieces if piece["input_id"] in own]
    clocks = ("last_update_ms", "recorded_ms")
    moments += [row[clock] for row in history.records if not row["capture_rank"] for clock in clocks]
    return max((ms for ms in moments if ms is not None), default=None)


def _linked(history: History, pieces: Iterable[Row], as_of_ms: int | None) -> tuple[list[OpenTransaction], list[Row]]:
    """The open transactions, and rows of `partition_health`."""
    opened, health = [], []
    pieces_at, snapshots_at = by(pieces, "topic", "partition"), by(history.snapshots, "topic", "partition")
    for where, sections in sorted(history.linkable().items()):
        own, place = pieces_at.get(where, []), {"topic": where[0], "partition": where[1]}
        compared = _comparisons(history, sections, own)
        linked = link_partition(sections, own, snapshots_at.get(where, []), compared, as_of_ms)
        health.append(linked.health | place)
        opened += [OpenTransaction.of(row | place) for row in linked.transactions if row["outcome"] == "open"]
    return sorted(opened, key=lambda t: (t.topic_partition, t.txn_start_offset, t.producer_id)), health


def _comparisons(history: History, sections: Iterable[Row], pieces: list[Row]) -> dict[Pair, Comparison]:
    """Of all copies of one partition that differ somewhere, how."""
    logs = [s for s in sections if s["kind"] != SNAPSHOT and s["kind"] not in STATED_OF_PARTITION]
    if len(logs) < 2:
        return {}
    pairs = pairs_to_compare(segments_of(logs, pieces))
    return {pair: compare(*[_batches_between(history, key, pair) for key in (pair.a, pair.b)]) for pair in pairs}


def _batches_between(history: History, section: tuple[str, int], pair: Pair) -> pa.Table:
    """The batches of one section that begin where two copies differ."""
    found = pa.Table.from_batches([part.rows() for part in _parts(history) if part.section == section])
    base = found["base_offset"]
    return found.filter(pc.and_(pc.greater_equal(base, pair.start), pc.less(base, pair.stop)))


def _state(history: History, pieces: Iterable[Row], health: list[Row]) -> StateEvidence:
    """As `judge.coordinator.state_evidence` on Spark."""
    sums = sums_of(history.section_records())
    ended = {p["producer_id"] for piece in pieces for p in piece["producers"] if p["marker_offset"] is not None}
    is_known = any(not ended.isdisjoint(named_in(row)) for row in history.records)
    return state_evidence_of(
        history.settings.transaction_state_partitions,
        sections_of(sums.files, [s for s in history.known_sections if s["kind"] == STATE and not s["capture_rank"]]),
        console_sections(sums.console),
        health,
        is_foreign=bool(ended) and not is_known,
        cluster_ids=history.cluster_ids,
    )


def _views(history: History, opened: Sequence[OpenTransaction]) -> Views:
    """As `judge.coordinator.coordinator_views` on Spark: of each producer id, the ids that have, or had, it."""
    of_producer: defaultdict[int, list[OpenTransaction]] = defaultdict(list)
    for transaction in opened:
        of_producer[transaction.producer_id].append(transaction)
    histories = history.histories(of_producer.keys())
    views: Views = {}
    for producer_id, transactions in of_producer.items():
        had = {name: found for name, found in histories.items() if _had(found, producer_id)}
        views |= views_of(had, transactions, history.settings.max_clock_skew_ms)
    return views


def _had(records: Iterable[StateRecord], producer_id: int) -> bool:
    return any(record.names(producer_id) for record in records)
