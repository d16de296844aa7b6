"""Header keys have no printed size: what a client writes there can be the end of a segment, as far as a dump shows."""

import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.proof.hostile.forgeries import INVENTED
from tests.tools.dump_texts import plan
from tests.tools.forms.dump_writer import Tool, batch_line, log_section, record_line
from tests.tools.forms.model import BATCH_HEADER_BYTES, Batch, Record, Segment, varint_bytes
from tests.tools.log_evidence import MemoryText
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.text.section import ScanRange
from txn_analysis.reading.text.text import Text

VICTIM = 7
DEEP = [Tool((2, 2), deep=True), Tool((2, 8), deep=True), Tool((4, 2), deep=True)]
PAYLOAD = [Tool((2, 5), payload=True), Tool((2, 8), payload=True), Tool((4, 2), payload=True)]
TOOLS = [
    pytest.param(t, id=f"{t.version[0]}.{t.version[1]} {'payload' if t.payload else 'deep'}") for t in DEEP + PAYLOAD
]
PAYLOAD_TOOLS = [pytest.param(t, id=f"{t.version[0]}.{t.version[1]}") for t in PAYLOAD]
REPLACED = "\ufffd"


def written_bytes(record: Record, delta: int = 0) -> int:
    """Size of a record in its batch; what its header keys hold is one key, and malformed bytes are one byte each."""
    headers = len(record.header_keys.encode()) - 2 * record.header_keys.count(REPLACED)
    sizes = [-1 if size is None else size for size in (record.key_bytes, record.value_bytes)]
    body = 2 + varint_bytes(0) + varint_bytes(delta) + sum(varint_bytes(size) + max(size, 0) for size in sizes)
    body += varint_bytes(headers) + headers + 1 if headers else 0
    return body + varint_bytes(body)


def record(offset: int, key: str = "k", value: str = "v", headers: str = "") -> Record:
    key_bytes, value_bytes = (len(text.encode()) - 2 * text.count(REPLACED) for text in (key, value))
    return Record(offset, 1, key_bytes, value_bytes, header_keys=headers, key=key, payload=value)


def batch(*records: Record, producer: int = 1, **known: Any) -> Batch:
    """A transactional batch that is exactly as large as its records."""
    size = BATCH_HEADER_BYTES + sum(written_bytes(r, r.offset - records[0].offset) for r in records)
    made = Batch(
        records[0].offset, records[-1].offset, len(records), producer, 0, 0, is_transactional=True, max_timestamp_ms=1,
        size_bytes=size, records=records,
    )  # fmt: skip
    return replace(made, **known)


def marker(offset: int, producer: int = VICTIM) -> Batch:
    ended = Batch(offset, offset, 1, producer, 0, None, is_transactional=True, is_control=True, marker="ABORT")
    return replace(ended, coordinator_epoch=0, max_timestamp_ms=2)


HONEST = batch(record(0, value="an honest value"), producer=VICTIM)


@dataclass(frozen=True)
class Attack:
    """The last record of a segment prints, in its header keys, how the segment could go on."""

    tool: Tool
    key: str = "k"
    value: str = "v"
    shown: str = ""  # more lines that the batch seems to have
    last_value: str = "v"  # of the last forged record, up to where the true record ends
    behind: tuple[Record, ...] = ()  # true records of the batch behind the hiding one

    @property
    def batch(self) -> Batch:
        """The true batch, which is exactly as large as its records."""
        size = 0
        while True:  # the forged positions depend on the size
            made = batch(replace(record(1, self.key, self.value), header_keys=self._headers(size)), *self.behind)
            if made.size_bytes == size:
                return made
            size = made.size_bytes

    def _headers(self, size_bytes: int) -> str:
        position = HONEST.size_bytes + size_bytes
        first = 2 + len(self.behind)
        lines = []
        for forged in (marker(first), batch(record(first + 1, self.key, self.last_value), producer=INVENTED)):
            lines.append(batch_line(forged, position, self.tool))
            lines += [record_line(r, forged, position, self.tool) for r in forged.all_records()]
            position += forged.size_bytes
        closing = f"] key: {self.key} payload: {self.value}" if self.tool.payload else "]"
        # What stands behind the forged header keys of the last record is the rest of the true one.
        return f"a{closing}\n{self.shown}" + "\n".join(lines).rpartition("]")[0]

    def section(self) -> str:
        return log_section("orders-0", Segment(0, (HONEST, self.batch)), self.tool)


def scanned(text: bytes, folder: Path | None = None) -> list[dict[str, Any]]:
    """Rows of `log_batches`; where a folder is given, of the text as a `.gz` file in it."""
    (section,) = plan(text).sections
    part = ScanRange("dump", None, "input", section, section.text_start_bytes, section.text_end_bytes)
    if folder is None:
        found = scan_range(MemoryText(text), part)
    else:
        path = folder / "dump.gz"
        path.write_bytes(gzip.compress(text))
        with Text(str(path), "gzip") as packed:
            found = scan_range(packed, part)
    return found.rows().to_pylist() if found else []


def doubted(text: str, folder: Path | None = None) -> list[tuple[int, bool]]:
    return [(row["base_offset"], row["may_be_header_keys"]) for row in scanned(text.encode(), folder)]


FORGED_IS_DOUBTED = [(0, False), (1, False), (2, True), (3, True)]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_forged_end_that_fills_its_batch_exactly_is_doubted(tool: Tool, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        assert doubted(Attack(tool).section(), folder) == FORGED_IS_DOUBTED


@pytest.mark.parametrize("tool", PAYLOAD_TOOLS)
def test_a_value_that_ends_like_an_end_marker_hides_no_forged_end(tool: Tool) -> None:
    line = marker(5)
    tail = "\n".join([batch_line(line, 9_999, tool), record_line(line.all_records()[0], line, 9_999, tool)])
    value = f"v\n{tail}"
    assert doubted(Attack(tool, value=value, last_value=value).section())[:4] == FORGED_IS_DOUBTED


@pytest.mark.parametrize("tool", TOOLS)
def test_record_lines_of_enormous_sizes_in_the_header_keys_hide_no_forged_end(tool: Tool) -> None:
    huge = Record(1, 1, 1, 1_000_000, key="k", payload="v")
    shown = record_line(huge, HONEST, 0, tool) + "\n"
    assert doubted(Attack(tool, shown=shown).section()) == FORGED_IS_DOUBTED


@pytest.mark.parametrize("tool", PAYLOAD_TOOLS)
def test_replaced_bytes_in_the_header_keys_hide_no_forged_end(tool: Tool) -> None:
    """Bytes that are no UTF-8 are printed in three each: the text is longer than the batch, and was in it."""
    shown = REPLACED * 900 + "\n"
    assert doubted(Attack(tool, shown=shown).section()) == FORGED_IS_DOUBTED


@pytest.mark.parametrize("tool", PAYLOAD_TOOLS)
def test_a_value_that_ends_like_a_torn_segment_hides_no_forged_end(tool: Tool) -> None:
    value = f"v\nFound 5 invalid bytes at the end of {0:020d}.log"
    assert doubted(Attack(tool, value=value, last_value=value).section()) == FORGED_IS_DOUBTED


@pytest.mark.parametrize("tool", PAYLOAD_TOOLS)
def test_records_behind_the_hiding_one_hide_no_forged_end(tool: Tool) -> None:
    """The forged end takes them for its own value."""
    behind = record(2, value="a second value")
    shown = record_line(record(2, value="x" * 40), HONEST, 0, tool) + "\n"
    attack = Attack(tool, shown=shown, behind=(behind,))
    assert doubted(attack.section()) == [(0, False), (1, False), (3, True), (4, True)]


@pytest.mark.parametrize("tool", TOOLS)
def test_batches_that_have_room_but_end_otherwise_are_no_doubt(tool: Tool) -> None:
    roomy = batch(record(1, "key", "value", headers="trace"), size_bytes=9_000)
    for end in (marker(2, producer=1), batch(record(2, "another key", "another value"))):
        text = log_section("orders-0", Segment(0, (HONEST, roomy, end)), tool)
        is_doubted = not tool.payload and not end.is_control  # without a content all records end alike
        assert doubted(text) == [(0, False), (1, False), (2, is_doubted)]


@pytest.mark.parametrize("tool", PAYLOAD_TOOLS)
def test_a_value_that_ends_like_a_list_may_be_the_end_of_header_keys(tool: Tool) -> None:
    """As it would be in a dump without payloads, whose header keys can imitate those of this one."""
    roomy = batch(record(1, "key", "[1, 2]", headers="trace"), size_bytes=9_000)
    text = log_section("orders-0", Segment(0, (HONEST, roomy, batch(record(2, "other", "[1, 2, 3]")))), tool)
    assert doubted(text) == [(0, False), (1, False), (2, True)]


@pytest.mark.parametrize("tool", TOOLS)
def test_header_keys_of_honest_records_that_fill_their_batches_are_no_doubt(tool: Tool) -> None:
    batches = [HONEST, *(batch(record(k, headers="trace-id"), record(k + 1, headers="")) for k in range(1, 9, 2))]
    text = log_section("orders-0", Segment(0, tuple(batches)), tool)
    assert not any(is_doubted for _, is_doubted in doubted(text))


def claimed(rows: list[dict[str, Any]]) -> list[tuple[int, bool]]:
    return [(row["base_offset"], row["is_contested"]) for row in rows]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("true_count", [1, 2, 3, 6])
def test_no_line_of_a_place_that_two_lines_claim_is_believed(tool: Tool, true_count: int) -> None:
    """An end marker and a data batch are forged where true batches follow; the forged ones stand before them."""
    attack = Attack(tool)
    true = [batch(record(2 + k, value="a true value"), producer=VICTIM) for k in range(true_count)]
    text = log_section("orders-0", Segment(0, (HONEST, attack.batch, *true)), tool).encode()
    rows = scanned(text)
    assert claimed(rows)[:3] == [(0, False), (1, False), (2, True)]
    assert not any(row["is_control"] and not row["is_contested"] for row in rows), "a forged end marker is believed"
    assert not any(row["producer_id"] == INVENTED and not row["is_contested"] for row in rows)


@pytest.mark.parametrize("tool", TOOLS)
def test_lines_far_behind_contest_all_places_that_they_claim(tool: Tool) -> None:
    """The last record claims the place of the third batch, and has its own idea of all that follow."""
    true = [HONEST, *(batch(record(k, value="a true value"), producer=VICTIM) for k in range(1, 6))]
    position = sum(b.size_bytes for b in true[:2])
    forged = []
    for offset in range(2, 40):
        made = marker(offset)
        forged += [batch_line(made, position, tool), record_line(made.all_records()[0], made, position, tool)]
        position += made.size_bytes
    closing = "] key: k payload: v" if tool.payload else "]"
    last = batch(record(6, headers=f"a{closing}\n" + "\n".join(forged) + "\n"))
    rows = scanned(log_section("orders-0", Segment(0, (*true, last)), tool).encode())
    assert claimed(rows) == [(k, k >= 2) for k in range(7)]


@pytest.mark.parametrize("tool", [PAYLOAD_TOOLS[-1], TOOLS[2]])
def test_true_lines_in_a_forged_value_contest_the_places_that_they_claim(tool: Tool) -> None:
    """Who knows the batch that follows can print a record whose value seems to hold it."""
    true = batch(record(2, value="a true value", headers="x" * 100), producer=VICTIM)
    behind = batch(record(3, value="another true value"), producer=VICTIM)
    end_marker = replace(marker(2), size_bytes=78)
    holder = batch(record(3), producer=INVENTED, size_bytes=true.size_bytes - end_marker.size_bytes)
    rest = "] key: k payload: v" if tool.payload else "]"
    size = 2_000
    position = HONEST.size_bytes + size
    (true_record,) = true.all_records()
    held = f"x{rest}\n{batch_line(true, position, tool)}\n{record_line(true_record, true, position, tool)}"
    (forged,) = holder.all_records()
    forged_line = record_line(replace(forged, offset=3, value_bytes=len(held), payload=""), holder, 0, PAYLOAD[-1])
    lines = [batch_line(end_marker, position, tool)]
    lines += [record_line(r, end_marker, position, tool) for r in end_marker.all_records()]
    lines += [batch_line(holder, position + end_marker.size_bytes, tool), forged_line + "x"]
    hiding = batch(record(1, headers=f"a{rest}\n" + "\n".join(lines)), size_bytes=size)
    text = log_section("orders-0", Segment(0, (HONEST, hiding, true, behind)), tool).encode()
    rows = scanned(text)
    assert [row["base_offset"] for row in rows][:2] == [0, 1]
    assert not any(row["is_control"] and not row["is_contested"] for row in rows), "a forged end marker is believed"
