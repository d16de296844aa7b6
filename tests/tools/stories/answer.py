"""What an audit says of histories: their rows go through the very steps of an audit, on either engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.tools.stories.history import History
from txn_analysis.columns.records import records_of
from txn_analysis.coordinator.coverage import StateEvidence
from txn_analysis.engine.engine import Engine
from txn_analysis.engine.in_process import InProcess
from txn_analysis.judge.case import Moments
from txn_analysis.judge.copied import Copied
from txn_analysis.judge.finding import Costs, finding_of, holders_of, place_of
from txn_analysis.judge.judgement import Cases, Disproved, Judge, Judgement
from txn_analysis.log.segments import UNCUT, certain_moment_ms
from txn_analysis.log.summarize import summarize_parts
from txn_analysis.logic import latest
from txn_analysis.pipeline.coordinator_side import coordinator_side, states_of
from txn_analysis.pipeline.judging import judges_of
from txn_analysis.pipeline.linking import LinkedLogs, linked_logs
from txn_analysis.pipeline.run import Audit, Made
from txn_analysis.plan.abort_plan import abort_plan
from txn_analysis.tables import (
    ENDED_TRANSACTIONS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
    AbortRecord,
    Finding,
    Table,
)
from txn_analysis.tables.batches import Batches
from txn_analysis.tables.schema import AUDIT, given_schema
from txn_analysis.verdict import Verdict

Row = dict[str, Any]

_RUN = "in-memory"


@dataclass(frozen=True)
class Answer:
    """What an audit says of one history.

    Attributes:
        judgements: one for each open transaction, by partition, start and producer id.
        findings: what is written of them; in memory every run has one name.
        plan: the abort markers that are recommended.
        health: rows of `partition_health`.
        state: what was seen of `__transaction_state`; None where nothing is open that depends on it.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        disproved: assurances that counted nowhere, and why.
        copied: what manifests prove; None where nothing is open.
    """

    judgements: tuple[Judgement, ...]
    findings: tuple[Finding, ...]
    plan: tuple[AbortRecord, ...]
    health: tuple[Row, ...]
    state: StateEvidence | None
    as_of_ms: int | None
    disproved: Disproved
    copied: Copied | None = None

    @property
    def hanging(self) -> tuple[Finding, ...]:
        """The findings that an abort marker would repair."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.HANGING)


def answer_of(history: History) -> Answer:
    """Findings and plan of one history."""
    return answers_of([history])[0]


def answers_of(histories: Sequence[History], engine: Engine[Any] | None = None) -> list[Answer]:
    """Findings and plans of many histories, which are audited as one."""
    given = GivenHistories.of(histories, engine or InProcess())
    with linked_logs(given) as linked:
        logs = linked.logs
        asked = given.only(logs.opened["audit"].unique().to_pylist())
        with states_of(asked, logs.producers) as states:
            side = coordinator_side(asked, states, logs)
        judges, health = judges_of(asked, side, logs.health), _health_of(linked)
        return [_answer(given.audits[n], health.get(n, ()), judges.get(n)) for n in range(len(histories))]


def _health_of(logs: LinkedLogs) -> dict[int, list[Row]]:
    """Rows of `partition_health` with all of their columns."""
    engine, found = logs.engine, defaultdict(list)
    rows = engine.collected(engine.of_kind(logs.linked, "health")).to_pylist()
    for row in sorted(rows, key=lambda row: (row["topic"], row["partition"])):
        found[row.pop("audit")].append(row)
    return found


def _answer(audit: Audit, health: Iterable[Row], judge: tuple[Judge, Cases] | None) -> Answer:
    as_of_ms, rows = audit.moments.as_of_ms, tuple(health)
    if judge is None:
        return Answer((), (), (), rows, None, as_of_ms, {})
    own, cases = judge
    judged = tuple(own.judged(case for some in cases() for case in some))
    costs = Costs(holders_of(map(place_of, judged), own.partitions), {}, {}, audit.settings, as_of_ms)
    findings = tuple(finding_of(one, _RUN, _name_of(one), costs.of(one)) for one in judged)
    plan = abort_plan(findings, audit.settings, as_of_ms)
    return Answer(judged, findings, plan, rows, own.state, as_of_ms, own.disproved, own.copied)


def _name_of(judgement: Judgement) -> str:
    where, producer_id, start = place_of(judgement)
    return f"{where}/{producer_id}/{start}"


@dataclass(frozen=True)
class GivenHistories:
    """Histories as an ingest leaves them: their logs folded, in one go; the rest as it is. See `Given`."""

    engine: Engine[Any]
    histories: Mapping[int, History]
    audits: Mapping[int, Audit]
    held: Mapping[str, pa.Table]

    @classmethod
    def of(cls, histories: Sequence[History], engine: Engine[Any]) -> GivenHistories:
        """Every history is one audit, with its place as its number."""
        numbered = dict(enumerate(histories))
        pieces, ended = _folded([(n, part) for n, own in numbered.items() for part in own.batches if len(part)])
        moments_ms = _moments_ms(numbered, pieces)
        audits = {
            n: Audit(
                own.settings,
                Moments(
                    moments_ms.get(n) if own.settings.as_of_ms is None else own.settings.as_of_ms, moments_ms.get(n)
                ),
                own.known_sections,
                own.manifests,
                own.is_partial,
            )
            for n, own in numbered.items()
        }
        return cls(engine, numbered, audits, {LOG_PIECES.name: pieces, ENDED_TRANSACTIONS.name: ended})

    def only(self, numbers: Collection[int]) -> GivenHistories:
        """Some of them."""
        wanted = pa.array(sorted(numbers), AUDIT.type)
        held = {name: rows.filter(pc.is_in(rows["audit"], wanted)) for name, rows in self.held.items()}
        histories = {number: self.histories[number] for number in numbers}
        return replace(self, histories=histories, audits={number: self.audits[number] for number in numbers}, held=held)

    def rows(self, table: Table, *names: str, made: Made | None = None, **one_of: Collection[Any]) -> Any:
        """As of `Given`."""
        rows = self.candidates(table, *names, **one_of)
        return rows if made is None else self.engine.mapped(rows, *made)

    def candidates(self, table: Table, *names: str, **one_of: Collection[Any]) -> Any:
        """As of `Given`."""
        schema = given_schema(table, *names)
        if table.name in self.held:
            return self.engine.made(self.held[table.name].select(schema.names).cast(schema))
        if table is LOG_BATCHES:
            return self.engine.made(self._batches(one_of["input_id"]).select(schema.names).cast(schema))
        records = {PRODUCER_SNAPSHOTS.name: "snapshots", TRANSACTION_STATES.name: "records"}[table.name]
        rows = [row | {"audit": n} for n, own in self.histories.items() for row in getattr(own, records)]
        return self.engine.made(pa.Table.from_pylist(rows, schema))

    def _batches(self, input_ids: Collection[str]) -> pa.Table:
        wanted = set(input_ids)
        parts = [
            _numbered(part.rows(), np.full(len(part), n))
            for n, own in self.histories.items()
            for part in own.batches
            if part.place.input_id in wanted
        ]
        return pa.Table.from_batches(parts, given_schema(LOG_BATCHES, *LOG_BATCHES.names))


def _folded(parts: Sequence[tuple[int, Batches]]) -> tuple[pa.Table, pa.Table]:
    """Rows of `log_pieces` and of `ended_transactions`, each with its audit."""
    if not parts:
        pieces, ended = (given_schema(table, *table.names).empty_table() for table in (LOG_PIECES, ENDED_TRANSACTIONS))
        return pieces, ended
    folded = summarize_parts([part for _, part in parts], [UNCUT] * len(parts))
    numbers = np.array([number for number, _ in parts])
    pieces = _numbered(folded.pieces, numbers[folded.part])
    ended = _numbered(folded.transactions, numbers[folded.part_of_transaction])
    return pa.Table.from_batches([pieces]), pa.Table.from_batches([ended])


def _numbered(rows: pa.RecordBatch, audits: np.ndarray[Any, Any]) -> pa.RecordBatch:
    schema = pa.schema([AUDIT, *(field.with_nullable(True) for field in rows.schema)])
    return pa.RecordBatch.from_arrays([pa.array(audits, AUDIT.type), *rows.columns], schema=schema)


class _Piece(NamedTuple):
    audit: int
    input_id: str
    section_index: int
    first_position: int
    end_position: int
    text_start_bytes: int
    max_moment_ms: int | None


def _moments_ms(histories: Mapping[int, History], pieces: pa.Table) -> dict[int, int | None]:
    """The newest moment that a broker's clock wrote in the judged capture of each history."""
    own = {(n, s["input_id"]) for n, each in histories.items() for s in each.sections if not s["capture_rank"]}
    files: defaultdict[tuple[int, str, int], list[_Piece]] = defaultdict(list)
    for piece in records_of(_Piece, pieces):
        if (piece.audit, piece.input_id) in own:
            files[piece[:3]].append(piece)
    found: defaultdict[int, list[int | None]] = defaultdict(list)
    for (number, *_), file in files.items():
        found[number].append(certain_moment_ms((p.first_position, p.end_position, p.max_moment_ms) for p in file))
    for number, each in histories.items():
        records = [row for row in each.records if not row["capture_rank"]]
        found[number] += [row[clock] for row in records for clock in ("last_update_ms", "recorded_ms")]
    return {number: latest(*moments) for number, moments in found.items()}
