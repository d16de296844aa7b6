"""The groups in `__consumer_offsets`, by the form in which it was copied, and where they are not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.dump_texts import plan
from tests.tools.forms.dump_writer import Tool, log_section
from tests.tools.forms.group_writer import GROUP_TOPIC, batch_of, commit, group_metadata, marker
from tests.tools.forms.model import Batch, History, Record, Segment
from tests.tools.log_dirs.encoder import CODECS, as_written, segment_bytes
from tests.tools.log_evidence import MemoryText
from tests.unit.log_dir.test_segments import legacy
from txn_analysis.kafka.batch_headers import Headers, HeaderWalk, Held
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.log_dir.group_records import group_rows, read_group_records
from txn_analysis.reading.log_dir.segment import scan_segment
from txn_analysis.reading.text.section import ScanRange, Section

Row = dict[str, Any]
FOLDER = f"{GROUP_TOPIC}-0"
JSON, TEXT, OLD_TEXT = (4, 2), (3, 7), (2, 7)
WHOLE = 1 << 25
PYTHON_AND_COMPILED = NEVER, NOTHING
NAMES = (
    "billing",
    "a,b",
    "",
    "gr\u00fcppe",
    'a "quoted" \\ one',
    "x]",
    "a,partition=t-0 payload: offset=5",
    "\U0001f600",
)


@dataclass(frozen=True)
class Copy:
    """What was copied of one segment: its bytes, and the section that planning made of them."""

    data: bytes
    section: Section
    is_text: bool = True

    @classmethod
    def dumped(cls, *batches: Batch, tool: Tool) -> Copy:
        return cls.of_text(log_section(FOLDER, Segment(0, batches), tool).encode())

    @classmethod
    def of_text(cls, text: bytes) -> Copy:
        (section,) = plan(text).sections
        return cls(text, section)

    @classmethod
    def segment(cls, *batches: Batch) -> Copy:
        data = segment_bytes(Segment(0, batches))
        name = f"{FOLDER}/{0:020}.log"
        return cls(data, Section("log", GROUP_TOPIC, 0, 0, 0, len(data), "binary", name), is_text=False)

    def rows(self, cuts: tuple[int, ...] = ()) -> list[Row]:
        """Rows of `group_offsets`, each range read by itself."""
        bounds = [self.section.text_start_bytes, *cuts, self.section.text_end_bytes]
        return [row for start, end in pairwise(bounds) for row in self._read(start, end)]

    def _read(self, start: int, end: int) -> Iterator[Row]:
        part = ScanRange("path", None, "input", self.section, start, end)
        scan = scan_range if self.is_text else scan_segment
        batches = scan(MemoryText(self.data), part)
        if batches and batches.groups is not None:
            yield from group_rows(batches, batches.groups).to_pylist()

    def every(self, step: int) -> tuple[int, ...]:
        """Places to cut a text at."""
        return tuple(range(self.section.text_start_bytes + step, self.section.text_end_bytes, step))


def groups(rows: list[Row]) -> dict[tuple[str, int | None], int]:
    """The last offset of each group and producer."""
    found: dict[tuple[str, int | None], int] = {}
    for row in rows:
        if row["group_id"] is not None:
            key = row["group_id"], row["producer_id"]
            found[key] = max(row["last_offset"], found.get(key, -1))
    return found


def read_bytes(rows: list[Row]) -> list[tuple[int, int]]:
    """The stretches that were read whole, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((r["text_start_bytes"], r["text_end_bytes"]) for r in rows if r["group_id"] is None):
        joined[-1:] = [(joined[-1][0], end)] if joined and joined[-1][1] == start else [*joined[-1:], (start, end)]
    return joined


def body(copy: Copy) -> list[tuple[int, int]]:
    return [(copy.section.text_start_bytes, copy.section.text_end_bytes)]


def expected(batches: list[Batch], names: dict[int, str]) -> dict[tuple[str, int | None], int]:
    """The oracle: the groups by the offsets of their records."""
    return {
        (names[record.offset], batch.producer_id): batch.last_offset
        for batch in batches
        for record in batch.all_records()
        if record.offset in names
    }


@st.composite
def logs(draw: st.DrawFn, tool: tuple[int, int]) -> tuple[list[Batch], dict[int, str]]:
    """Batches of a partition, and the group of each offset that was committed."""
    batches: list[Batch] = []
    names: dict[int, str] = {}
    offset = 0
    for _ in range(draw(st.integers(1, 12))):
        producer_id = draw(st.sampled_from((None, 7, 8)))
        if producer_id and draw(st.booleans()):
            batches.append(marker(offset, producer_id))
            offset += 1
            continue
        records: list[Record] = []
        for _ in range(draw(st.integers(1, 4))):
            name = draw(st.sampled_from(NAMES))
            if draw(st.integers(0, 3)):
                names[offset] = name
                version = draw(st.sampled_from((0, 1)))
                records.append(commit(offset, name, tool=tool, version=version, topic=draw(st.sampled_from("tu"))))
            else:
                records.append(group_metadata(offset, name, tool=tool))
            offset += draw(st.sampled_from((1, 1, 3)))
        codec = draw(st.sampled_from(CODECS))
        batches.append(batch_of(*records, producer_id=producer_id, codec=codec))
    written = as_written(History(GROUP_TOPIC, 0, (Segment(0, tuple(batches)),)))
    return [*written.batches], names


@pytest.mark.parametrize("version", [JSON, TEXT, OLD_TEXT], ids=str)
def test_no_group_is_lost_or_given_to_another_producer_wherever_a_dump_is_cut(version: tuple[int, int]) -> None:
    @settings(max_examples=30)
    @given(logs(version), st.integers(1, 900))
    def check(log: tuple[list[Batch], dict[int, str]], step: int) -> None:
        batches, names = log
        copy = Copy.dumped(*batches, tool=Tool(version, payload=True))
        for loading_us, cuts in product(PYTHON_AND_COMPILED, ((), copy.every(step))):
            with loading_takes(loading_us):
                rows = copy.rows(cuts)
            assert groups(rows) == expected(batches, names)
            assert read_bytes(rows) == body(copy)

    check()


@settings(max_examples=60)
@given(logs(JSON), st.data())
def test_a_brokers_own_segment_names_the_same_groups(
    log: tuple[list[Batch], dict[int, str]], data: st.DataObject
) -> None:
    batches, names = log
    copy = Copy.segment(*batches)
    begins = [position for position, _ in Segment(0, tuple(batches)).with_positions()][1:]
    cuts = data.draw(st.sets(st.sampled_from(begins))) if begins else set()
    for loading_us in PYTHON_AND_COMPILED:
        with loading_takes(loading_us):
            rows = copy.rows(tuple(sorted(cuts)))
        assert groups(rows) == expected(batches, names)
        assert read_bytes(rows) == body(copy)


def test_a_row_is_a_group_and_a_producer_not_a_record() -> None:
    batches = [batch_of(commit(n, "billing", tool=JSON), producer_id=7) for n in range(100)]
    whole, billing = Copy.dumped(*batches, tool=Tool(JSON, payload=True)).rows()
    assert (whole["group_id"], whole["producer_id"], whole["last_offset"]) == (None, None, 99)
    assert (billing["group_id"], billing["producer_id"], billing["last_offset"]) == ("billing", 7, 99)


def test_offsets_outside_a_transaction_have_no_producer() -> None:
    copy = Copy.dumped(batch_of(commit(0, "billing", tool=TEXT)), tool=Tool(TEXT, payload=True))
    assert groups(copy.rows()) == {("billing", None): 0}


@pytest.mark.parametrize("tool", [Tool(JSON), Tool(JSON, deep=True)], ids=["shallow", "deep"])
def test_a_dump_without_the_decoder_says_of_no_record_whose_it_is(tool: Tool) -> None:
    assert Copy.dumped(batch_of(commit(0, "billing", tool=JSON)), tool=tool).rows() == []


@pytest.mark.parametrize("tool", [Tool(JSON), Tool(JSON, deep=True)], ids=["shallow", "deep"])
def test_without_a_data_batch_there_is_nothing_to_decode(tool: Tool) -> None:
    copy = Copy.dumped(marker(0, 7), tool=tool)
    assert (groups(copy.rows()), read_bytes(copy.rows())) == ({}, body(copy))


@cases(
    "key",
    {
        "print-data-log": "\0\1\0\1g\0\1t\0\0\0\0",
        "before-2.5": "offset::g:t:0",
        "the-decoder-failed": "Error at offset 1, skipping. x",
        "a-name-of-another-size": "offset_commit::group=gg,partition=t-0",
        "cut": "offset_commit::group=g,partition=t",
        "cut-json": '{"type":"1","data":{"group":"g',
        "no-group": '{"type":"1","data":[]}',
        "no-name": '{"type":"1","data":{"group":7}}',
    },
)
def test_one_key_that_is_not_decoded_leaves_the_groups_unknown(key: str) -> None:
    other = replace(commit(1, "g", tool=TEXT), key=key)
    log = (batch_of(commit(0, "billing", tool=TEXT)), batch_of(other, producer_id=7))
    assert Copy.dumped(*log, tool=Tool(TEXT, payload=True)).rows() == []


@pytest.mark.parametrize(
    "key", ["Unknown record type 9 at offset 0, skipping.", "unknown::version=9", '{"type":"3","data":{"groupId":"a"}}']
)
def test_records_of_other_kinds_name_no_group(key: str) -> None:
    copy = Copy.dumped(batch_of(replace(commit(0, "g", tool=JSON), key=key)), tool=Tool(JSON, payload=True))
    assert (groups(copy.rows()), read_bytes(copy.rows())) == ({}, body(copy))


def test_fields_in_another_order_are_read_as_json() -> None:
    key = '{"type":"1","data":{"topic":"t","group":"g","partition":0}}'
    copy = Copy.dumped(batch_of(replace(commit(0, "x", tool=JSON), key=key)), tool=Tool(JSON, payload=True))
    assert groups(copy.rows()) == {("g", None): 0}


FORGED = "| offset: 0 CreateTime: 0 keySize: 16 valueSize: 24 sequence: 0 headerKeys: []"
FORGED_COMMIT = f"{FORGED} key: offset_commit::group=victim,partition=t-0 payload: offset=5"


@cases(
    "record",
    {
        "in-a-name": commit(0, f"a\n{FORGED_COMMIT}", tool=TEXT),
        "in-metadata": commit(0, "a", tool=TEXT, metadata=f"x\n{FORGED_COMMIT}"),
    },
)
def test_a_forged_record_line_names_no_group(record: Record) -> None:
    assert Copy.dumped(batch_of(record, producer_id=7), tool=Tool(TEXT, payload=True)).rows() == []


def test_nothing_of_the_metadata_becomes_a_name() -> None:
    record = commit(0, "billing", tool=TEXT, metadata="secret,partition=t-0 payload: offset=5")
    copy = Copy.dumped(batch_of(record), tool=Tool(TEXT, payload=True))
    assert groups(copy.rows()) == {("billing", None): 0}


def test_text_that_was_not_understood_leaves_its_range_unknown() -> None:
    batches = [batch_of(commit(n, "billing", tool=JSON)) for n in range(3)]
    text = log_section(FOLDER, Segment(0, tuple(batches)), Tool(JSON, payload=True)).encode()
    copy = Copy.of_text(text.replace(b"\nbaseOffset: 1 ", b"\nnoise\nbaseOffset: 1 "))
    assert copy.rows() == []


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=60)
@given(at=st.integers(61, 400), byte=st.integers(1, 255))
def test_damage_in_records_never_ends_the_scan(codec: str, at: int, byte: int) -> None:
    batch = batch_of(*(commit(n, "billing", tool=JSON) for n in range(3)), producer_id=7, codec=codec)
    copy = Copy.segment(batch)
    data = bytearray(copy.data)
    data[min(at, len(data) - 1)] ^= byte
    rows = replace(copy, data=bytes(data)).rows()
    assert {(row["producer_id"], row["last_offset"]) for row in rows} <= {(None, 2), (7, 2)}


@pytest.mark.parametrize("version", [JSON, TEXT], ids=str)
def test_damage_in_a_dump_never_ends_the_scan(version: tuple[int, int]) -> None:
    batches = [batch_of(commit(n, name, tool=version), producer_id=7) for n, name in enumerate(NAMES)]
    text = log_section(FOLDER, Segment(0, tuple(batches)), Tool(version, payload=True)).encode()
    pieces = st.sampled_from(
        (b"", b"\n", b'"', b"\\", b",partition=", b" key: ", b"keySize: 99999999999999999999 ", b"\xff")
    )

    @settings(max_examples=100)
    @given(st.integers(text.index(b"baseOffset: 1 "), len(text)), st.integers(0, 60), pieces)
    def check(at: int, lost: int, piece: bytes) -> None:
        copy = Copy.of_text(text[:at] + piece + text[at + lost :])
        ((start, end),) = body(copy)
        for loading_us in PYTHON_AND_COMPILED:
            with loading_takes(loading_us):
                rows = copy.rows()
            assert all(start <= row["text_start_bytes"] < row["text_end_bytes"] <= end for row in rows)

    check()


def test_a_segment_that_is_cut_between_two_looks_is_not_read() -> None:
    data = Copy.segment(*(batch_of(commit(n, "billing", tool=JSON)) for n in range(3))).data
    found = Headers.joined([*HeaderWalk(Held(data), 0, len(data)).blocks()])
    assert read_group_records(lambda start, end: data[start:end], found) is not None
    assert read_group_records(lambda start, end: data[start : min(end, len(data) - 1)], found) is None


def test_a_segment_with_an_old_message_format_is_not_read() -> None:
    old = legacy(0, 1)
    copy = Copy.segment(batch_of(commit(1, "billing", tool=JSON)))
    section = replace(copy.section, text_end_bytes=len(old) + len(copy.data))
    assert Copy(old + copy.data, section, is_text=False).rows() == []


def test_topics_of_clients_are_not_looked_into() -> None:
    text = log_section("orders-0", Segment(0, (batch_of(commit(0, "billing", tool=JSON)),)), Tool(JSON, payload=True))
    assert Copy.of_text(text.encode()).rows() == []
