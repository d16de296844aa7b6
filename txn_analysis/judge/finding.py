"""Findings: what is written of each judged transaction, and of what it costs its partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from txn_analysis.judge.applications import application_of, remark_on
from txn_analysis.judge.causes.cause import FoundCause
from txn_analysis.judge.impact import Impact, impact_of
from txn_analysis.judge.rules import asked
from txn_analysis.tables import FINDINGS
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.judge.judgement import Judgement
    from txn_analysis.kafka.topics import TopicConfig
    from txn_analysis.kafka.transactions import TopicPartition
    from txn_analysis.settings import Settings

Place = tuple["TopicPartition", int, int]
"""Partition, producer id and start offset: what tells findings of one run apart."""


@dataclass(frozen=True, slots=True)
class RuleAsked:
    """One rule that was asked about a transaction: the verdict that it gives, and why it fired or did not."""

    rule: str
    verdict: Verdict
    has_fired: bool
    reason: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RuleAsked:
        """An element of the column `rules_asked`."""
        return cls(row["rule"], Verdict(row["verdict"]), row["has_fired"], row["reason"])


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table `findings`, whose columns are described there (`tables.findings`)."""

    run_id: str
    finding_id: str
    verdict: Verdict
    rule: str
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int | None
    coordinator_epoch: int | None
    coordinator_epoch_basis: str
    txn_start_offset: int
    is_txn_start_exact: bool
    last_offset: int | None
    record_count: int | None
    size_bytes: int | None
    last_timestamp_ms: int | None
    idle_ms: int | None
    lateness_basis: str | None
    late_by_ms: int | None
    appended_after_ms: int | None
    appended_before_ms: int | None
    transactional_id: str | None
    state_partition: int | None
    coordinator_state: str | None
    coordinator_producer_id: int | None
    coordinator_producer_epoch: int | None
    coordinator_start_ms: int | None
    coordinator_update_ms: int | None
    coordinator_timeout_ms: int | None
    is_producer_live: bool
    producer_may_return: bool
    blocks_partition: bool | None
    evidence: tuple[str, ...]
    missing_evidence: tuple[str, ...]
    cause: FoundCause | None
    application: str | None
    impact: Impact | None
    rules_asked: tuple[RuleAsked, ...]
    would_change: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """The finding as plain data: structs as dictionaries, lists as lists, words as they are."""
        return _plain(self)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Finding:
        """A row of `findings`."""
        said = {name: row[name] for name in cls.__slots__} | {
            "verdict": Verdict(row["verdict"]),
            "cause": None if row["cause"] is None else FoundCause.of(row["cause"]),
            "impact": None if row["impact"] is None else Impact.of(row["impact"]),
            "rules_asked": tuple([RuleAsked.of(rule) for rule in row["rules_asked"]]),
        }
        return cls(**said | {name: tuple(said[name]) for name in _SENTENCES})

    @classmethod
    def of_some(cls, row: Mapping[str, Any]) -> Finding:
        """A row of some columns, all of `SINGLE_VALUES` among them; what was not read is None, or empty."""
        return cls.of({**_NOT_READ, **row})

    @property
    def producer_place(self) -> tuple[str, int, int]:
        """Topic, partition and producer id: whose data is open, and where."""
        return self.topic, self.partition, self.producer_id

    @property
    def span(self) -> tuple[int, int | None]:
        """The first and the last offset of its data; the latter is None where that is not known."""
        return self.txn_start_offset, self.last_offset


SINGLE_VALUES = tuple(column.name for column in FINDINGS.columns if not pa.types.is_nested(column.type))
"""The columns of `findings` without sentences, causes and the like: what many findings are asked about."""
_SENTENCES = ("evidence", "missing_evidence", "would_change")
_NOT_READ: dict[str, Any] = dict.fromkeys(("cause", "impact")) | dict.fromkeys((*_SENTENCES, "rules_asked"), ())


def _plain(record: Any) -> dict[str, Any]:
    return {name: _plain_value(getattr(record, name)) for name in record.__slots__}


def _plain_value(value: Any) -> Any:
    # Spark's own serializer knows no enumerations.
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_plain_value(each) for each in value]
    return _plain(value) if hasattr(value, "__slots__") else value


def finding_of(judged: Judgement, run_id: str, finding_id: str, impact: Impact | None) -> Finding:
    """What is written of one judged transaction."""
    facts, rule, opened, known = judged.facts, judged.rule, judged.opened, judged.facts.coordinator
    transactional_id = None if known is None else known.transactional_id
    timeout_ms = None if known is None else known.timeout_ms
    remark = remark_on(transactional_id, timeout_ms) if rule.verdict is Verdict.HANGING else None
    return Finding(
        run_id=run_id,
        finding_id=finding_id,
        verdict=rule.verdict,
        rule=rule.name,
        topic=opened.topic,
        partition=opened.partition,
        producer_id=opened.producer_id,
        producer_epoch=opened.producer_epoch,
        coordinator_epoch=opened.coordinator_epoch,
        coordinator_epoch_basis=opened.coordinator_epoch_basis,
        txn_start_offset=opened.txn_start_offset,
        is_txn_start_exact=opened.is_txn_start_exact,
        last_offset=opened.last_offset,
        record_count=opened.record_count,
        size_bytes=opened.size_bytes,
        last_timestamp_ms=opened.last_timestamp_ms,
        idle_ms=facts.lateness.idle_ms,
        lateness_basis=facts.lateness.basis,
        late_by_ms=facts.lateness.late_by_ms,
        appended_after_ms=opened.appended_after_ms,
        appended_before_ms=opened.appended_before_ms,
        transactional_id=transactional_id,
        state_partition=None if known is None else known.state_partition,
        coordinator_state=None if known is None else known.state,
        coordinator_producer_id=None if known is None else known.producer_id,
        coordinator_producer_epoch=None if known is None else known.producer_epoch,
        coordinator_start_ms=None if known is None else known.start_ms,
        coordinator_update_ms=None if known is None else known.update_ms,
        coordinator_timeout_ms=timeout_ms,
        is_producer_live=known is not None and known.is_producer_live,
        producer_may_return=known is not None and known.producer_may_return,
        blocks_partition=facts.blocks_partition,
        evidence=(*rule.evidence_in(facts), *([] if remark is None else [remark])),
        missing_evidence=rule.missing_in(facts),
        cause=judged.cause,
        application=None if transactional_id is None else application_of(transactional_id).name,
        impact=impact,
        rules_asked=tuple(RuleAsked(r.name, r.verdict, holds, because) for r, holds, because in asked(facts)),
        would_change=rule.would_change_in(facts),
    )


def place_of(judged: Judgement) -> Place:
    """Where it is, and whose."""
    return judged.opened.topic_partition, judged.opened.producer_id, judged.opened.txn_start_offset


def impacts_of(
    judged: Iterable[Judgement], configs: Mapping[str, TopicConfig], settings: Settings, as_of_ms: int | None
) -> dict[Place, Impact]:
    """What each blocked partition suffers, by the place of the transaction that holds its last stable offset."""
    holders: dict[TopicPartition, Judgement] = {}
    for judgement in sorted(judged, key=lambda j: j.opened.txn_start_offset):
        if judgement.facts.blocks_partition:
            holders.setdefault(judgement.opened.topic_partition, judgement)
    return {
        place_of(j): impact_of(j.opened, j.facts.partition, configs.get(where.topic), settings.free_bytes, as_of_ms)
        for where, j in holders.items()
    }
