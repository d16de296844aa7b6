"""The writer's text is the tool's own: real captures are read, written again, and compared byte for byte."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.proof.kafka.captures.capture_reader import LogReader, read_console_text, read_snapshots, split_json
from tests.tools.forms.broker import OpenTransaction, ProducerEntry, replay
from tests.tools.forms.dump_writer import Tool, log_text, snapshot_line, snapshot_section, txnindex_section
from tests.tools.forms.model import History, Segment, StateRecord, StateValue, java_hash, state_partition
from tests.tools.forms.state_writer import STATE_TOPIC, console_json, console_text, decoded_text, state_batch
from tests.tools.repository import CASES

GRAMMAR = CASES / "grammar"
TOOLS = sorted(path.name for path in GRAMMAR.iterdir())
CAPTURED_LOGS = sorted(
    path
    for kind in ("segments", "shallow", "transaction-state")
    for path in CASES.glob(f"kafka-*/capture-*/{kind}/*.txt")
)


def version_of(name: str) -> tuple[int, int]:
    """`3.7.2` or `kafka-4.2-edge` as (major, minor)."""
    major, minor = name.removeprefix("kafka-").split("-")[0].split(".")[:2]
    return int(major), int(minor)


def read(path: Path) -> History:
    """The partition in a captured dump."""
    return LogReader(path.read_bytes(), decoded=STATE_TOPIC in path.name or "transaction_state" in path.name).history()


def with_sorted_sets(text: str) -> str:
    """The text with each printed partition set in order: Scala's order differs from release to release."""
    return re.sub(
        r"Set\(([^)]*)\)|partitions=\[([^]]*)\]",
        lambda found: str(sorted(re.split(", ?", found[1] or found[2] or ""))),
        text,
    )


@pytest.fixture(scope="module")
def orders() -> History:
    """The data partition that every version of the tool dumped, from the newest one's richest dump."""
    return read(GRAMMAR / "4.2.0" / "orders-0.payload.txt")


@pytest.mark.parametrize(
    ("kind", "deep", "payload"), [("shallow", False, False), ("deep", True, False), ("payload", False, True)]
)
def test_one_reading_gives_the_text_of_every_version(orders: History, kind: str, deep: bool, payload: bool) -> None:
    for name in TOOLS:
        tool = Tool(version_of(name), deep, payload)
        assert log_text(orders, tool).encode() == (GRAMMAR / name / f"orders-0.{kind}.txt").read_bytes(), name


def test_one_reading_gives_the_transaction_state_of_every_version() -> None:
    for name in TOOLS:
        state = read(GRAMMAR / ("2.8.2" if version_of(name) < (4, 1) else "4.2.0") / "transaction_state-1.txt")
        written = log_text(state, Tool(version_of(name), payload=True))
        dumped = (GRAMMAR / name / "transaction_state-1.txt").read_text()
        assert with_sorted_sets(written) == with_sorted_sets(dumped), name


def test_the_state_machine_gives_the_snapshot_and_the_index_of_every_version(orders: History) -> None:
    state = replay(orders.batches)
    index = txnindex_section("orders-0", 0, state.ended)
    for name in TOOLS:
        snapshot = snapshot_section("orders-0", orders.end_offset, state.snapshot(), Tool(version_of(name)))
        assert snapshot == (GRAMMAR / name / "orders-0.snapshot.txt").read_text(), name
        assert index == (GRAMMAR / name / "orders-0.txnindex.txt").read_text(), name


def test_captured_logs_are_written_again() -> None:
    assert CAPTURED_LOGS
    for path in CAPTURED_LOGS:
        is_state = STATE_TOPIC in path.name
        tool = Tool(version_of(path.relative_to(CASES).parts[0]), deep=path.parent.name != "shallow", payload=is_state)
        assert log_text(read(path), tool).encode() == path.read_bytes(), path


def test_captured_snapshots_are_written_again() -> None:
    paths = sorted(CASES.glob("kafka-*/*/producer-snapshots/*.txt"))
    assert paths
    for path in paths:
        tool = Tool(version_of(path.relative_to(CASES).parts[0]))
        folder = path.name.partition(".")[2].removesuffix(".txt")
        text = path.read_text()
        written = [snapshot_section(folder, offset, held, tool) for offset, held in read_snapshots(text).items()]
        assert "".join(written) == text, path


def test_forged_payloads_are_written_again() -> None:
    paths = sorted(CASES.glob("forged-payload/*.txt"))
    assert paths
    for path in paths:
        tool = Tool(version_of(path.name.removesuffix(".payments-0.print-data-log.txt")), payload=True)
        assert log_text(read(path), tool).encode() == path.read_bytes(), path


def test_sizes_of_state_records_are_those_of_the_log() -> None:
    for path in CASES.glob("kafka-4.2*/capture-1/transaction-state/*.txt"):
        for batch in read(path).batches:
            (record,) = batch.records or ()
            assert record.state
            assert record.timestamp_ms
            written = state_batch(batch.base_offset, record.timestamp_ms, record.state)
            assert (written.size_bytes, written.records) == (batch.size_bytes, batch.records)


def state_records(folder: Path) -> list[StateRecord]:
    """All records of a capture's state dumps."""
    batches = [batch for path in sorted(folder.glob("*.txt")) for batch in read(path).batches]
    return [record.state for batch in batches for record in batch.all_records() if record.state]


def without_start(record: StateRecord) -> tuple[str, StateValue | None]:
    """What the text form of the decoder prints of a record, its partitions as a set."""
    value = record.value and replace(record.value, start_ms=None, partitions=tuple(sorted(record.value.partitions)))
    return record.transactional_id, value


def test_the_json_console_export_is_the_state_partitions_in_some_order() -> None:
    exported = split_json((CASES / "kafka-4.2" / "console" / "transaction-state.json").read_text())
    records = state_records(CASES / "kafka-4.2" / "capture-2" / "transaction-state")
    assert sorted(exported) == sorted(console_json([record]) for record in records)


def test_the_text_console_export_is_the_state_partitions_in_some_order() -> None:
    text = (CASES / "kafka-2.8" / "console" / "transaction-state.txt").read_text()
    exported = read_console_text(text)
    assert console_text(exported) == text
    records = state_records(CASES / "kafka-2.8" / "capture-1" / "transaction-state")
    assert sorted(map(repr, map(without_start, exported))) == sorted(map(repr, map(without_start, records)))


def test_hash_is_that_of_java() -> None:
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert state_partition("polygenelubricants", 50) == 0
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


TOMBSTONE = StateRecord("gone", None)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((2, 3), ("transactionalId=a", "Set(t-0, u-1)")),
        ((2, 4), ("transaction_metadata::transactionalId=a", "HashSet(t-0, u-1)")),
        ((4, 0), ("transaction_metadata::transactionalId=a", "[t-0,u-1]")),
    ],
)
def test_text_forms_of_a_state_record(version: tuple[int, int], expected: tuple[str, str]) -> None:
    value = StateValue(7, 1, "Ongoing", (("t", 0), ("u", 1)), 5, 60_000, 3)
    key, payload = decoded_text(StateRecord("a", value), version)
    assert (key, payload) == (
        expected[0],
        f"producerId:7,producerEpoch:1,state=Ongoing,partitions={expected[1]},txnLastUpdateTimestamp=5,txnTimeoutMs=60000",
    )


def test_tombstones_have_four_encodings() -> None:
    with pytest.raises(ValueError, match="tombstone"):
        decoded_text(TOMBSTONE, (2, 4))
    assert decoded_text(TOMBSTONE, (2, 5)) == ("transaction_metadata::transactionalId=gone", "<DELETE>")
    assert decoded_text(TOMBSTONE, (4, 1)) == ('{"type":"0","data":{"transactionalId":"gone"}}', "<DELETE>")
    assert console_text([TOMBSTONE]) == "gone::NULL\n"
    assert console_json([TOMBSTONE]) == '{"key":{"type":0,"data":{"transactionalId":"gone"}},"value":null}'


def test_an_incomplete_batch_is_told_after_the_others() -> None:
    history = History("a.b-c", 3, (Segment(7, (), torn_bytes=12),))
    assert log_text(history, Tool()) == (
        "Dumping a.b-c-3/00000000000000000007.log\nLog starting offset: 7\n"
        "Found 12 invalid bytes at the end of 00000000000000000007.log\n"
    )


@pytest.mark.parametrize(
    ("version", "printed"),
    [((3, 0), "Some(4) "), ((3, 4), "Some(4) lastTimestamp: 9 "), ((3, 5), "OptionalLong[4] lastTimestamp: 9 ")],
)
def test_a_producer_without_cached_batch_ends_with_a_blank(version: tuple[int, int], printed: str) -> None:
    entry = ProducerEntry(1, None, 9, OpenTransaction(4))
    expected = f"producerId: 7 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: {printed}"
    assert snapshot_line(7, entry, Tool(version)) == expected
