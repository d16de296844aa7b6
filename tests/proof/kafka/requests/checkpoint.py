"""What a broker says of some partitions and ids at one moment, and its files of that moment."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.systems.e2e.requests import EARLIEST, LATEST, READ_COMMITTED, ActiveProducer, Requests, Transaction
from tests.systems.e2e.wire import Place

STATE, GROUPS = "__transaction_state", "__consumer_offsets"

_AT_WORK = {"PrepareCommit", "PrepareAbort"}
_RUNNING = {"Ongoing", *_AT_WORK}
_OF_LOG_DIR = {
    "replication-offset-checkpoint": "high watermarks",
    "log-start-offset-checkpoint": "log starts",
    "meta.properties": "the cluster's id",
}
_NO_EVIDENCE = {".index", ".timeindex"}
_ATTEMPTS = 2000
_PAUSE_S = 0.03
_PATIENCE_S = 1.0


@dataclass(frozen=True)
class Partition:
    """What the leader of one partition says."""

    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    producers: Mapping[int, ActiveProducer]


@dataclass(frozen=True)
class Said:
    """What a broker says; `transactions` is None where it cannot be asked."""

    partitions: Mapping[Place, Partition]
    transactions: Mapping[str, Transaction] | None


@dataclass(frozen=True)
class Asked:
    """What a broker is asked for.

    Attributes:
        places: partitions.
        ids: transactional ids, beside all that have a transaction in progress.
        stuck: ids whose markers never arrive, so that nobody waits for them; those that were waited for are added.
        knows_transactions: brokers before 3.0 cannot be asked for them.
    """

    places: Sequence[Place]
    ids: Sequence[str]
    stuck: set[str]
    knows_transactions: bool


def ask(broker: Requests, asked: Asked) -> Said:
    """What a broker says now."""
    partitions = {place: _partition(broker, place) for place in asked.places}
    if not asked.knows_transactions:
        return Said(partitions, None)
    running = [name for name, state in broker.transactional_ids().items() if state in _RUNNING]
    names = dict.fromkeys([*asked.ids, *running])
    found = {name: described for name in names if (described := broker.transaction(name)) is not None}
    return Said(partitions, found)


def _partition(broker: Requests, place: Place) -> Partition:
    return Partition(
        broker.offset(place, EARLIEST),
        broker.offset(place, LATEST),
        broker.offset(place, LATEST, READ_COMMITTED),
        {producer.producer_id: producer for producer in broker.producers(place)},
    )


@dataclass(frozen=True)
class Checkpoint:
    """A copy of a broker's files, and what it said before and after it was made, which is the same.

    Attributes:
        folder: the copy.
        said: by the broker.
        as_of_ms: when it was copied.
    """

    folder: Path
    said: Said
    as_of_ms: int


def take(broker: Requests, log_dir: Path, target: Path, asked: Asked) -> Checkpoint:
    """Ask, copy, and ask again, until nothing has moved in between.

    Raises:
        AssertionError: it never stands still.
    """
    before = _settled(broker, asked)
    for _ in range(_ATTEMPTS):
        if _is_written(log_dir, before):
            as_of_ms = time.time_ns() // 1_000_000
            _copy(log_dir, target, {topic for topic, _ in asked.places})
            after = ask(broker, asked)
            if after == before:
                return Checkpoint(target, before, as_of_ms)
        time.sleep(_PAUSE_S)
        before = ask(broker, asked)
    raise AssertionError(f"the broker never stands still: {log_dir}")


def _settled(broker: Requests, asked: Asked) -> Said:
    """What it says once no marker is on its way."""
    until = time.monotonic() + _PATIENCE_S
    said = ask(broker, asked)
    at_work: set[str] = set()
    while time.monotonic() < until:
        time.sleep(_PAUSE_S)
        before, said = said, ask(broker, asked)
        known = said.transactions or {}
        at_work = {name for name in known.keys() - asked.stuck if known[name].state in _AT_WORK}
        if said == before and not at_work:
            break
    asked.stuck.update(at_work)
    return said


def _is_written(log_dir: Path, said: Said) -> bool:
    """Whether the broker has written its high watermarks and log starts down."""
    marks = _offsets(log_dir / "replication-offset-checkpoint")
    starts = _offsets(log_dir / "log-start-offset-checkpoint")
    return all(
        marks.get(place) == partition.log_end_offset
        and max(starts.get(place, 0), _first_file(log_dir, place)) == partition.log_start_offset
        for place, partition in said.partitions.items()
    )


def _first_file(log_dir: Path, place: Place) -> int:
    topic, partition = place
    return min(int(file.stem) for file in (log_dir / f"{topic}-{partition}").glob("*.log"))


def _offsets(file: Path) -> dict[Place, int]:
    try:
        lines = file.read_text().splitlines()[2:]
    except FileNotFoundError:
        return {}  # it is being replaced
    words = [line.split() for line in lines]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in (w for w in words if len(w) == 3)}


def _copy(log_dir: Path, target: Path, topics: set[str]) -> None:
    """Logs first, the state last, as docs/log-directories.md says; without indexes, which are no evidence."""
    if target.exists():
        shutil.rmtree(target)
    folders = [f for f in sorted(log_dir.iterdir()) if f.is_dir() and f.name.rpartition("-")[0] in {STATE, *topics}]
    target.mkdir(parents=True)
    for name in _OF_LOG_DIR:
        shutil.copy2(log_dir / name, target / name)
    for folder in sorted(folders, key=lambda folder: folder.name.startswith(STATE)):
        copied = target / folder.name
        copied.mkdir()
        for file in sorted(folder.iterdir()):
            if file.suffix not in _NO_EVIDENCE:
                _copy_if_there(file, copied / file.name)


def _copy_if_there(source: Path, target: Path) -> None:
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        return  # the broker has removed it
