"""What the manifests of a copy prove for a judgement, and what a report says of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from txn_analysis.columns.arrays import ABSENT
from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
from txn_analysis.judge.manifest_proof import ManifestProof
from txn_analysis.kafka.names import STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.tables import PartitionHealth
from txn_analysis.tables.inputs import InputSection, Manifest
from txn_analysis.text import utc


@dataclass(frozen=True)
class Copied:
    """What the manifests of one capture prove.

    Attributes:
        manifest_count: how many there are.
        is_state_last: they take the place of --state-copied-last.
        disproof: that the state was not copied last, in words; None where nothing says so.
        doubts: why they do not take its place, in words.
        reach_ms: by partition, up to when its log was whole.
        unproven: by partition with a segment, why it has no such moment.
        torn: the partitions of the state that were not read to their end.
        whole_folders: the partitions of the state of whose folders no file is missing.
        copied_ms: by partition, when a broker had read the last byte of its log, by that broker's clock.
    """

    manifest_count: int = 0
    is_state_last: bool = False
    disproof: str | None = None
    doubts: tuple[str, ...] = ()
    reach_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    unproven: Mapping[TopicPartition, str] = field(default_factory=dict)
    torn: frozenset[int] = frozenset()
    whole_folders: frozenset[int] = frozenset()
    copied_ms: Mapping[TopicPartition, int] = field(default_factory=dict)

    def void(self, reason: str) -> Copied:
        """They prove nothing, as the files themselves disprove the order."""
        unproven = {**self.unproven, **dict.fromkeys(self.reach_ms, reason)}
        doubts = (reason, *self.doubts)
        nothing = replace(self, is_state_last=False, reach_ms={}, whole_folders=frozenset(), copied_ms={})
        return replace(nothing, doubts=doubts, unproven=unproven)

    def plain(self) -> dict[str, object]:
        """What a report says of it: the part of the column `state_coverage` of `runs`."""
        by_reason: dict[str, int] = {}
        for reason in self.unproven.values():
            by_reason[reason] = by_reason.get(reason, 0) + 1
        values = asdict(self) | {"doubts": [*self.doubts], "reach_ms": len(self.reach_ms), "unproven": by_reason}
        values |= {"torn": sorted(self.torn), "whole_folders": sorted(self.whole_folders)}
        del values["copied_ms"]
        return {"reached_count" if name == "reach_ms" else name: value for name, value in values.items()}

    def as_read(self, state: StateEvidence) -> StateEvidence:
        """The state, with what was not read of it to the end, and with what is known to be no file's loss.

        End: a partition counts as whole only where it was read to the end. Whole folder: where no file is missing, a
        hole between two of them is the cleaner's.
        """
        if not self.torn and not self.whole_folders:
            return state
        return replace(state, partitions=[self._as_read(partition) for partition in state.partitions])

    def _as_read(self, partition: StatePartition) -> StatePartition:
        torn = [_TORN] if partition.state_partition in self.torn else []
        is_folder_whole = partition.state_partition in self.whole_folders
        return replace(partition, problems=[*partition.problems, *torn], is_folder_whole=is_folder_whole)

    def evidence(self, where: TopicPartition) -> tuple[str, ...]:
        """What they prove for one partition, in words."""
        last = "a manifest: __transaction_state was copied after every log, whole, from its leaders"
        reach_ms = self.reach_ms.get(where)
        reach = f"a manifest: the log was whole at {utc(reach_ms)}, copied from its leader"
        return (*([last] if self.is_state_last else []), *([reach] if reach_ms is not None else []))

    def missing_order(self) -> str | None:
        """Why they do not prove that the state was copied last; None where they do, or there are none."""
        if not self.manifest_count or self.is_state_last:
            return None
        return f"a manifest that proves the order: {self.disproof or next(iter(self.doubts), 'it does not')}"

    def missing_reach(self, where: TopicPartition) -> str | None:
        """Why they do not prove how far a log reaches; None where they do, or there are none."""
        reason = self.unproven.get(where)
        return None if not self.manifest_count or reason is None else f"a manifest that proves how far: {reason}"


NOTHING_COPIED = Copied()
_TORN = "a manifest says that it was not read to its end: its segments changed meanwhile"


def copied_by(
    manifests: Sequence[Manifest],
    sections: Collection[InputSection],
    state: StateEvidence,
    partitions: Mapping[TopicPartition, PartitionHealth],
    max_clock_skew_ms: int,
) -> Copied:
    """What the manifests of one capture prove.

    Args:
        manifests: of the capture.
        sections: all of the evidence.
        state: what was seen of `__transaction_state`.
        partitions: the health of every partition of the capture.
        max_clock_skew_ms: as for the audit.
    """
    if not manifests:
        return NOTHING_COPIED
    proof = ManifestProof(manifests, sections, max_clock_skew_ms)
    order = proof.order
    doubts = [*order.doubts, *_doubts_of_state(proof, state)]
    if not (order.is_proven or doubts or order.disproof):
        doubts = ["by its times the state was not copied after every log"]
    last_moments_ms = {where: health.last_moment_ms for where, health in partitions.items()}
    logs = [where for where, health in partitions.items() if where.topic != STATE_TOPIC and health.is_in_capture]
    reached = {where: proof.reach_ms(where, last_moments_ms) for where in logs}
    no_order = order.disproof or next(iter(order.doubts), "no order is proven")
    return Copied(
        len(manifests),
        order.is_proven and not doubts,
        order.disproof,
        tuple(dict.fromkeys(doubts)),
        {where: ms for where, ms in reached.items() if ms is not None},
        {
            where: proof.why_not_whole(where) or (no_order if not order.is_proven else "no file was read before it")
            for where, ms in reached.items()
            if ms is None
        },
        frozenset(where.partition for where in proof.torn if where.topic == STATE_TOPIC),
        frozenset(w.partition for w, copy in proof.whole.items() if w.topic == STATE_TOPIC and copy.is_folder_whole),
        {where: ms for where in logs if (ms := proof.copied_ms(where)) is not None},
    )


def _doubts_of_state(proof: ManifestProof, state: StateEvidence) -> list[str]:
    """Leader and End of all partitions of the state; an end marker's coordinator epoch is one of a leader as well.

    Whose marker it is shows of which partition that epoch is. Of a producer that nothing knows it may be of any: where
    it is above the epochs of all, all are void.
    """
    doubts, epochs, leader_epochs = [], state.fit.sums.coordinator_epochs, list[int]()
    for partition in state.expected:
        where = TopicPartition(STATE_TOPIC, partition.state_partition)
        copy = proof.whole.get(where)
        if copy is None:
            doubts.append(f"{where}: {proof.why_not_whole(where)}")
            continue
        leader_epochs.append(copy.leader_epoch)
        of_markers = epochs.get(partition.state_partition, ABSENT)
        if of_markers > copy.leader_epoch:
            doubts.append(f"{where}: an end marker knows leader epoch {of_markers} of it")
    unknown = state.fit.sums.unknown_coordinator_epoch
    if unknown is not None and leader_epochs and unknown > max(leader_epochs):
        doubts.append(f"an end marker knows leader epoch {unknown} of some partition of {STATE_TOPIC}")
    return doubts
