"""The state machine gives the brokers' own answers on the real captures."""

from dataclasses import replace
from pathlib import Path

from tests.proof.kafka.captures.capture_reader import LogReader, read_snapshots
from tests.tools.forms.broker import Partition, ProducerEntry, replay
from tests.tools.forms.dump_writer import txnindex_section
from tests.tools.forms.model import Batch, History
from tests.tools.repository import CASES

ANSWERS = sorted(
    path
    for path in CASES.glob("kafka-*/capture-*/oracle/producers-*.txt")
    if (path.parents[1] / "segments").is_dir()  # others are of binary files alone
)
SNAPSHOTS = sorted(CASES.glob("kafka-*/capture-*/producer-snapshots/*.txt"))
INDEXES = sorted(CASES.glob("kafka-*/capture-*/aborted-transactions/*.txt"))

Answer = tuple[int | None, ...]


def printed(entry: ProducerEntry) -> Answer:
    """The columns of `describe-producers` after the producer id."""
    absent = -1
    return (
        entry.producer_epoch,
        absent if entry.coordinator_epoch is None else entry.coordinator_epoch,
        absent if entry.last_sequence is None else entry.last_sequence,
        entry.last_timestamp_ms,
        entry.txn_start_offset,
    )


def read_answer(path: Path) -> dict[int, Answer]:
    """What the broker answered, by producer id."""
    rows = [[cell.strip() for cell in line.split("\t")][:-1] for line in path.read_text().split("\n")[1:-1]]
    return {int(producer): tuple(None if cell == "None" else int(cell) for cell in cells) for producer, *cells in rows}


def read_log(capture: Path, name: str) -> History:
    """The captured log of one partition."""
    (path,) = (capture / "segments").glob(f"*.{name}.txt")
    return LogReader(path.read_bytes()).history()


def state_at_end(capture: Path, name: str) -> Partition:
    """The partition's state: its newest snapshot that the log begins at, and the log."""
    log = read_log(capture, name)
    first_offset = log.segments[0].base_offset
    snapshots: dict[int, dict[int, ProducerEntry]] = {}
    for path in (capture / "producer-snapshots").glob(f"*.{name}.txt"):
        snapshots = read_snapshots(path.read_text())
    return replay(log.batches, snapshot=snapshots.get(first_offset), from_offset=first_offset)


def test_producers_are_those_the_broker_described() -> None:
    assert ANSWERS
    for path in ANSWERS:
        state = state_at_end(path.parents[1], path.stem.removeprefix("producers-"))
        assert {producer: printed(entry) for producer, entry in state.producers.items()} == read_answer(path), path


def test_snapshots_are_those_the_broker_wrote() -> None:
    assert SNAPSHOTS
    for path in SNAPSHOTS:
        log = read_log(path.parents[1], path.name.partition(".")[2].removesuffix(".txt"))
        snapshots = read_snapshots(path.read_text())
        first_offset = log.segments[0].base_offset
        for offset, producers in snapshots.items():
            state = replay(log.batches, snapshot=snapshots.get(first_offset), from_offset=first_offset, below=offset)
            written = {producer: as_printed(entry, path) for producer, entry in state.snapshot().items()}
            assert written == producers, (path, offset)


def as_printed(entry: ProducerEntry, path: Path) -> ProducerEntry:
    """The entry as far as the tool of that capture prints it: before 3.1 the time stands in the batch part only."""
    is_before_3_1 = path.relative_to(CASES).parts[0] == "kafka-2.8"
    return replace(entry, last_timestamp_ms=None) if is_before_3_1 and entry.last_offset is None else entry


def test_aborted_transactions_are_those_of_the_index() -> None:
    assert INDEXES
    for path in INDEXES:
        name = path.name.partition(".")[2].removesuffix(".txt")
        assert txnindex_section(name, 0, state_at_end(path.parents[1], name).ended) == path.read_text(), path


def test_an_empty_control_batch_ends_nothing_and_an_empty_data_batch_begins_a_transaction() -> None:
    empty_data = Batch(0, 3, 0, 7, 1, 0, is_transactional=True)
    empty_control = Batch(4, 4, 0, 7, 2, is_transactional=True, is_control=True)
    state = replay([empty_data, empty_control])
    assert (state.open_starts(), state.producers[7].producer_epoch, state.last_stable_offset) == ({7: 0}, 1, 0)


def test_a_marker_of_another_epoch_ends_the_transaction_and_resets_the_sequence() -> None:
    data = Batch(0, 3, 4, 7, 1, 0, is_transactional=True)
    marker = Batch(4, 4, 1, 7, 2, is_transactional=True, is_control=True, marker="ABORT", coordinator_epoch=5)
    state = replay([data, marker])
    assert (state.open_starts(), state.last_stable_offset) == ({}, 5)
    assert printed(state.producers[7]) == (2, 5, -1, 0, None)
    assert [(txn.start_offset, txn.end_offset, txn.record_count) for txn in state.ended] == [(0, 4, 4)]
