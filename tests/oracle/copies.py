"""What the simulated brokers keep of a partition, and what an operator's copy of it holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.oracle.broker import Partition, ProducerEntry, replay
from tests.oracle.dump_writer import Tool, log_files, snapshot_section
from tests.oracle.model import Batch, History, Segment, StateRecord
from tests.oracle.state_writer import console_json, console_text

PRESENT = 1 << 60
OpenKey = tuple[str, int, int, int]
"""Topic, partition, producer id, start offset."""


class Truth(StrEnum):
    """What became of a transaction that is open in a copy, at the cluster's present moment."""

    LIVE = "live"  # the coordinator has the partition in an ongoing transaction of this producer
    PENDING = "pending"  # the outcome is decided, this partition's marker is on its way
    ENDED_BY_COORDINATOR = "ended_by_coordinator"  # after the copy
    ENDED_BY_ADMINISTRATOR = "ended_by_administrator"  # after the copy
    HANGING = "hanging"  # nobody will write a marker

    @property
    def is_abort_wrong(self) -> bool:
        """Whether an abort would lose or contradict what the coordinator decides."""
        return self in {Truth.LIVE, Truth.PENDING, Truth.ENDED_BY_COORDINATOR}


@dataclass
class Log:
    """One partition of the leader, with the moments of all that happened to it."""

    topic: str
    partition: int
    skew_ms: int = 0
    is_log_append_time: bool = False
    batches: list[tuple[int, Batch]] = field(default_factory=list)
    rolls: list[tuple[int, int]] = field(default_factory=list)
    starts: list[tuple[int, int]] = field(default_factory=list)
    state: Partition = field(default_factory=Partition)
    administrator_markers: set[int] = field(default_factory=set)

    def segments(self, moment: int) -> History:
        """The files at that moment."""
        bases = [0, *(offset for at, offset in self.rolls if at <= moment)]
        start = max((offset for at, offset in self.starts if at <= moment), default=0)
        kept = [(base, end) for base, end in zip(bases, [*bases[1:], PRESENT], strict=True) if end > start]
        seen = [batch for at, batch in self.batches if at <= moment]
        files = (Segment(base, tuple(batch for batch in seen if base <= batch.base_offset < end)) for base, end in kept)
        return History(self.topic, self.partition, tuple(files))

    def snapshot(self, offset: int) -> dict[int, ProducerEntry]:
        """The producer snapshot that was written when a segment began there."""
        return replay((batch for _, batch in self.batches), below=offset).snapshot()


@dataclass(frozen=True)
class Copy:
    """Files copied off the brokers, and the truth about each transaction that is open in them.

    The keys are what the files say with their snapshots; ask `Cluster.truth` for a start that was found without them.
    """

    logs: tuple[History, ...]
    states: tuple[History, ...]
    snapshots: Mapping[tuple[str, int], dict[int, ProducerEntry]]
    open_transactions: Mapping[OpenKey, Truth]
    copied_ms: int

    def files(self, tool: Tool, *, snapshots: bool = True) -> dict[str, bytes]:
        """Dump texts by file name: logs as the tool's flags say, the state decoded, snapshots where there are any."""
        texts = log_files(self.logs, tool) | log_files(self.states, replace(tool, deep=True, payload=True))
        for (folder, offset), producers in self.snapshots.items() if snapshots else ():
            texts[f"{folder}.{offset}.snapshot.txt"] = snapshot_section(folder, offset, producers, tool).encode()
        return texts

    def state_records(self) -> list[StateRecord]:
        """The records of all copied state partitions, each partition in order."""
        batches = (batch for history in self.states for batch in history.batches)
        return [record.state for batch in batches for record in batch.all_records() if record.state]

    def console(self, *, as_json: bool) -> bytes:
        """The same state as an export by a console consumer."""
        records = self.state_records()
        return (console_json(records) if as_json else console_text(records)).encode()
