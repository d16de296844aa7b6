"""What is at one offset of a partition, and why a consumer does not get past it.

Nothing is judged here: the log is that of a finished run, and what blocks it is one of the run's findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow.compute as pc

from txn_analysis.columns.records import records_of
from txn_analysis.kafka.names import END_MARKERS
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.questions.linked_log import LinkedLog
from txn_analysis.questions.offset_answer import (
    BatchAt,
    Blocker,
    BoundedReader,
    Found,
    Gets,
    OffsetAnswer,
    TransactionAt,
)
from txn_analysis.questions.readers import Ahead, Fate, Run, longest, not_committed
from txn_analysis.runs.ask import ask, is_one_of
from txn_analysis.runs.asked_states import histories
from txn_analysis.runs.past_run import JUDGED_BY, PastRun
from txn_analysis.tables import FINDINGS, PARTITION_HEALTH, Finding, PartitionHealth, Problem
from txn_analysis.tables.findings import SINGLE_VALUES
from txn_analysis.tables.transactions import OPEN


def explain_offset(run: PastRun, topic: str, partition: int, offset: int) -> OffsetAnswer:
    """What is at an offset of a partition that the run saw, and why a consumer does not get past it.

    It rests on the log as the run linked it: batches of `log_batches` in the pieces of
    `partition_health.linked_pieces`, outcomes of `transactions` and `ended_transactions`, and the run's findings.
    """
    return _Asked.of(run, topic, partition, offset).answer()


@dataclass(frozen=True)
class _Asked:
    """One offset that is asked about, with what the run knows of its partition."""

    run: PastRun
    log: LinkedLog
    health: PartitionHealth
    offset: int
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, run: PastRun, topic: str, partition: int, offset: int) -> _Asked:
        place: dict[str, Any] = {"topic": [topic], "partition": [partition]}
        (health,) = records_of(PartitionHealth, run.result_rows(PARTITION_HEALTH, *JUDGED_BY, **place))
        findings = records_of(Finding, run.result_rows(FINDINGS, *SINGLE_VALUES, **place))
        return cls(run, LinkedLog.of(run, topic, partition), health, offset, tuple(findings))

    @cached_property
    def place(self) -> dict[str, list[Any]]:
        return {"topic": [self.log.topic], "partition": [self.log.partition]}

    @cached_property
    def batch(self) -> BatchAt | None:
        """The batch that holds the offset."""
        for rows in self.log.batches(self.offset, *BatchAt._fields):
            here = rows.filter(pc.less_equal(rows["base_offset"], self.offset))
            if len(here):
                return records_of(BatchAt, here.slice(0, 1))[0]
        return None

    @cached_property
    def transaction(self) -> TransactionAt | None:
        """The transaction that the offset's batch is of."""
        batch = self.batch
        if batch is None or batch.producer_id is None or not batch.is_transactional:
            return None
        here = is_one_of({**self.place, "producer_id": [batch.producer_id]})
        has_it = f"txn_start_offset <= {batch.base_offset} AND coalesce(end_offset >= {batch.base_offset}, TRUE)"
        parts = [
            f"SELECT {', '.join(TransactionAt._fields[:4])} FROM {of} WHERE {here} AND {has_it}"  # noqa: S608 ours
            for of in ("ended_transactions", "transactions")
        ]
        for row in ask(self.run, " UNION ALL ".join(parts)).to_pylist():
            known = histories(self.run, [batch.producer_id]).get(batch.producer_id, {})
            return TransactionAt(**row, transactional_ids=tuple(sorted(known)))
        return None

    @cached_property
    def content(self) -> Found:
        batch, health = self.batch, self.health
        if batch is not None:
            return _found_in(batch, self.transaction)
        if health.log_start_offset is not None and self.offset < health.log_start_offset:
            return Found.DELETED
        if health.end_offset is None or self.offset >= health.end_offset:
            return Found.BEYOND_END
        first, name = health.first_offset, self.log.names_first_file
        if not self.log.pieces or first is None:
            return Found.NOT_IN_FILES
        if self.offset < first:
            return Found.COMPACTED if name is not None and self.offset >= name else Found.NOT_IN_FILES
        is_missing = self.log.gap_at(self.offset) or self.offset >= (self.log.end_offset or 0)
        return Found.NOT_IN_FILES if is_missing else Found.COMPACTED

    @cached_property
    def blocker(self) -> Finding | None:
        """The open transaction that holds the last stable offset."""
        return next((finding for finding in self.findings if finding.blocks_partition), None)

    @cached_property
    def ahead(self) -> Ahead | None:
        stable = self.health.last_stable_offset
        if stable is None:
            return None
        transactions = not_committed(self.run, self.log.topic, self.log.partition)
        return Ahead.of(self.log, transactions, self.offset, stable)

    @property
    def _is_in_log(self) -> bool:
        return self.content not in {Found.DELETED, Found.NOT_IN_FILES, Found.BEYOND_END}

    @property
    def _stable(self) -> int | None:
        """The last stable offset; None where the start that holds it lies below all files.

        The broker's is then the start, or the log start if that is above it (`UnifiedLog`).
        """
        health, blocker = self.health, self.blocker
        if blocker is None or blocker.txn_start_offset >= (health.first_offset or 0):
            return health.last_stable_offset
        is_known = health.last_stable_offset == health.log_start_offset
        return health.last_stable_offset if is_known else None

    def answer(self) -> OffsetAnswer:
        health, ahead = self.health, self.ahead
        end, stable, gets = health.end_offset, self._stable, self._gets()
        runs = [*ahead.runs()] if ahead is not None and gets in {Gets.RECORD, Gets.SKIPS} else []
        missing, open_from = (*self._missing(gets),), self._open_from
        return OffsetAnswer(
            run_id=self.run.run_id,
            topic=health.topic,
            partition=health.partition,
            offset=self.offset,
            found=self.content,
            gets=gets if not missing or gets is Gets.OUT_OF_RANGE else Gets.UNKNOWN,
            is_told=not missing,
            batch=self.batch,
            transaction=self.transaction,
            first_offset=health.first_offset,
            log_start_offset=health.log_start_offset,
            end_offset=end,
            last_stable_offset=stable,
            lag_to_end=end - self.offset if self._is_in_log and end is not None else None,
            lag_to_last_stable=max(stable - self.offset, 0) if self._is_in_log and stable is not None else None,
            next_record_offset=self._next_record(gets, runs),
            longest_run=longest(runs) if open_from is None else None,
            blocked_by=self._blocked_by(),
            bounded_reader=self._bounded(),
            missing=missing,
        )

    def _gets(self) -> Gets:
        """What a consumer gets there, if all that the run knows of the log is true."""
        stable = self.health.last_stable_offset
        if self.content is Found.DELETED:
            return Gets.OUT_OF_RANGE
        if self.content in {Found.NOT_IN_FILES, Found.BEYOND_END} or stable is None:
            return Gets.UNKNOWN
        if self.offset >= stable:
            return Gets.NOTHING_YET
        return Gets.RECORD if self.content in {Found.DATA, Found.COMMITTED_DATA} else Gets.SKIPS

    @cached_property
    def _open_from(self) -> int | None:
        """The first offset ahead, below the last stable offset, of which it is not known whether it gives a record."""
        stable = self.health.last_stable_offset or 0
        unknown = [] if self.ahead is None or self.ahead.unknown_offset is None else [self.ahead.unknown_offset]
        gaps = [max(gap.first_offset, self.offset) for gap in self.log.gaps if gap.last_offset >= self.offset]
        return min((offset for offset in (*unknown, *gaps) if offset < stable), default=None)

    def _next_record(self, gets: Gets, runs: list[Run]) -> int | None:
        if gets is Gets.RECORD:
            return self.offset
        run_here = next((run for run in runs if run.first_offset == self.offset), None)
        if run_here is None:
            return None
        next_offsets = [run_here.last_offset + 1, *([] if self._open_from is None else [self._open_from])]
        return None if min(next_offsets) == self.health.last_stable_offset else min(next_offsets)

    def _blocked_by(self) -> Blocker | None:
        if self.blocker is None:
            return None
        return Blocker(*(getattr(self.blocker, name) for name in Blocker._fields))

    def _bounded(self) -> BoundedReader | None:
        """What is hidden from a bounded reader, where a transaction is proven to be open and hides something."""
        if self.ahead is None or self.blocker is None or self.blocker.rule == _NOT_PROVEN:
            return None
        kinds = (Fate.DELIVERED, Fate.ABORTED, Fate.OPEN, Fate.UNKNOWN)
        committed, aborted, opened, unknown = (
            self.ahead.hidden[kind] if self.ahead.has_all_counts else None for kind in kinds
        )
        is_whole = self.health.hidden_record_count is not None
        return BoundedReader(self._stable, committed, aborted, opened, unknown, is_whole)

    def _missing(self, gets: Gets) -> Iterator[str]:
        """What leaves the answer open, and what would settle it."""
        if self.content is Found.DELETED:
            return
        yield from self._missing_here()
        health = self.health
        if not health.is_in_capture:
            yield "only earlier captures hold the partition: copy it again"
        yield from (problem.reason for problem in health.problems if self._is_doubted_by(problem))
        if gets is Gets.NOTHING_YET and self.blocker is not None and self.blocker.rule == _NOT_PROVEN:
            yield "the open transaction may have ended in what is missing of the log: `report` names it"
        elif gets in {Gets.RECORD, Gets.SKIPS}:
            yield from self._missing_below()

    def _missing_here(self) -> Iterator[str]:
        """Of the offset itself."""
        health, gap = self.health, self.log.gap_at(self.offset)
        if self.content is Found.BEYOND_END:
            end = "holds no batch" if health.end_offset is None else f"ends at offset {health.end_offset}"
            yield f"the copied log {end}: copy the partition again"
        elif gap is not None:
            where = f"offsets {gap.first_offset} to {gap.last_offset} lie between two files"
            yield f"{where}: compaction may have removed them, or a file was not copied"
        elif self.content is Found.NOT_IN_FILES and not any(p.kind in _CLIENT_TEXT for p in health.problems):
            yield self._why_in_no_file()
        if self.batch is not None and self.batch.is_doubted:
            yield "the batch is damaged, or may be text of a client: copy the file again, or give a shallow dump too"
        if self.content is Found.ENDED_DATA and self.offset < (health.last_stable_offset or 0):
            yield "the dump does not say whether its transaction was committed: give one with --deep-iteration"

    def _why_in_no_file(self) -> str:
        start, first = self.health.log_start_offset, self.health.first_offset
        if start is None or first is None or self.offset >= first:
            return f"{_IN_NO_FILE}: give the partition's earlier files, and its checkpoint of log starts"
        # KIP-405: the local log begins above the log start; a follower's at the last tiered offset (KIP-1023).
        begins = f"the log starts at {start} by its checkpoint, and the files begin at {first}"
        return f"{_IN_NO_FILE}: {begins}. What lies between was not copied, or is in remote storage alone (tiered)"

    def _missing_below(self) -> Iterator[str]:
        """What may be open further down, where a consumer would wait."""
        health, name = self.health, self.log.names_first_file
        if health.snapshot_offset is None and name != 0:
            begin = "inside a file" if name is None else f"at offset {name}"
            what = "and no producer snapshot stands for what is below: a transaction may be open there"
            yield f"the copied log begins {begin}, {what}. Give the .snapshot file of that offset"

    def _is_doubted_by(self, problem: Problem) -> bool:
        """Whether a problem makes it doubtful what is at the offset, or up to where consumers can read."""
        if problem.kind not in _CLIENT_TEXT:
            return problem.offset is None  # it spoils the log to its end
        # What may be text of a client is in none of the pieces, and begins where they break off.
        end = min([gap.first_offset for gap in self.log.gaps], default=self.log.end_offset)
        return end is None or max(self.offset + 1, self.health.last_stable_offset or 0) > end


_IN_NO_FILE = "the offset is in no file"
_NOT_PROVEN = "evidence_broken"  # the rule of what may have ended in what is missing of the log
_CLIENT_TEXT = {ProblemKind.CONTESTED_LINE, ProblemKind.HEADER_KEYS_MAY_OPEN, ProblemKind.MAY_BE_HEADER_KEYS}


def _found_in(batch: BatchAt, transaction: TransactionAt | None) -> Found:
    if batch.is_control:
        is_marker = batch.marker in END_MARKERS or (batch.marker is None and batch.producer_id is not None)
        return Found.END_MARKER if is_marker else Found.CONTROL_BATCH
    if not batch.is_transactional:
        return Found.COMPACTED if batch.record_count == 0 else Found.DATA
    if batch.record_count == 0:
        return Found.COMPACTED
    outcome = None if transaction is None else transaction.outcome
    of_outcome = {"COMMIT": Found.COMMITTED_DATA, "ABORT": Found.ABORTED_DATA, OPEN: Found.OPEN_DATA}
    return of_outcome.get(outcome or "", Found.ENDED_DATA)
