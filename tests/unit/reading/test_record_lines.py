"""Which record lines of a deep dump are a batch's own, and which batch lines stand inside a record."""

from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.dump_texts import BATCH_SIZE, batch, dumping, plan, record, shallow
from tests.tools.log_evidence import MemoryText
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.text.section import ScanRange

FOLDER = "orders-0"


def scanned(text: bytes, cut_at: int | None = None) -> list[dict[str, Any]]:
    """The batches of a dump with one section, read in one range or in two."""
    (section,) = plan(text).sections
    start, end = section.text_start_bytes, section.text_end_bytes
    ranges = [(start, end)] if cut_at is None else [(start, cut_at), (cut_at, end)]
    parts = [scan_range(MemoryText(text), ScanRange("dump.txt", None, "input", section, *r)) for r in ranges]
    return [row for part in parts if part for row in part.rows().to_pylist()]


def counted(text: bytes) -> list[int | None]:
    return [row["record_line_count"] for row in scanned(text)]


def unproven_bytes(text: bytes) -> int:
    proven: int = sum(row["text_bytes"] for row in scanned(text))
    return len(text) - len(dumping(FOLDER)) - proven


def test_a_shallow_dump_prints_no_record_lines() -> None:
    assert counted(dumping(FOLDER) + batch(0, 1, 0) + batch(1, 1, BATCH_SIZE)) == [None, None]


@pytest.mark.parametrize("repeated", [0, 1, 2])
def test_a_line_that_repeats_an_offset_of_the_one_before_is_no_batch(repeated: int) -> None:
    """Though it stands where the next one would: offsets rise from batch to batch."""
    text = dumping(FOLDER) + batch(0, 3, 0) + batch(repeated, 1, BATCH_SIZE) + batch(3, 1, 2 * BATCH_SIZE)
    assert [(row["base_offset"], row["last_offset"]) for row in scanned(text)] == [(0, 2), (3, 3)]


OF_2_8 = (
    " baseOffset: 1 lastOffset: 1 baseSequence: -1 lastSequence: -1 producerEpoch: -1 partitionLeaderEpoch: -1 "
    "batchSize: 90 magic: 1 compressType: NONE position: 0 crc: 5 isvalid: true"
)


@cases(
    "line content",
    {
        "3.0 on": (
            "| offset: {} CreateTime: 1 keySize: 1 valueSize: 3 isValid: true crc: 5}}",
            " key: k payload: a\nb",
        ),
        "compressed": ("| offset: {} CreateTime: 1 keySize: -1 valueSize: 1", " payload: v"),
        "2.8": (
            "| offset: {} isValid: true crc: 5 keySize: 1 valueSize: 1 CreateTime: 1" + OF_2_8,
            " key: k payload: v",
        ),
        "2.2 to 2.7": ("| offset: {} NoTimestampType: -1 keysize: 1 valuesize: -1 crc: 5 isvalid: true", " key: k"),
    },
)
@pytest.mark.parametrize("printed", [True, False])
def test_records_of_message_formats_0_and_1_are_understood(line: str, content: str, *, printed: bool) -> None:
    batch_line = "offset: 1 position: 0 CreateTime: 1 size: 90 magic: 1 compresscodec: NONE crc: 5 isvalid: true\n"
    records = "".join(line.format(offset) + content * printed + "\n" for offset in (0, 1))
    text = dumping(FOLDER) + (batch_line + records).encode()
    assert unproven_bytes(text) == 0
    assert [section.is_start_proven for section in plan(text + shallow("orders-1")).sections] == [True, True]


@pytest.mark.parametrize("printed", ["controlType: LEADER_CHANGE(2)", 'LeaderChange: {"leaderId":1}'])
def test_each_tools_words_for_a_change_of_the_leader_are_understood(printed: str) -> None:
    line = batch(0, 1, 0).replace(b"isControl: false", b"isControl: true")
    text = (
        dumping(FOLDER)
        + line
        + (b"| offset: 0 CreateTime: 1 keySize: 4 valueSize: 9 sequence: -1 headerKeys: [] " + printed.encode() + b"\n")
    )
    assert unproven_bytes(text) == 0
    assert [row["marker"] for row in scanned(text)] == ["LEADER_CHANGE"]
    assert [section.is_start_proven for section in plan(text + shallow("orders-1")).sections] == [True, True]


@pytest.mark.parametrize("printed", [True, False])
def test_whole_batches_have_all_their_record_lines(printed: bool) -> None:
    first = batch(0, 2, 0) + record(0, printed=printed) + record(1, None, b"", printed=printed)
    text = dumping(FOLDER) + first + batch(2, 1, BATCH_SIZE) + record(2, b"a\nb", b"c\n\nd", printed=printed)
    assert counted(text) == [2, 1]
    assert unproven_bytes(text) == 0


@cases(
    "lines found",
    {
        "one is missing": ([record(0)], 1),
        "all are missing": ([], 0),
        "one too many": ([record(0), record(1), record(1)], 2),
        "an offset twice": ([record(0), record(0)], 1),
        "offsets that fall": ([record(1), record(0)], 1),
        "an offset after the batch": ([record(0), record(2)], 1),
        "offsets of another batch": ([record(7), record(8)], 0),
        "a payload that was cut": ([record(0), record(1, b"k", b"long").replace(b"long", b"lo")], 1),
        "a key of another size": ([record(0), record(1).replace(b"keySize: 1", b"keySize: 2")], 1),
        "marker": ([record(0), record(1).replace(b"\n", b" endTxnMarker: ABORT coordinatorEpoch: 1\n")], 1),
    },
)
def test_only_record_lines_of_the_batch_count(lines: list[bytes], found: int) -> None:
    text = dumping(FOLDER) + batch(0, 2, 0) + b"".join(lines) + batch(2, 1, BATCH_SIZE) + record(2)
    assert counted(text) == [found, 1]
    assert unproven_bytes(text) == sum(map(len, lines[found:]))


def test_replaced_bytes_measure_as_what_they_stand_for() -> None:
    binary = record(0, b"\xff\xfe", b"\xc3\n\xff|\n") + record(1, None, b"\xe2\x82x")
    text = dumping(FOLDER) + batch(0, 2, 0) + binary + batch(2, 1, BATCH_SIZE) + record(2)
    assert counted(text) == [2, 1]
    assert unproven_bytes(text) == 0


def test_a_payload_that_is_replaced_as_a_whole_is_measured_too() -> None:
    binary = [record(k, b"k", bytes(range(0x80, 0xFF)) + b"\n" + bytes([0xFF]) * 200) for k in range(2)]
    text = dumping(FOLDER) + batch(0, 1, 0) + binary[0] + batch(1, 1, BATCH_SIZE) + binary[1]
    assert counted(text) == [1, 1]
    assert unproven_bytes(text) == 0
    assert not any(row["is_contested"] for row in scanned(text))


def test_text_of_a_decoder_is_not_held_to_sizes() -> None:
    lines = [record(k, b"k" * 8, b"v" * 40).replace(b"v" * 40, b"[B@%d" % k) for k in range(3)]
    text = dumping(FOLDER) + batch(0, 3, 0) + b"".join(lines)
    assert counted(text) == [3]


def test_a_long_dump_of_group_offsets_with_their_decoder_is_beyond_doubt() -> None:
    """Brokers write no header keys, so the many lists that end behind a record are none of its own."""
    commit = b" key: offset_commit::group=g,partition=t-0 payload: offset=5\n"
    lines = (record(k, b"k" * 12, b"v" * 24, printed=False).replace(b"\n", commit) for k in range(1000))
    batches = (batch(k, 5, BATCH_SIZE * k // 5) + b"".join(next(lines) for _ in range(5)) for k in range(0, 1000, 5))
    found = scanned(dumping("__consumer_offsets-0") + b"".join(batches))
    assert {(row["is_contested"], row["record_line_count"]) for row in found} == {(False, 5)}


def test_a_batch_line_in_the_metadata_of_a_group_offset_stays_contested() -> None:
    """The decoder's text fills no size, and clients choose what it prints of metadata."""
    forged = b"x\n" + batch(1, 1, BATCH_SIZE) + record(1).rstrip(b"\n")
    printed = b" key: offset_commit::group=g,partition=t-0 payload: offset=5,metadata=" + forged + b"\n"
    line = record(0, b"k" * 12, b"v" * (24 + len(forged)), printed=False).replace(b"\n", printed)
    found = scanned(dumping("__consumer_offsets-0") + batch(0, 1, 0) + line)
    assert [(row["base_offset"], row["is_contested"]) for row in found] == [(0, False), (1, True)]


def test_a_batch_line_inside_a_payload_is_payload() -> None:
    forged = b"x\n" + batch(1, 1, BATCH_SIZE) + record(1).rstrip(b"\n")
    text = dumping(FOLDER) + batch(0, 1, 0) + record(0, b"k", forged)
    assert [(row["base_offset"], row["is_contested"]) for row in scanned(text)] == [(0, False)]
    assert unproven_bytes(text) == 0


def test_a_batch_line_inside_a_payload_with_replaced_bytes_is_payload() -> None:
    forged = b"\xff\xff\n" + batch(1, 1, BATCH_SIZE) + record(1).rstrip(b"\n")
    text = dumping(FOLDER) + batch(0, 1, 0) + record(0, b"k", forged)
    assert [row["base_offset"] for row in scanned(text)] == [0]


def test_a_batch_line_that_may_be_payload_is_contested_at_the_end_of_the_log() -> None:
    """So many bytes are replaced that the record can end before the forged line, or behind it."""
    forged = b"\xff" * 400 + b"\n" + batch(1, 1, BATCH_SIZE) + record(1).rstrip(b"\n")
    first = dumping(FOLDER) + batch(0, 1, 0) + record(0, b"k", forged)
    assert [(row["base_offset"], row["is_contested"]) for row in scanned(first)] == [(0, False), (1, True)]


def test_a_range_that_begins_inside_a_payload_is_contested() -> None:
    forged = b"x\n" + batch(1, 1, BATCH_SIZE) + record(1).rstrip(b"\n")
    text = dumping(FOLDER) + batch(0, 1, 0) + record(0, b"k", forged) + batch(1, 1, BATCH_SIZE) + record(1)
    cut_at = text.find(batch(1, 1, BATCH_SIZE))
    assert scanned(text, cut_at)[0]["is_contested"]
    assert not any(row["is_contested"] for row in scanned(text))


@pytest.mark.cluster  # a scan for each byte
def test_every_place_to_cut_gives_the_same_batches() -> None:
    lines = [batch(k, 1, BATCH_SIZE * k) + record(k, b"k", b"a\nb" * k) for k in range(4)]
    text = dumping(FOLDER) + b"".join(lines)
    whole = scanned(text)
    for cut_at in range(len(dumping(FOLDER)) + 1, len(text)):
        assert scanned(text, cut_at) == whole, cut_at
