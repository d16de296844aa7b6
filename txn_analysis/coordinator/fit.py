"""Whether the state fits the logs: their COMMIT markers are the coordinator's own, and test it.

Another cluster's state, a wrong count of partitions, or a state that was copied too early look like a coordinator that
knows of nothing; a commit that it should know of gives them away. `coordinator.marker_checks` asks
the markers of one producer; the sums of all producers decide. That both are of one cluster, the `cluster.id` of their
folders can show.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.coordinator.history import COMMIT
from txn_analysis.kafka.names import LOG, STATE_KINDS
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.logic import later_of
from txn_analysis.tables.inputs import InputSection, Manifest
from txn_analysis.text import utc

FOREIGN = "not one producer of the logs' ended transactions occurs in __transaction_state"
_MORE_AGAINST = "more COMMIT markers in the logs contradict __transaction_state than it confirms"
_ANOTHERS, _INCOMPLETE = "it is another cluster's", "it lacks records of its own ids"
UNCONFIRMED = (
    "it surely confirms no COMMIT marker of the logs that is as late as the data, so that it may be a clone's: give a "
    "partition with a later end marker"
)
NOT_SHOWN = (
    "nothing shows that it is the state of this cluster: no cluster.id names its files and those of the log, and it "
    "surely confirms no end marker of the logs that is as late as the data. Copy meta.properties beside both, audit "
    "the log directories, or give a partition with a later end marker"
)
_UNEXPLAINED = (
    "has no decision among the records that could be decoded: it may be one of the others. Copy, or dump, those so "
    "that each can be decoded"
)


class UnexplainedMarker(NamedTuple):
    """An end marker that speaks against the state, or against an assurance; the earliest one stands for all.

    `kind` is "" where a shallow dump does not print it.
    """

    at_ms: int
    topic: str
    partition: int
    offset: int
    producer_id: int
    kind: str = COMMIT

    def __str__(self) -> str:
        """Where it is, and of when."""
        where = f"{self.topic}-{self.partition}, offset {self.offset}"
        named = (
            f"the {self.kind} marker" if self.kind else "the end marker, of a kind that a shallow dump does not print,"
        )
        return f"{named} of producer {self.producer_id} at {where}, of {utc(self.at_ms)}"


class Contradictions(NamedTuple):
    """Markers whose decision the state would have, and has not.

    Attributes:
        marker_count: how many.
        of_asked: of each producer that is asked about, the first.
        first: the first of all producers.
        is_of_known: the state knows the producer of one of them.
    """

    marker_count: int
    of_asked: Mapping[int, UnexplainedMarker]
    first: UnexplainedMarker | None
    is_of_known: bool = False

    def plus(self, other: Contradictions) -> Contradictions:
        """The sum of both."""
        if not other.marker_count:
            return self
        of_asked = {i: min(w for w in (self.of_asked.get(i), w) if w) for i, w in other.of_asked.items()}
        first, is_of_known = _earlier(self.first, other.first), self.is_of_known or other.is_of_known
        return Contradictions(self.marker_count + other.marker_count, {**self.of_asked, **of_asked}, first, is_of_known)


NO_CONTRADICTION = Contradictions(0, {}, None)


@dataclass(frozen=True)
class MarkerSums:
    """What the end markers of some producers say of the state, in sum.

    Attributes:
        confirmed_count: COMMIT markers whose decision the state has.
        against: those that contradict it.
        more_if_nothing_was_lost: those that contradict it as well if no record of it was ever lost.
        later: a marker that is later than the state, and whose decision is not there.
        unprinted: a marker of unprinted kind, of no decision, that would contradict it if it were a COMMIT; of a
            producer that the state knows.
        unprinted_of_unknown: one of a producer that it does not know.
        unreached: a marker of an unknown producer that would contradict it if every partition reached past it.
        is_unsure: some COMMIT, or marker of unprinted kind, is not surely confirmed: its decision may be gone.
        sure_ms: when the newest of these was written that is surely confirmed; None without one.
        newest_ms: when the newest of these was written that is not later than the state's last moment.
        sure_of_any_ms: as `sure_ms`, of ABORT markers as well.
        unexplained: a marker that would contradict the state, or disprove that it was copied last, but that a record
            which could not be decoded may be its decision.
        has_later_unexplained: one that is later than the last moment of its id's partition is among these.
        has_recent: transactions ended not long ago, so that their ids cannot have expired.
        knows_recent: the state has, or had, the producer id of one of these.
        coordinator_epochs: by partition of the state the highest coordinator epoch of a marker of its ids' producers.
        unknown_coordinator_epoch: the highest one of markers of producers that the state does not know.
    """

    confirmed_count: int = 0
    against: Contradictions = NO_CONTRADICTION
    more_if_nothing_was_lost: Contradictions = NO_CONTRADICTION
    later: UnexplainedMarker | None = None
    unprinted: UnexplainedMarker | None = None
    unprinted_of_unknown: UnexplainedMarker | None = None
    unreached: UnexplainedMarker | None = None
    is_unsure: bool = False
    sure_ms: int | None = None
    newest_ms: int | None = None
    sure_of_any_ms: int | None = None
    unexplained: UnexplainedMarker | None = None
    has_later_unexplained: bool = False
    has_recent: bool = False
    knows_recent: bool = False
    coordinator_epochs: Mapping[int, int] = field(default_factory=dict)
    unknown_coordinator_epoch: int | None = None

    def plus(self, other: MarkerSums) -> MarkerSums:
        """The sum of both."""
        return MarkerSums(
            self.confirmed_count + other.confirmed_count,
            self.against.plus(other.against),
            self.more_if_nothing_was_lost.plus(other.more_if_nothing_was_lost),
            _earlier(self.later, other.later),
            _earlier(self.unprinted, other.unprinted),
            _earlier(self.unprinted_of_unknown, other.unprinted_of_unknown),
            _earlier(self.unreached, other.unreached),
            self.is_unsure or other.is_unsure,
            later_of(self.sure_ms, other.sure_ms),
            later_of(self.newest_ms, other.newest_ms),
            later_of(self.sure_of_any_ms, other.sure_of_any_ms),
            _earlier(self.unexplained, other.unexplained),
            self.has_later_unexplained or other.has_later_unexplained,
            self.has_recent or other.has_recent,
            self.knows_recent or other.knows_recent,
            {
                n: max(epochs.get(n, ABSENT) for epochs in (self.coordinator_epochs, other.coordinator_epochs))
                for n in self.coordinator_epochs.keys() | other.coordinator_epochs.keys()
            },
            later_of(self.unknown_coordinator_epoch, other.unknown_coordinator_epoch),
        )

    @property
    def if_nothing_was_lost(self) -> MarkerSums:
        """What they say if no record of the state was ever lost."""
        more = self.more_if_nothing_was_lost
        return replace(self, against=self.against.plus(more), more_if_nothing_was_lost=NO_CONTRADICTION)


def _earlier(one: UnexplainedMarker | None, other: UnexplainedMarker | None) -> UnexplainedMarker | None:
    return min((w for w in (one, other) if w is not None), default=None)


@dataclass(frozen=True)
class Fit:
    """Whether the state fits the logs.

    Attributes:
        unfit: why it does not for anything, whatever the markers say, in words.
        sums: what the markers say.
        in_any_case: those of `unfit` that nothing which could not be decoded would explain.
        is_partial: the end markers are those of some partitions alone: what the others would say is not known.
        of_one_cluster: partitions whose files, and those of the state, are of folders of one `cluster.id`.
    """

    unfit: tuple[str, ...] = ()
    sums: MarkerSums = MarkerSums()
    in_any_case: tuple[str, ...] = ()
    is_partial: bool = False
    of_one_cluster: Collection[TopicPartition] = frozenset()

    @property
    def misfits(self) -> tuple[str, ...]:
        """Why the state does not fit for anything, in words."""
        against = self.sums.against
        if against.marker_count <= self.sums.confirmed_count:
            return self.unfit
        whose = _INCOMPLETE if against.is_of_known or self.sums.confirmed_count else _ANOTHERS
        return (*self.unfit, f"{_MORE_AGAINST}: {whose} ({against.first})")

    def against(self, producer_id: int, *, is_known: bool) -> tuple[str, ...]:
        """Why the state does not fit as far as one producer goes, in words.

        A contradiction counts for its producer and for every unknown one: a missing partition or a wrong count of
        partitions looks like that.
        """
        of_producer = self.sums.against.of_asked.get(producer_id)
        witness = of_producer if is_known else of_producer or self.sums.against.first
        contradiction = (
            () if witness is None else (f"{witness}, has no decision in __transaction_state, which reaches past it",)
        )
        return (*self.misfits, *contradiction)

    def doubts(
        self, where: TopicPartition, by_ms: int | None, *, is_known: bool, is_copied_last: bool
    ) -> tuple[str, ...]:
        """Why the state may be another cluster's after all, or not all of it, in words; nothing hangs where it may be.

        A `cluster.id`, or an end marker that the state surely confirms, shows that it is the logs' own; a clone has the
        same id, and confirms what both have in common. A state that is compacted can have lost the decision of any
        marker, so that none contradicts it. Where it says nothing of some COMMIT marker, it must confirm another one as
        late as the data. And no marker contradicts the logs' own state; one whose kind a shallow dump does not print
        may be an administrator's abort, which costs an answer. For unknown producers those of other unknown ones count
        as well, and those that would contradict it if it was copied last, as the operator says.

        Args:
            where: the partition of the open data.
            by_ms: when that was written at the latest, less what clocks may differ; None where nothing bounds it.
            is_known: the state has, or had, its producer id.
            is_copied_last: the state was copied after the logs.
        """
        sums = self.sums
        witnesses = [sums.against.first, sums.unprinted]
        if not is_known:
            witnesses += [sums.unprinted_of_unknown, sums.unreached if is_copied_last else None]
        is_own = where in self.of_one_cluster or _is_as_late(sums.sure_of_any_ms, by_ms)
        is_confirmed = _is_as_late(sums.sure_ms, sums.newest_ms if by_ms is None else by_ms)
        unconfirmed = (UNCONFIRMED,) if (sums.is_unsure or self.is_partial) and not is_confirmed else ()
        shown = () if is_own else (NOT_SHOWN,)
        unexplained = () if sums.unexplained is None else (f"{sums.unexplained}, {_UNEXPLAINED}",)
        contradictions = (f"{w}, has no decision in it" for w in witnesses if w is not None)
        return (*shown, *unconfirmed, *contradictions, *unexplained)


def _is_as_late(marker_ms: int | None, since_ms: int | None) -> bool:
    """A marker was written, and no earlier; never where nothing tells since when."""
    return marker_ms is not None and since_ms is not None and marker_ms >= since_ms


def fit_of(
    sums: MarkerSums,
    *,
    misplaced: str | None,
    cluster_ids: Collection[str],
    is_partial: bool = False,
    of_one_cluster: Collection[TopicPartition] = frozenset(),
    has_undecodable: bool = False,
) -> Fit:
    """Whether the state fits the logs.

    Args:
        sums: what the end markers of all logs say.
        misplaced: that ids lie in partitions that their hash does not give, in words; None where all lie well.
        cluster_ids: every `cluster.id` that a log directory states in its `meta.properties`.
        is_partial: only some logs are asked for.
        of_one_cluster: as of `Fit`.
        has_undecodable: some record of the state could not be decoded, and may name any producer.
    """
    several = f"the files are of several clusters: cluster.id {' and '.join(sorted(cluster_ids))}"
    in_any_case = (*([] if misplaced is None else [misplaced]), *([several] if len(cluster_ids) > 1 else []))
    is_foreign = sums.has_recent and not sums.knows_recent and not has_undecodable
    return Fit((*in_any_case, *([FOREIGN] if is_foreign else [])), sums, in_any_case, is_partial, of_one_cluster)


def of_one_cluster(sections: Collection[InputSection], manifests: Collection[Manifest]) -> frozenset[TopicPartition]:
    """The partitions whose files in the judged capture are all of one cluster, which is that of all of the state's.

    Args:
        sections: all of the evidence; `cluster_id` is that of the folder of each.
        manifests: those of the judged capture; one that was cut short proves nothing.
    """
    named = {
        file.input_id: manifest.cluster_id
        for manifest in manifests
        if manifest.is_complete
        for file in manifest.files
        if file.input_id is not None
    }
    clusters = [(s, s.cluster_id or named.get(s.input_id)) for s in sections if not s.capture_rank]
    of_state = {cluster for section, cluster in clusters if section.kind in STATE_KINDS}
    if len(of_state) != 1 or None in of_state:
        return frozenset()
    logs = [(TopicPartition(s.topic, s.partition), cluster in of_state) for s, cluster in clusters if s.kind == LOG]
    return frozenset(where for where, _ in logs) - {where for where, is_its_own in logs if not is_its_own}
