"""The report of one run as data; text and JSON are renderings of it."""

from __future__ import annotations

import html
import inspect
import time
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, partial
from typing import Annotated, Any, Self, get_type_hints

from annotated_types import GroupedMetadata
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, WrapValidator, create_model

from txn_analysis.judge.applications import ConnectGroups
from txn_analysis.judge.lacks import Lack
from txn_analysis.judge.outcome import Answer, LogCoverage, Outcome, outcome_of, rows_in_doubt
from txn_analysis.kafka.transactions import LATE_TRANSACTION_BUFFER_MS, Ending
from txn_analysis.log.two_logs import TwoClusters
from txn_analysis.plan.standing import AcceptedFinding, Since, Standing, StillOpen, ToldFinding, unaccepted
from txn_analysis.report.upcoming import Upcoming
from txn_analysis.settings import EngineName, Settings
from txn_analysis.tables import Finding, FoundCause, Impact, PartitionHealth, Problem
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.findings import SINGLE_VALUES, Confidence
from txn_analysis.tables.inputs import AskedPartition, ReadInput
from txn_analysis.verdict import Verdict

SCHEMA_VERSION = 3


class Item(BaseModel):
    """What all items of a report share."""

    # The rows of the tables have more columns than the report shows.
    # Each field is there in JSON, also one that has a default. What a question does not ask for is never built.
    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_serialization_defaults_required=True, defer_build=True
    )


class InJson(GroupedMetadata):
    """Makes pydantic take a record of a table as it is, and write it as an object with the record's own description.

    Its fields are the record's, and what properties say of it, if they are named in `shown`.
    """

    def __init__(
        self, kind: Any, name: str = "", shown: Iterable[str] = (), needed: Collection[str] = frozenset()
    ) -> None:
        """Of a kind of record.

        Args:
            kind: the record's class.
            name: of the object in the schema; the class's own where none is given.
            shown: its fields, in order; all where none is named.
            needed: fields that are always there, though the record has a default for rows without their column.
        """
        types = {name: get_type_hints(p.fget)["return"] for name, p in vars(kind).items() if isinstance(p, property)}
        hints, defaults = get_type_hints(kind) | types, kind._field_defaults
        fields: dict[str, Any] = {
            one: (_IN_JSON.get(hints[one], hints[one]), ... if one in needed else defaults.get(one, ...))
            for one in shown or kind._fields
        }
        self._item = create_model(name or kind.__name__, __base__=Item, __doc__=inspect.getdoc(kind), **fields)

    def __iter__(self) -> Iterator[object]:
        yield WrapValidator(lambda record, _: record)
        yield PlainSerializer(partial(self._item.model_validate, from_attributes=True), return_type=self._item)


_IN_JSON: dict[Any, Any] = {Confidence: str}
"""By a field's type what it is as JSON, where that is another one."""
CauseItem = Annotated[FoundCause, InJson(FoundCause, "CauseItem")]
ImpactItem = Annotated[Impact, InJson(Impact, "ImpactItem")]
EndingItem = Annotated[Ending, InJson(Ending, "EndingItem")]
PartitionProblem = Annotated[Problem, InJson(Problem, "PartitionProblem")]
ToldItem = Annotated[ToldFinding, InJson(ToldFinding, "ToldItem")]
StillItem = Annotated[StillOpen, InJson(StillOpen, "StillItem")]
_IN_JSON |= {
    tuple[Problem, ...]: tuple[PartitionProblem, ...],
    tuple[ToldFinding, ...]: tuple[ToldItem, ...],
    tuple[StillOpen, ...]: tuple[StillItem, ...],
    FoundCause | None: CauseItem | None,
    Impact | None: ImpactItem | None,
    Ending | None: EndingItem | None,
}
SinceItem = Annotated[Since, InJson(Since, "SinceItem")]
AcceptedItem = Annotated[AcceptedFinding, InJson(AcceptedFinding, "AcceptedItem")]
UpcomingItem = Annotated[Upcoming, InJson(Upcoming, "UpcomingItem")]

_SENTENCES = ("evidence", "missing_evidence")
_OF_FINDINGS = *(name for name in SINGLE_VALUES if name not in {"run_id", "application"}), *_SENTENCES
_SHOWN = (*_OF_FINDINGS, "cause", "impact", "application", "ending")
FindingItem = Annotated[Finding, InJson(Finding, "FindingItem", _SHOWN, needed=frozenset(_SENTENCES))]
# They are kept as rows, and written as a list of objects.
FindingItems = Annotated[
    FindingRows, PlainValidator(FindingRows.of), PlainSerializer(tuple, return_type=tuple[FindingItem, ...])
]


class PruneItem(Item):
    """What age took out of the warehouse before the run, and the run's findings without an answer that may lack it.

    It was done at `pruned_ms`, and took files that were copied before `before_ms`.
    """

    prune_id: str
    pruned_ms: int
    before_ms: int
    finding_ids: tuple[str, ...]


class EarlierFiles(Item):
    """What the run's capture had already when files were added to it; `newest_moment_ms` is of its brokers' clocks."""

    file_count: int
    newest_moment_ms: int | None


class RunItem(Item):
    """What was asked, and of which evidence. `as_of_ms` is None where no broker's clock speaks.

    Of `earlier_captures`, `forgotten_captures` are not in the warehouse any more; `prunes` took files before the run.
    `engine` judged it, and `earlier_files` were in its capture already; None where the report was made of the tables,
    which do not say.
    """

    run_id: str
    cluster: str
    capture: str
    earlier_captures: tuple[str, ...] = ()
    forgotten_captures: tuple[str, ...] = ()
    prunes: tuple[PruneItem, ...] = ()
    as_of_ms: int | None
    as_of_basis: str | None
    parameters: dict[str, Any]
    verdict_counts: dict[str, int]
    engine: EngineName | None = None
    earlier_files: EarlierFiles | None = None

    @property
    def late_after_ms(self) -> int:
        """The bound that the run judged by: a transaction that has been idle for longer is late (KIP-664)."""
        return self.max_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    @property
    def max_timeout_ms(self) -> int:
        """The brokers' transaction.max.timeout.ms, as the run was told it."""
        return int(self.parameters["transaction_max_timeout_ms"])

    @property
    def plan_valid_ms(self) -> int:
        """How long the run's abort plan holds."""
        return int(self.parameters.get("plan_valid_ms", Settings.model_fields["plan_valid_ms"].default))


_BYTES = ("size_bytes", "text_bytes", "parsed_bytes", "rejected_bytes")
_OF_INPUTS = ("input_id", "path", "kind", "grammar", *_BYTES, "problem")
InputItem = Annotated[ReadInput, InJson(ReadInput, "InputItem", _OF_INPUTS)]


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
    shows it escapes it. `text` says what was seen and what will happen, in words of the house alone; `count` how many
    ids the line stands for, and `example` is the worst of them. `at_ms` is when it happens to that one; None where no
    clock says that.
    """

    kind: str
    subject: str
    example: str | None = None
    text: str
    count: int = 1
    at_ms: int | None = None


_OF_PARTITIONS = (
    *("topic", "partition", "is_in_capture", "first_offset", "end_offset", "last_stable_offset"),
    *("open_transaction_count", "hidden_record_count", "hidden_bytes", "log_bytes", "last_moment_ms"),
    *("first_leader_epoch", "leader_epoch", "snapshot_offset", "problems", "witnesses", "remarks", "impact"),
)
PartitionItem = Annotated[PartitionHealth, InJson(PartitionHealth, "PartitionItem", _OF_PARTITIONS)]


AskedPartitionItem = Annotated[AskedPartition, InJson(AskedPartition, "AskedPartitionItem")]


class SkippedInput(Item):
    """One input that was not, or not wholly, understood; present only with `--skip-unrecognised`."""

    path: str
    problem: str


class Coverage(Item):
    """How much of the truth the run could see.

    `transaction_state` is what was seen of `__transaction_state`, as the run recorded it. `partitions_missing` are
    partitions that an earlier capture of the cluster holds and this one does not. `has_logs` says that the log of at
    least one partition is in the capture, beside those of `__transaction_state`. `asked` are the partitions that alone
    were asked for, all of a topic where `partition` is null: of others nothing is said; empty where all were.
    `verified_part` is always null: an option of 1.0 filled it.
    """

    transaction_state: dict[str, Any]
    has_logs: bool
    partitions_seen: int
    partitions_missing: tuple[str, ...]
    parsed_bytes: int
    rejected_bytes: int
    skipped_inputs: tuple[SkippedInput, ...]
    asked: tuple[AskedPartitionItem, ...] = ()
    verified_part: None = None

    @property
    def disproved(self) -> dict[str, str]:
        """By the name of its setting, what disproves an assurance of the operator, in words."""
        return self.transaction_state.get("disproved") or {}

    @property
    def clusters(self) -> TwoClusters | None:
        """What looks like two clusters; None where nothing does."""
        written = self.transaction_state.get("clusters")
        return None if written is None else TwoClusters(*(written[name] for name in TwoClusters._fields))

    @property
    def connect_groups(self) -> ConnectGroups:
        """The groups of Kafka Connect that the state names."""
        return ConnectGroups.in_coverage(self.transaction_state)

    @property
    def has_state(self) -> bool:
        """At least one partition of `__transaction_state` was given."""
        return bool(self.transaction_state.get("seen"))


class Remedy(Item):
    """What would settle some of the open transactions that are in doubt: the option or the file, in words.

    `lack` is what is missing, as one of a closed list; `missing` says it in words. What stands between backticks is to
    be typed; `partitions` are theirs.
    """

    lack: Lack
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

    Findings: worst verdict first, then topic, partition, start offset. `since` holds them against the run before; None
    where no earlier run of the cluster is in the warehouse. `accepted` says what people decided about findings: what is
    accepted stays among the findings, and `outcome` leaves it out. `upcoming` is what happens because of findings: what
    has happened, then the soonest, counted from the copy; `upcoming_left_out_count` more is not in it.
    `anonymized` says of a report whose names are pseudonyms what its reader can do and what not; None of all others.
    """

    schema_version: int = SCHEMA_VERSION
    anonymized: str | None = None
    run: RunItem
    inputs: tuple[InputItem, ...]
    coverage: Coverage
    partitions: tuple[PartitionItem, ...]
    findings: FindingItems
    impact: ClusterImpact | None = None
    warnings: tuple[WarningItem, ...] = ()
    outcome: OutcomeItem
    since: SinceItem | None = None
    accepted: tuple[AcceptedItem, ...] = ()
    topics: tuple[str, ...] = ()
    upcoming: tuple[UpcomingItem, ...] = ()
    upcoming_left_out_count: int = 0
    _options: str = ""

    def with_options(self, options: str) -> Self:
        """The report itself, whose page in a notebook has commands with these options; see `Reader`."""
        self._options = options
        return self

    def _repr_html_(self) -> str:
        """What a notebook shows: the page, in a frame of its own, so that neither style touches the other."""
        from txn_analysis.report.figures import Reader  # they know this class
        from txn_analysis.report.html.page import html_report

        now_ms = time.time_ns() // 1_000_000  # no verdict looks at it
        page = html_report(self, reader=Reader(self._options, now_ms=now_ms))
        looks = "width: 100%; height: 80vh; border: 0"
        title = "Kafka transactions, audited by txn-analysis"
        return f'<iframe title="{title}" style="{looks}" sandbox="allow-scripts" srcdoc="{html.escape(page)}"></iframe>'

    @cached_property
    def partitions_by_place(self) -> dict[tuple[str, int], PartitionItem]:
        """The partitions by topic and number."""
        return {(item.topic, item.partition): item for item in self.partitions}

    def findings_on(self, topic: str, partition: int) -> FindingRows:
        """The findings of a partition, in their order."""
        return self.findings.at(self._places_of_findings.get((topic, partition), []))

    @cached_property
    def _places_of_findings(self) -> dict[tuple[str, int], list[int]]:
        places: dict[tuple[str, int], list[int]] = {}
        columns = (self.findings.column(name).to_pylist() for name in ("topic", "partition"))
        for place, where in enumerate(zip(*columns, strict=True)):
            places.setdefault(where, []).append(place)
        return places

    @cached_property
    def unaccepted(self) -> FindingRows:
        """The findings that nobody accepted, or that came back: headline, exit code and metrics are about these."""
        return unaccepted(self.findings, self.accepted)

    @property
    def counted_accepted(self) -> tuple[AcceptedFinding, ...]:
        """What is accepted and counts as that."""
        return tuple(one for one in self.accepted if one.standing is Standing.ACCEPTED)

    @cached_property
    def hanging(self) -> FindingRows:
        """The findings that an abort marker would repair, without what is accepted."""
        return self.unaccepted.of_verdict(Verdict.HANGING)

    @property
    def doubtful(self) -> FindingRows:
        """The findings of which it could not be told whether they hang, without what is accepted."""
        return rows_in_doubt(self.unaccepted, has_state=self.coverage.has_state)

    @cached_property
    def being_written(self) -> FindingRows:
        """Of those without an answer those that began just before the copy: they change no answer of the run."""
        if not self.coverage.has_state:
            return self.findings[:0]
        inconclusive = self.unaccepted.of_verdict(Verdict.INCONCLUSIVE)
        return inconclusive.where([one.is_recent is True for one in inconclusive.records(Answer)])

    def outcome_at(self, fail_on: Verdict = Verdict.HANGING) -> Outcome:
        """How the run came out for somebody who asks for what is at or above a verdict."""
        has_state = self.coverage.has_state
        return outcome_of(self.unaccepted.records(Answer), has_state=has_state, logs=self.log_coverage, fail_on=fail_on)

    @property
    def log_coverage(self) -> LogCoverage:
        """Whether all was looked at that could hang, as far as the report goes."""
        return LogCoverage.of(self.partitions)._replace(has_logs=self.coverage.has_logs)
