"""Segments are followed by their batch headers: damage never becomes a batch, and large batches are not read."""

import random
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.forms.history import histories
from tests.tools.forms.model import Batch, History
from tests.tools.log_dirs.encoder import as_written, encoded, framed, record, segment_bytes
from tests.tools.log_dirs.reading import Segment
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.reading.inputs import broker_survey
from txn_analysis.reading.inputs.accounting import ReadPiece, rejected_in_log, rejected_outside
from txn_analysis.reading.inputs.planning import split_ranges
from txn_analysis.reading.log_dir.segment import headers_of, scan_segment
from txn_analysis.reading.text.section import ScanRange
from txn_analysis.reading.text.text import Text

# What the checksum does not cover, and what depends on it: brokers set them when they append (KIP-98).
NOT_COVERED = {"input_id", "base_offset", "last_offset", "leader_epoch", "position", "text_start_bytes"}


def data(offset: int, *, producer: int = 7, records: int = 1, **known: Any) -> Batch:
    batch = Batch(offset, offset + records - 1, records, producer, 0, offset, is_transactional=True)
    return replace(batch, max_timestamp_ms=1_000 + offset, **known)


def marker(offset: int, *, producer: int = 7, word: str = "COMMIT") -> Batch:
    ended = Batch(offset, offset, 1, producer, 0, None, is_transactional=True, is_control=True, marker=word)
    return replace(ended, coordinator_epoch=5, max_timestamp_ms=1_000 + offset)


def file_of(*batches: Batch) -> bytes:
    return b"".join(encoded(batch) for batch in batches)


def covered(rows: list[dict[str, Any]]) -> list[str]:
    return [repr({n: v for n, v in row.items() if n not in NOT_COVERED}) for row in rows]


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """The content cut, with a byte changed, with zeros behind a cut, or with something in between."""
    at = draw(st.integers(0, len(content) - 1))
    kind = draw(st.sampled_from(("cut", "flip", "zeros", "noise", "twice")))
    if kind == "flip":
        return content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]
    behind = {"cut": b"", "zeros": bytes(draw(st.integers(1, 200))), "twice": content}.get(kind)
    return content[:at] + (draw(st.binary(max_size=80)) + content[at:] if behind is None else behind)


@settings(max_examples=100)
@given(histories(max_steps=12), st.data())
def test_damage_never_yields_a_batch_that_was_not_written(history: History, drawn: st.DataObject) -> None:
    content = segment_bytes(as_written(history).segments[0])
    assume(content)
    base = history.segments[0].base_offset
    written = covered(Segment.of(content, base_offset=base, is_verified=True).batches())
    found = Segment.of(drawn.draw(damage(content)), base_offset=base, is_verified=True)
    rows = found.batches()
    assert set(covered([row for row in rows if row["is_valid"]])) <= set(written)
    ends = [row["position"] + row["size_bytes"] for row in rows]
    assert [row["position"] for row in rows] == [0, *ends][:-1] if rows else True
    rejected = sum(end - start for start, end, _ in found.plan.rejects)
    assert (ends[-1] if ends else 0) + rejected == len(found.text.data)


@cases(
    "tail is_torn reason",
    {
        "half-a-batch": (encoded(data(1))[:-1], True, "half a batch at the end"),
        "half-a-header": (encoded(data(1))[:10], True, "half a batch at the end"),
        "preallocated": (bytes(100_000), True, "zeros at the end, where no batch was written yet"),
        "zeros-and-more": (bytes(100) + b"x", False, "not a record batch"),
        "garbage": (b"garbage of a kind that no broker writes", False, "not a record batch"),
        "offsets-run-backwards": (encoded(data(0)), False, "not a record batch"),
    },
)
def test_a_torn_end_is_none_of_the_log_and_garbage_spoils_it(tail: bytes, is_torn: bool, reason: str) -> None:
    content = file_of(data(0))
    found = Segment.of(content + tail)
    (section,) = found.plan.sections
    start, end = len(content), len(content + tail)
    assert found.plan.rejects == ((start, end, reason),)
    assert (section.torn_bytes, section.text_end_bytes) == ((len(tail), start) if is_torn else (0, end))
    assert len(found.batches()) == 1


def test_a_damaged_length_that_hides_the_rest_of_the_log_is_no_torn_end() -> None:
    """Behind it stands the end marker: nothing may look as if it were never ended."""
    damaged = bytearray(file_of(data(0), data(1), marker(2)))
    at = len(file_of(data(0))) + 8
    damaged[at : at + 4] = struct.pack(">i", 100_000)
    found = Segment.of(bytes(damaged))
    assert found.plan.sections[0].torn_bytes == 0
    assert [why for *_, why in found.plan.rejects] == ["not a record batch"]


def test_a_batch_below_the_offset_in_the_name_is_none_of_this_file() -> None:
    assert [why for *_, why in Segment.of(file_of(data(3)), base_offset=4).plan.rejects] == ["not a record batch"]


@cases(
    "at field",
    {
        "base-offset-negative": (0, struct.pack(">q", -1)),
        "shorter-than-a-header": (8, struct.pack(">i", 48)),
        "leader-epoch-negative": (12, struct.pack(">i", -2)),
        "format-3": (16, b"\3"),
        "format-negative": (16, b"\xff"),
        "codec-unknown": (21, b"\0\5"),
        "attribute-unknown": (21, b"\0\x80"),
        "ends-before-it-begins": (23, struct.pack(">i", -1)),
        "producer-id-negative": (43, struct.pack(">q", -2)),
        "producer-epoch-negative": (51, struct.pack(">h", -2)),
        "sequence-negative": (53, struct.pack(">i", -2)),
        "fewer-records-than-none": (57, struct.pack(">i", -1)),
        "more-records-than-offsets": (57, struct.pack(">i", 2)),
    },
)
def test_a_header_that_no_broker_writes_ends_what_is_understood(at: int, field: bytes) -> None:
    first, second, third = (encoded(data(k)) for k in range(3))
    damaged = second[:at] + field + second[at + len(field) :]
    found = Segment.of(first + damaged + third)
    assert found.plan.rejects == ((len(first), len(first + second + third), "not a record batch"),)
    assert [row["base_offset"] for row in found.batches()] == [0]


def test_what_is_not_understood_is_accounted_for_by_its_reason() -> None:
    found = Segment.of(file_of(data(0)) + b"garbage of a kind that no broker writes")
    plan, size = found.plan, len(file_of(data(0)))
    piece = ReadPiece("input", 0, 0, size, (), 0, size, 0, 0, None)
    (section,) = plan.sections

    def accounted(*pieces: ReadPiece) -> list[tuple[int, int, str]]:
        spans = rejected_in_log(plan, section, pieces)
        return [(span.offset_bytes, span.length_bytes, span.reason) for span in spans]

    assert rejected_outside(plan) == []
    assert accounted(piece) == [(size, 39, "not a record batch")]
    assert accounted() == [(0, size + 39, "the file changed while it was read")]
    torn = Segment.of(file_of(data(0)) + encoded(data(1))[:-1]).plan
    assert [(span.offset_bytes, span.reason) for span in rejected_outside(torn)] == [(size, "half a batch at the end")]


def validity(*batches: Batch, is_verified: bool = False) -> list[bool | None]:
    rows = Segment.of(file_of(*batches), is_verified=is_verified).batches()
    return [row["is_valid"] for row in rows]


def test_checksums_of_batches_that_decide_are_looked_at() -> None:
    """Ended transactions decide nothing; of an open one the first and the last batch do."""
    ended, opened = [data(0), data(1), marker(2)], [data(3), data(4), data(5)]
    assert validity(*ended, *opened) == [None, None, True, True, None, True]
    assert validity(*ended, *opened, is_verified=True) == [True] * 6


@pytest.mark.parametrize("wrong", range(6))
def test_a_wrong_checksum_is_found(wrong: int) -> None:
    batches = [data(0), data(1), marker(2), data(3), data(4), data(5)]
    batches[wrong] = replace(batches[wrong], is_valid=False)
    found = validity(*batches)
    assert validity(*batches, is_verified=True)[wrong] is False
    assert found[wrong] is (False if wrong in {2, 3, 5} else None)


def test_times_of_brokers_that_bound_an_open_transaction_are_looked_at() -> None:
    def appended(offset: int, time_ms: int) -> Batch:
        batch = Batch(offset, offset, 1, None, None, None)
        return replace(batch, timestamp_type="LogAppendTime", max_timestamp_ms=time_ms)

    newest, *before = appended(0, 9_000), appended(1, 1_001), appended(2, 1_002)
    after = [appended(4, 5_000), appended(5, 5_001), appended(6, 5_002)]
    found = validity(newest, *before, data(3), *after)
    assert found == [True, None, True, True, True, None, True]


def test_batches_whose_format_was_damaged_are_looked_at() -> None:
    """A marker that reads like a batch of an old format would leave its transaction open."""
    written = bytearray(file_of(data(0), marker(1), data(2, producer=8)))
    written[len(file_of(data(0))) + 16] = 1
    assert [row["is_valid"] for row in Segment.of(bytes(written)).batches()] == [True, False, True]


def legacy(offset: int, magic: int, content: bytes = b"content") -> bytes:
    """A message of format 0 or 1 (kafka.common.record.LegacyRecord)."""
    times = struct.pack(">q", 1_000 + offset) if magic else b""
    checked = struct.pack(">bb", magic, 0) + times + struct.pack(">i", -1) + struct.pack(">i", len(content)) + content
    body = struct.pack(">I", zlib.crc32(checked)) + checked
    return struct.pack(">qi", offset, len(body)) + body


def test_old_message_formats_keep_the_chain() -> None:
    rows = Segment.of(legacy(0, 0) + legacy(1, 1) + encoded(data(2)), is_verified=True).batches()
    names = (
        "base_offset",
        "last_offset",
        "record_count",
        "producer_id",
        "max_timestamp_ms",
        "timestamp_type",
        "is_valid",
    )
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, 0, None, None, None, None, True),
        (1, 1, None, None, 1_001, "CreateTime", True),
        (2, 2, 1, 7, 1_002, "CreateTime", True),
    ]


@cases(
    "key value word epoch",
    {
        "commit": (b"\0\0\0\1", b"\0\0\0\0\0\5", "COMMIT", 5),
        "newer-versions": (b"\0\3\0\0", b"\0\1\0\0\0\5", "ABORT", 5),
        "no-coordinator-epoch": (b"\0\0\0\0", b"\0\0\xff\xff\xff\xff", "ABORT", None),
        "leader-change": (b"\0\0\0\2", b"\0\0", "LEADER_CHANGE", None),
        "type-of-the-future": (b"\0\0\0\x63", b"", "UNKNOWN", None),
        "value-longer": (b"\0\0\0\0", b"\0\0\0\0\0\5\0", None, None),
        "negative-version": (b"\xff\xff\0\0", b"\0\0\0\0\0\5", None, None),
        "negative-epoch": (b"\0\0\0\0", b"\0\0\xff\xff\xff\xfe", None, None),
        "short-key": (b"\0", b"", None, None),
    },
)
def test_what_a_control_batch_says(key: bytes, value: bytes, word: str | None, epoch: int | None) -> None:
    content = struct.pack(">hiqqqhii", 48, 0, 1_000, 1_000, 7, 0, -1, 1) + record(0, 0, key, value)
    (row,) = Segment.of(framed(content)).batches()
    assert (row["marker"], row["coordinator_epoch"], row["is_control"]) == (word, epoch, True)


def test_large_batches_are_not_read() -> None:
    """Of a log with batches of 16 KB at most 5 % is read, to plan it and to scan it together."""
    batches = [data(k, producer=k // 10) if k % 10 < 9 else marker(k, producer=k // 10) for k in range(1_000)]
    content = bytearray()
    for batch in batches:
        one = encoded(batch)
        if not batch.is_control:  # as if it held more; no checksum of these batches decides anything
            body = one[12:] + bytes(16_384 - len(one))
            one = one[:8] + struct.pack(">i", len(body)) + body
        content += one
    found = Segment.of(bytes(content))
    assert len(found.batches()) == 1_000
    assert found.text.read_bytes <= len(content) * 0.05


def test_a_segment_is_cut_where_batches_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_survey, "CUT_BATCHES", 3)
    found = Segment.of(file_of(*(data(k) for k in range(10))))
    ranges = [part for task in split_ranges([found.plan], LOG_KINDS, 1 << 25, 2) for part in task]
    assert [len(scan_segment(found.text, part)) for part in ranges] == [3, 3, 3, 1]
    assert [row["base_offset"] for row in found.batches()] == list(range(10))


def test_nothing_comes_of_a_range_that_is_gone() -> None:
    found = Segment.of(file_of(*(data(k) for k in range(10))))
    found.text.data = found.text.data[:-1]
    part = ScanRange("path", None, "input", found.plan.sections[0], 0, found.plan.sections[0].text_end_bytes)
    assert len(scan_segment(found.text, part)) == 0


def test_the_fingerprint_is_that_of_the_headers_and_the_place() -> None:
    content = bytearray(file_of(*(data(k, records=20) for k in range(60))))
    assert len(content) > 1 << 16
    before = Segment.of(bytes(content)).plan.input_id
    content[70] ^= 1  # in a record: the header still states the checksum of what was written
    assert Segment.of(bytes(content)).plan.input_id == before
    assert Segment.of(bytes(content), kind="state").plan.input_id != before
    assert Segment.of(bytes(content), is_verified=True).plan.input_id != before
    content[30] ^= 1
    assert Segment.of(bytes(content)).plan.input_id != before


def test_random_bytes_never_raise() -> None:
    for seed in range(200):
        assert Segment.of(b"\0" + random.Random(seed).randbytes(400)).batches() == []


def test_one_empty_file_is_a_log_without_batches() -> None:
    found = Segment.of(b"", base_offset=17)
    assert (found.batches(), found.plan.sections[0].file_base_offset, found.plan.rejects) == ([], 17, ())


def test_an_empty_file_on_a_disk_holds_no_batch(tmp_path: Path) -> None:
    file, section = tmp_path / "00000000000000000017.log", Segment.of(b"", base_offset=17).plan.sections[0]
    file.touch()
    with Text(str(file), None) as text:
        assert len(headers_of(text, ScanRange(str(file), None, "input", section, 0, 0))) == 0
