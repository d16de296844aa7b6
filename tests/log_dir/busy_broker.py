"""A broker that never rests, made up: its log directory changes in all ways in which a broker's does."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.log_dir.encoder import encoded, snapshot_bytes
from tests.log_dir.test_segments import data, marker
from tests.oracle.broker import Partition
from tests.oracle.model import Batch

BATCHES_PER_SEGMENT = 6
NEVER_ENDED = 99  # a producer whose transaction stays open from the second file of the log on


@dataclass
class _Partition:
    """The log of one partition, as far as it was written."""

    folder: Path
    kept_segments: int
    state: Partition = field(default_factory=Partition)
    bases: list[int] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.state.end_offset

    def append(self) -> None:
        """The next batch."""
        if self.end % BATCHES_PER_SEGMENT == 0:
            self._roll()
        batch = self._next()
        self.state.append(batch)
        self._append(f"{self.bases[-1]:020}.log", encoded(batch))

    def _append(self, name: str, content: bytes) -> None:
        """In two writes, between which a reader can come."""
        with open(self.folder / name, "ab", buffering=0) as file:
            file.write(content[: len(content) // 2])
            file.write(content[len(content) // 2 :])

    def _next(self) -> Batch:
        offset = self.end
        if offset == BATCHES_PER_SEGMENT:
            return data(offset, producer=NEVER_ENDED)
        return data(offset, producer=1) if offset % 2 == 0 else marker(offset, producer=1)

    def _roll(self) -> None:
        """A new file, with the snapshot of all before it; retention takes the oldest file."""
        if self.end:
            # Under its own name at once (`ProducerStateManager.writeSnapshot`), so that it can be read half written.
            self._append(f"{self.end:020}.snapshot", snapshot_bytes(self.state.snapshot()))
        self.bases.append(self.end)
        (self.folder / f"{self.end:020}.log").write_bytes(b"")
        replace_file(self.folder / "leader-epoch-checkpoint", f"0\n1\n0 {self.bases[-1]}\n".encode())
        if len(self.bases) > self.kept_segments:
            self._delete(self.bases.pop(0))

    def _delete(self, base: int) -> None:
        for suffix in ("log", "snapshot"):
            file = self.folder / f"{base:020}.{suffix}"
            if file.exists():
                file.rename(f"{file}.deleted").unlink()


def replace_file(path: Path, content: bytes) -> None:
    """As brokers write checkpoints: a new file beside it, which takes its name."""
    new = path.with_name(f"{path.name}.tmp")
    new.write_bytes(content)
    new.rename(path)


class BusyBroker:
    """Writes to a log directory in a thread until the `with` block ends."""

    def __init__(self, root: Path, *, pause_s: float, kept_segments: int, partitions: int = 3) -> None:
        self.root, self._pause_s = root, pause_s
        self._partitions = [_Partition(root / f"orders-{number}", kept_segments) for number in range(partitions)]
        for partition in self._partitions:
            partition.folder.mkdir(parents=True)
        # Of a partition that was never written: no segment file with a batch, and a checkpoint of zero bytes.
        idle = root / f"orders-{partitions}"
        idle.mkdir()
        (idle / f"{0:020}.log").write_bytes(b"")
        (idle / "leader-epoch-checkpoint").write_bytes(b"")
        (root / f"orders-{partitions + 1}").mkdir()  # made, and without a file so far
        self._is_over = threading.Event()
        self._has_changed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="busy-broker")
        self.problem: BaseException | None = None
        self.rounds = 0

    def __enter__(self) -> Self:
        for _ in range(3 * BATCHES_PER_SEGMENT):
            self._round()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def next_round(self) -> None:
        """Waits until every partition has grown once more."""
        for _ in range(2):  # the first one may have begun before
            self._has_changed.clear()
            assert self._has_changed.wait(60), self.problem

    def _work(self) -> None:
        try:
            while not self._is_over.wait(self._pause_s):
                self._round()
                self._has_changed.set()
        except OSError as error:  # for the test to see
            self.problem = error

    def _round(self) -> None:
        for partition in self._partitions:
            partition.append()
        self.rounds += 1
        ends = "".join(f"orders {number} {p.end}\n" for number, p in enumerate(self._partitions))
        starts = "".join(f"orders {number} {p.bases[0]}\n" for number, p in enumerate(self._partitions))
        replace_file(self.root / "replication-offset-checkpoint", f"0\n{len(self._partitions)}\n{ends}".encode())
        replace_file(self.root / "log-start-offset-checkpoint", f"0\n{len(self._partitions)}\n{starts}".encode())
