"""The report of one run as data; text and JSON are renderings of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from txn_analysis.judge.outcome import Outcome, SeenLog, Sight, in_doubt, outcome_of
from txn_analysis.settings import LATE_TRANSACTION_BUFFER_MS, Settings
from txn_analysis.verdict import Verdict

SCHEMA_VERSION = 3


class Item(BaseModel):
    """What all items of a report share."""

    # The rows of the tables have more columns than the report shows.
    # Each field is there in JSON, also one that has a default.
    model_config = ConfigDict(frozen=True, extra="ignore", json_schema_serialization_defaults_required=True)


class RunItem(Item):
    """What was asked, and of which evidence. `as_of_ms` is None where no broker's clock speaks.

    Of `earlier_captures`, `forgotten_captures` are not in the warehouse any more.
    """

    run_id: str
    cluster: str
    capture: str
    earlier_captures: tuple[str, ...] = ()
    forgotten_captures: tuple[str, ...] = ()
    as_of_ms: int | None
    as_of_basis: str | None
    parameters: dict[str, Any]
    verdict_counts: dict[str, int]

    @property
    def late_after_ms(self) -> int:
        """The bound that the run judged by: a transaction that has been idle for longer is late (KIP-664)."""
        return int(self.parameters["transaction_max_timeout_ms"]) + LATE_TRANSACTION_BUFFER_MS

    @property
    def plan_valid_ms(self) -> int:
        """How long the run's abort plan holds."""
        return int(self.parameters.get("plan_valid_ms", Settings.model_fields["plan_valid_ms"].default))


class InputItem(Item):
    """One file of the capture; `problem` says why it, or its end, was not understood."""

    input_id: str
    path: str
    kind: str | None
    grammar: str | None
    size_bytes: int
    text_bytes: int
    parsed_bytes: int
    rejected_bytes: int
    problem: str | None


class PartitionProblem(Item):
    """Where a partition's evidence is not whole; `offset` is None where it has no place in the log.

    `kind` is a name of `kafka.log_problems.ProblemKind`.
    """

    offset: int | None
    kind: str
    reason: str


class CauseItem(Item):
    """Why a transaction is as it is: one name of `judge/causes.py`, and the facts for and against it.

    `confidence` is `certain` (nothing else explains the facts), `likely` (it explains them, something else could as
    well), `possible` (some facts point to it) or `unknown` (`name` is then `unexplained`).
    """

    name: str
    confidence: str
    evidence_for: tuple[str, ...] = ()
    evidence_against: tuple[str, ...] = ()


class ImpactItem(Item):
    """What an open transaction costs one partition; None where the files do not say.

    `hidden_since_ms` is the broker-clock moment before which hiding began. `log_growth_bytes_per_day` is measured
    from the first broker's time in the log to the copy, `log_growth_measured_ms`. `days_until_full` needs
    `--free-bytes`; compaction and retention need `--topic-config`. `hidden_lost_at_ms` is the first moment at which
    retention may delete the hidden records unread. `pending_groups` have offsets in an open transaction of this
    partition of `__consumer_offsets`; `waiting_groups` only share the partition with them. Both are whole or None: of
    any other topic, and where the files do not name all groups.
    """

    hidden_since_ms: int | None = None
    hidden_share: float | None = None
    is_compacted: bool | None = None
    is_compaction_stopped: bool | None = None
    log_growth_bytes_per_day: int | None = None
    log_growth_measured_ms: int | None = None
    days_until_full: float | None = None
    hidden_lost_at_ms: int | None = None
    pending_groups: tuple[str, ...] | None = None
    waiting_groups: tuple[str, ...] | None = None


class ClusterImpact(Item):
    """The cluster in one line: partitions that an open transaction has blocked for too long, and the worst of them.

    `oldest_partition` has been blocked longest; `worst_partition` hides most records. Sums are None where some are not
    known. `days_until_full` is for all of them together.
    """

    partitions_blocked: int
    hidden_record_count: int | None
    hidden_bytes: int | None
    oldest_partition: str | None
    oldest_since_ms: int | None
    worst_partition: str | None
    worst_hidden_record_count: int | None
    days_until_full: float | None = None


class WarningItem(Item):
    """Something that does not hang yet, or explains why it will: `kind` is a name of `judge/early_warning.py`.

    `subject` is what it is about (a partition, a transactional id, an application) as it stands in the files: whoever
    shows it escapes it. `text` says what was seen, in words of the house alone; `count` how many ids the line stands
    for, and `example` is the worst of them.
    """

    kind: str
    subject: str
    example: str | None = None
    text: str
    count: int = 1


class PartitionItem(Item):
    """One partition's log, and how far it was seen; hidden counts are from the last stable offset on, None where some
    are gone. `problems` spoil the evidence, `witnesses` agree with it, `remarks` explain it.
    """

    topic: str
    partition: int
    is_in_capture: bool
    first_offset: int | None
    end_offset: int | None
    last_stable_offset: int | None
    open_transaction_count: int
    hidden_record_count: int | None
    hidden_bytes: int | None
    log_bytes: int = 0
    last_moment_ms: int | None = None
    first_leader_epoch: int | None = None
    leader_epoch: int | None = None
    snapshot_offset: int | None = None
    problems: tuple[PartitionProblem, ...] = ()
    witnesses: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    impact: ImpactItem | None = None

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"

    @property
    def seen(self) -> SeenLog:
        """What the outcome depends on."""
        return SeenLog(self.topic, self.partition, self.is_in_capture, frozenset([p.kind for p in self.problems]))


class FindingItem(Item):
    """One open transaction with its verdict; the columns of `findings`.

    `application` is what its transactional id seems to belong to.
    """

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
    blocks_partition: bool
    evidence: tuple[str, ...]
    missing_evidence: tuple[str, ...]
    cause: CauseItem | None = None
    impact: ImpactItem | None = None
    application: str | None = None

    @property
    def must_end_producer(self) -> bool:
        """The client could write there again under the same producer id, and an abort would destroy that as well."""
        return self.is_producer_live or self.producer_may_return

    @property
    def topic_partition(self) -> str:
        """Kafka's own spelling, such as `orders-3`."""
        return f"{self.topic}-{self.partition}"


class SkippedInput(Item):
    """One input that was not, or not wholly, understood; present only with `--skip-unrecognised`."""

    path: str
    problem: str


class Coverage(Item):
    """How much of the truth the run could see.

    `transaction_state` is what was seen of `__transaction_state`, as the run recorded it. `partitions_missing` are
    partitions that an earlier capture of the cluster holds and this one does not. `has_logs` says that the log of at
    least one partition is in the capture, beside those of `__transaction_state`.
    """

    transaction_state: dict[str, Any]
    has_logs: bool
    partitions_seen: int
    partitions_missing: tuple[str, ...]
    parsed_bytes: int
    rejected_bytes: int
    skipped_inputs: tuple[SkippedInput, ...]

    @property
    def disproved(self) -> dict[str, str]:
        """By the name of its setting, what disproves an assurance of the operator, in words."""
        return self.transaction_state.get("disproved") or {}

    @property
    def clusters(self) -> dict[str, Any] | None:
        """What looks like two clusters, as `log.two_clusters.TwoClusters` was written; None where nothing does."""
        return self.transaction_state.get("clusters")

    @property
    def has_state(self) -> bool:
        """At least one partition of `__transaction_state` was given."""
        return bool(self.transaction_state.get("seen"))


class Remedy(Item):
    """What would settle some of the open transactions that are in doubt: the option or the file, in words.

    `missing` is what is not there. What stands between backticks is to be typed; `partitions` are theirs.
    """

    missing: str
    text: str
    transaction_count: int
    partitions: tuple[str, ...]


class OutcomeItem(Item):
    """How the run came out: `answer` is `findings` where something hangs, `clean`, or `could_not_tell`.

    `transaction_count` and `partitions` are those of the transactions that the answer is about: what hangs, or that of
    which it could not be told; none where it is `clean`. `doubtful_count` and `doubtful_partitions` are those of which
    it could not be told whether they hang, also where others do. `settled_by` is what would tell, the remedy of most
    of them first.
    """

    answer: Outcome
    transaction_count: int = 0
    partitions: tuple[str, ...] = ()
    doubtful_count: int = 0
    doubtful_partitions: tuple[str, ...] = ()
    settled_by: tuple[Remedy, ...] = ()


class AuditReport(Item):
    """What a run answered: all of it, or what is on `topics`, if there are any.

    Findings: worst verdict first, then topic, partition, start offset.
    """

    schema_version: int = SCHEMA_VERSION
    run: RunItem
    inputs: tuple[InputItem, ...]
    coverage: Coverage
    partitions: tuple[PartitionItem, ...]
    findings: tuple[FindingItem, ...]
    impact: ClusterImpact | None = None
    warnings: tuple[WarningItem, ...] = ()
    outcome: OutcomeItem
    topics: tuple[str, ...] = ()

    @cached_property
    def partitions_by_place(self) -> dict[tuple[str, int], PartitionItem]:
        """The partitions by topic and number."""
        return {(item.topic, item.partition): item for item in self.partitions}

    @property
    def hanging(self) -> tuple[FindingItem, ...]:
        """The findings that an abort marker would repair."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.HANGING)

    @property
    def doubtful(self) -> tuple[FindingItem, ...]:
        """The findings of which it could not be told whether they hang."""
        return tuple(in_doubt(self.findings, has_state=self.coverage.has_state))

    def outcome_at(self, fail_on: Verdict = Verdict.HANGING) -> Outcome:
        """How the run came out for somebody who asks for what is at or above a verdict."""
        has_state = self.coverage.has_state
        return outcome_of(self.findings, has_state=has_state, sight=self.sight, fail_on=fail_on)

    @property
    def sight(self) -> Sight:
        """Whether all was looked at that could hang, as far as the report goes."""
        return Sight.of(item.seen for item in self.partitions)._replace(has_logs=self.coverage.has_logs)
