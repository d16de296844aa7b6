"""Findings: what is written of each judged transaction, and of what it costs its partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from txn_analysis.judge import rules
from txn_analysis.judge.applications import NO_GROUPS, ConnectGroups, application_of, remark_on
from txn_analysis.judge.blocked_groups import Groups
from txn_analysis.judge.judgement import Judgement
from txn_analysis.judge.sentences import clocks_remark, moment_of_the_copy
from txn_analysis.judge.words import WORDS
from txn_analysis.kafka.names import COMPACT, DELETE, GROUP_TOPIC, INTERNAL_TOPICS, TopicConfig
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import minus
from txn_analysis.settings import Settings
from txn_analysis.tables import Finding, Impact, PartitionHealth, RuleAsked, Transaction
from txn_analysis.tables.findings import MAY_BE_BEING_WRITTEN
from txn_analysis.verdict import Verdict

Place = tuple["TopicPartition", int, int]
"""Partition, producer id and start offset: what tells findings of one run apart."""


_BY_CLOCKS = {*MAY_BE_BEING_WRITTEN, Verdict.IN_PROGRESS}
_OF_TRANSACTION = tuple(name for name in Finding._fields if name in Transaction._fields)


def finding_of(
    judged: Judgement, run_id: str, finding_id: str, impact: Impact | None, connect: ConnectGroups = NO_GROUPS
) -> Finding:
    """What is written of one judged transaction."""
    case, rule, opened, known = judged.case, judged.rule, judged.opened, judged.case.id
    transactional_id = None if known is None else known.transactional_id
    timeout_ms = None if known is None else known.timeout_ms
    remark = remark_on(transactional_id, timeout_ms) if rule.verdict is Verdict.HANGING else None
    clocks = clocks_remark(case) if rule.verdict in _BY_CLOCKS else None
    before = rules.RULES[: rules.RULES.index(rule)]
    evidence, missing = judged.words.evidence_in(case), judged.words.missing_in(case)
    if rule.verdict is Verdict.INCONCLUSIVE and (moment := moment_of_the_copy(case)) is not None:
        missing = *missing, moment
    return Finding(
        run_id=run_id,
        finding_id=finding_id,
        verdict=rule.verdict,
        rule=rule.name,
        **{name: getattr(opened, name) for name in _OF_TRANSACTION},
        idle_ms=case.idle_ms,
        lateness_basis=case.lateness_basis,
        late_by_ms=case.late_by_ms,
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
        blocks_partition=bool(case.blocks_partition),
        evidence=(*evidence, *(one for one in (clocks, remark) if one is not None)),
        missing_evidence=missing,
        cause=judged.cause,
        application=None if transactional_id is None else application_of(transactional_id, connect).name,
        impact=impact,
        rules_asked=(
            *(RuleAsked(r.name, r.verdict, False, WORDS[r.name].why_not(case)) for r in before),
            RuleAsked(rule.name, rule.verdict, True, "; ".join(evidence or missing)),
        ),
        would_change=missing or judged.words.would_change_in(case),
        is_recent=case.is_recent,
    )


def place_of(judged: Judgement) -> Place:
    """Where it is, and whose."""
    return judged.opened.topic_partition, judged.opened.producer_id, judged.opened.txn_start_offset


def holders_of(
    starts: Iterable[Place], partitions: Mapping[TopicPartition, PartitionHealth]
) -> dict[TopicPartition, Place]:
    """For each partition with a held last stable offset, the place of the open transaction that does so."""
    holders: dict[TopicPartition, Place] = {}
    for place in starts:
        where, producer_id, start = place
        stable = partitions[where].last_stable_offset
        if stable is not None and start <= stable:
            _, other_id, first = holders.get(where, place)
            holders[where] = place if (start, producer_id) < (first, other_id) else holders.get(where, place)
    return holders


@dataclass(frozen=True)
class Costs:
    """What blocked partitions suffer.

    Attributes:
        holders: by partition the place of the transaction that holds its last stable offset.
        configs: what is known of topics' configurations.
        groups: by partition of `__consumer_offsets` with an open transaction, the groups that wait behind it.
        settings: as for the audit.
        as_of_ms: when the files were copied.
        connect: the groups of Kafka Connect that the state names.
    """

    holders: Mapping[TopicPartition, Place]
    configs: Mapping[str, TopicConfig]
    groups: Mapping[int, Groups]
    settings: Settings
    as_of_ms: int | None
    connect: ConnectGroups = NO_GROUPS

    def of(self, judged: Judgement) -> Impact | None:
        """What the partition suffers whose last stable offset a transaction holds; None where it holds none."""
        opened, place = judged.opened, place_of(judged)
        if self.holders.get(opened.topic_partition) != place:
            return None
        config = self.configs.get(opened.topic)
        impact = impact_of(opened, judged.case.log, config, self.settings.free_bytes, self.as_of_ms)
        if opened.topic != GROUP_TOPIC or opened.partition not in self.groups:
            return impact
        return impact._replace(**self.groups[opened.partition]._asdict())


DAY_MS = 86_400_000
_SHORTEST_MEASURED_MS = 600_000


def impact_of(
    opened: Transaction,
    partition: PartitionHealth,
    config: TopicConfig | None,
    free_bytes: int | None,
    as_of_ms: int | None,
) -> Impact:
    """What the transaction that holds a partition's last stable offset costs it.

    The groups of a partition of `__consumer_offsets` are put in by who knows them; see `judge.blocked_groups`.

    Args:
        opened: the transaction.
        partition: the health of its partition.
        config: what is known of its topic's configuration.
        free_bytes: space that is left for this log to grow into.
        as_of_ms: when the files were copied.
    """
    since = (opened.first_appended_before_ms, opened.appended_before_ms)
    since_ms = next((ms for ms in since if ms is not None), None)
    passed_ms = minus(as_of_ms, partition.first_moment_ms)
    # From the first broker's time in the log to the copy; too short a time says nothing of a day.
    measured_ms = passed_ms if passed_ms is not None and passed_ms >= _SHORTEST_MEASURED_MS else None
    growth = None if measured_ms is None else partition.log_bytes * DAY_MS // measured_ms
    is_compacted = _is_compacted(opened.topic, config)
    hidden, whole = partition.hidden_bytes, partition.log_bytes
    limits, is_tiered = _limits(config), None if config is None else config.is_tiered
    local = (None, None) if config is None else (config.local_retention_ms, config.local_retention_bytes)
    return Impact(
        hidden_since_ms=since_ms,
        hidden_share=None if hidden is None or not whole else hidden / whole,
        is_compacted=is_compacted,
        # Log.firstUncleanableDirtyOffset: the cleaner never passes the first unstable offset.
        is_compaction_stopped=is_compacted,
        log_growth_bytes_per_day=growth,
        log_growth_measured_ms=measured_ms,
        days_until_full=None if free_bytes is None or not growth else free_bytes / growth,
        # UnifiedLog.isSegmentEligibleForDeletion: what is not copied yet is deleted by no retention.
        hidden_lost_at_ms=None if is_tiered else _retained_until_ms(limits, since_ms, hidden, growth, as_of_ms),
        # RemoteLogManager copies no segment that reaches beyond the last stable offset.
        is_tiering_stopped=is_tiered,
        beyond_local_retention_at_ms=(
            _retained_until_ms(local, since_ms, hidden, growth, as_of_ms) if is_tiered else None
        ),
    )


def _is_compacted(topic: str, config: TopicConfig | None) -> bool | None:
    if config is not None and config.cleanup_policies is not None:
        return COMPACT in config.cleanup_policies
    policy = INTERNAL_TOPICS.get(topic)
    return None if policy is None else policy == COMPACT


def _limits(config: TopicConfig | None) -> tuple[int | None, int | None]:
    """Up to which age and size retention keeps a log; nothing where it deletes nothing."""
    if config is None or config.cleanup_policies is None or DELETE not in config.cleanup_policies:
        return None, None
    return config.retention_ms, config.retention_bytes


def _retained_until_ms(
    limits: tuple[int | None, int | None],
    since_ms: int | None,
    hidden_bytes: int | None,
    growth: int | None,
    as_of_ms: int | None,
) -> int | None:
    """The first moment at which retention may pass the last stable offset; it stops at the high watermark alone."""
    retention_ms, retention_bytes = limits
    moments = []
    if retention_ms is not None and since_ms is not None:
        moments.append(since_ms + retention_ms)
    if retention_bytes is not None and hidden_bytes is not None and growth and as_of_ms is not None:
        left_bytes = max(retention_bytes - hidden_bytes, 0)
        moments.append(as_of_ms + left_bytes * DAY_MS // growth)
    return min(moments, default=None)
