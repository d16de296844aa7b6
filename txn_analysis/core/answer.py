"""The audit of histories in memory: fold, link, look at the coordinator, judge, plan."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txn_analysis.coordinator.seen import CoordinatorSide, of_producers, side_of, state_seen
from txn_analysis.coordinator.state_at_hand import state_at_hand
from txn_analysis.coordinator.state_records import by_producer, chains_of, histories_of, section_sums_of
from txn_analysis.core.logs import end_markers, folds_of, linked_logs, views_of_health
from txn_analysis.judge.fact_finding import Moments
from txn_analysis.judge.finding import Finding, finding_of, impacts_of, place_of
from txn_analysis.judge.judgement import Judgement, judgements_of
from txn_analysis.log.rivals import certain_moment_ms
from txn_analysis.logic import latest
from txn_analysis.plan.abort_plan import AbortRecord, abort_plan
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from txn_analysis.coordinator.coverage import StateEvidence
    from txn_analysis.core.history import History
    from txn_analysis.core.logs import Fold, Linked
    from txn_analysis.judge.judgement import Disproved
    from txn_analysis.log.pieces import LogPiece
    from txn_analysis.log.sections import SectionKey

Row = dict[str, Any]

_RUN = "in-memory"


@dataclass(frozen=True)
class Answer:
    """What an audit says of one history.

    Attributes:
        judgements: one for each open transaction, by partition, start and producer id.
        findings: what is written of them; in memory every run has one name.
        plan: the abort markers that are recommended.
        logs: the logs that were followed.
        state: what was seen of `__transaction_state`; None where nothing is open that depends on it.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        disproved: assurances that counted nowhere, and why.
    """

    judgements: tuple[Judgement, ...]
    findings: tuple[Finding, ...]
    plan: tuple[AbortRecord, ...]
    logs: Linked
    state: StateEvidence | None
    as_of_ms: int | None
    disproved: Disproved

    @property
    def health(self) -> tuple[Row, ...]:
        """Rows of `partition_health`."""
        return tuple(self.logs.health)

    @property
    def hanging(self) -> tuple[Finding, ...]:
        """The findings that an abort marker would repair."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.HANGING)


def answer_of(history: History) -> Answer:
    """Findings and plan of one history."""
    return answers_of([history])[0]


def answers_of(histories: Sequence[History]) -> list[Answer]:
    """Findings and plans of many histories; all their logs are folded in one go."""
    return [_answer(history, folded) for history, folded in zip(histories, folds_of(histories), strict=True)]


def _answer(history: History, folded: Fold) -> Answer:
    settings = history.settings
    moments = _moments(history, folded.pieces)
    linked = linked_logs(history, folded.pieces, moments.as_of_ms)
    opened = linked.opened
    if not opened:
        return Answer((), (), (), linked, None, moments.as_of_ms, {})
    side, partitions = _side(history, folded, linked, moments), views_of_health(linked)
    judged = judgements_of(opened, partitions, side.views, side.state, settings, moments, history.sections)
    impacts = impacts_of(judged.of_open, {}, settings, moments.as_of_ms)
    findings = tuple(_finding(judgement, impacts) for judgement in judged.of_open)
    plan = abort_plan(findings, settings, moments.as_of_ms)
    return Answer(tuple(judged.of_open), findings, plan, linked, side.state, moments.as_of_ms, judged.disproved)


def _side(history: History, folded: Fold, linked: Linked, moments: Moments) -> CoordinatorSide:
    rows, placing = history.state_rows, history.placing
    sums, chains = section_sums_of(rows, placing), chains_of(rows, placing)
    seen = state_seen(placing, history.state_files, sums, chains, views_of_health(linked).values())
    histories, markers = by_producer(histories_of(rows, placing)), end_markers(folded.ended, linked)
    asked = {transaction.producer_id for transaction in linked.opened}
    given = state_at_hand(seen, history.settings, moments.reach_ms)
    said = of_producers(histories, markers, linked.opened, given, asked)
    return side_of(seen, said, history.state_files.cluster_ids)


def _finding(judgement: Judgement, impacts: Any) -> Finding:
    where, producer_id, start = place = place_of(judgement)
    return finding_of(judgement, _RUN, f"{where}/{producer_id}/{start}", impacts.get(place))


def _moments(history: History, pieces: Iterable[LogPiece]) -> Moments:
    """When the files were copied, and the newest moment that a broker's clock wrote in the judged capture."""
    own = {s["input_id"] for s in history.sections if not s["capture_rank"]}
    files: defaultdict[SectionKey, list[LogPiece]] = defaultdict(list)
    for piece in pieces:
        if piece.input_id in own:
            files[piece.section].append(piece)
    moments = [certain_moment_ms(file) for file in files.values()]
    records = [row for row in history.records if not row["capture_rank"]]
    for clock in ("last_update_ms", "recorded_ms"):
        moments += [row[clock] for row in records]
    newest_ms = latest(*moments)
    said_ms = history.settings.as_of_ms
    return Moments(newest_ms if said_ms is None else said_ms, newest_ms)
