"""The compiled reader says of lines what the forms' regular expressions say, or leaves them to these."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.dump_texts import BATCH_SIZE, batch, deep, dumping, plan, record
from tests.tools.log_evidence import MemoryText
from tests.tools.repository import CASES
from txn_analysis.columns.arrays import slices
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.reading.dump import records
from txn_analysis.reading.dump.records import Walk, walk_records
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.grammar.field_reader import NO_FORM, read_lines
from txn_analysis.reading.grammar.forms import BARE_RECORD_FORMS, BATCH_FORMS, LEGACY_FORMS, MARKER_FORMS
from txn_analysis.reading.grammar.line_form import LineForm
from txn_analysis.reading.grammar.lines import Candidates, Lines, read_batch_lines
from txn_analysis.reading.text.section import ScanRange, Section

NEWEST, MIDDLE, OLD = (BATCH_FORMS[grammar] for grammar in ("3.2+", "2.2-3.1", "2.1"))
HEAD = (
    b"baseOffset: 5 lastOffset: 7 count: 3 baseSequence: -1 lastSequence: -1 producerId: 4001 producerEpoch: 0 "
    b"partitionLeaderEpoch: 2 isTransactional: true isControl: false"
)
LINES = {
    NEWEST: HEAD + b" deleteHorizonMs: OptionalLong[17] position: 9 CreateTime: 1700000000000 size: 100 magic: 2 "
    b"compresscodec: lz4 crc: 4294967295 isvalid: true",
    MIDDLE: HEAD + b" position: 9 LogAppendTime: -1 size: 100 magic: 2 compresscodec: NONE crc: 1 isvalid: false",
    OLD: HEAD + b" position: 9 NoTimestampType: -1 isvalid: true size: 100 magic: 2 compresscodec: ZSTD crc: 1",
    LEGACY_FORMS.forms[
        0
    ]: b"offset: 7 position: 9 CreateTime: 5 size: 40 magic: 1 compresscodec: gzip crc: 7 isvalid: true",
    LEGACY_FORMS.forms[1]: b"offset: 7 position: 9 NoTimestampType: -1 isvalid: false size: 40 magic: 0 "
    b"compresscodec: GZIP crc: 7",
    BARE_RECORD_FORMS.forms[0]: b"| offset: 7 CreateTime: 5 keySize: 1 valueSize: -1 sequence: 3 headerKeys: [a,b]",
    BARE_RECORD_FORMS.forms[1]: b"| offset: 7 LogAppendTime: 5 keysize: 1 valuesize: 12 sequence: 3 headerKeys: []",
    MARKER_FORMS.forms[0]: b"| offset: 7 CreateTime: 5 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
    b"endTxnMarker: COMMIT coordinatorEpoch: 12",
}
WORDS = (
    *(b"+5", b"-5", b"\t5", b"0x10", b"", b"-", b"-0", b"007", b"5.0", b"1e3", b"true", b"True", b"truefalse", b"\r"),
    *(b"4294967296", b"99999999999", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"\xff"),
    *(b"00000000000000000001", b"18446744073709551621", b"32768", b"-32768", b"-32769", b"2147483648", b"offset:"),
    *(b"OptionalLong.empty", b"OptionalLong[]", b"OptionalLong[-1]", b"OptionalLong[12", b"OptionalLong.emptx"),
    *(b"OptionalLong[9223372036854775808]", b"CreateTime:", b"LogAppendTime:", b"none", b"nones", b"gzip", b"1", b"2"),
    *(b"[", b"]", b"[]]", b"[a] key: k", b"[a", b"[ ]"),
)
changes = st.lists(st.tuples(st.integers(0, 40), st.sampled_from(WORDS)), max_size=3)


def changed(line: bytes, changes: list[tuple[int, bytes]]) -> bytes:
    words = line.split(b" ")
    for place, word in changes:
        words[place % len(words)] = word
    return b" ".join(words)


def read_one(line: bytes, form: LineForm) -> dict[str, int] | None:
    """A line between others, by the compiled reader."""
    data = b"a line\n" + line + b"\n" + bytes(160)
    start = len(b"a line\n")
    with loading_takes(NOTHING):
        read = read_lines(data, np.array([start]), np.array([start + len(line)]), form.alone)
    assert read is not None
    values, form_of = read
    return None if form_of[0] == NO_FORM else {name: int(value[0]) for name, value in values.items()}


@pytest.mark.parametrize(
    "form", LINES, ids=["3.2", "2.2", "2.1", "old format", "older tool", "record", "old record", "marker"]
)
def test_a_line_as_the_tool_prints_it_is_read(form: LineForm) -> None:
    read = read_one(LINES[form], form)
    assert read is not None
    assert read == form.read(LINES[form])


@given(st.sampled_from(list(LINES)), changes)
@example(NEWEST, [(21, b"OptionalLong.empty")])
@example(NEWEST, [(33, b"00000000001")])
@example(NEWEST, [(1, b"-9223372036854775808")])
def test_what_fits_is_what_the_expression_reads(form: LineForm, changes: list[tuple[int, bytes]]) -> None:
    line = changed(LINES[form], changes)
    fast = read_one(line, form)
    assert fast is None or fast == form.read(line)


@given(st.sampled_from(list(LINES)), st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_line_with_other_bytes_is_read_as_by_the_expression(form: LineForm, at: int, other: bytes) -> None:
    line = LINES[form]
    at %= len(line)
    line = (line[:at] + other + line[at + len(other) :]).replace(b"\n", b"\r")
    fast = read_one(line, form)
    assert fast is None or fast == form.read(line)


STARTS = (b"baseOffset: ", b"| offset: ", b"offset: ", b"baseOffset:", b"|offset: ", b"", b"x", b"base")


@given(st.lists(st.tuples(st.sampled_from(STARTS), st.integers(0, 90)), max_size=30), st.booleans())
def test_lines_begin_where_the_expression_finds_them(parts: list[tuple[bytes, int]], has_newline: bool) -> None:
    data = b"\n".join(start + b"x" * length for start, length in parts) + (b"\n" if has_newline else b"")
    with loading_takes(NEVER):
        plain = Lines.of(data)
    with loading_takes(NOTHING):
        fast = Lines.of(data)
    assert [plain.text(k) for k in range(len(plain.starts))] == [fast.text(k) for k in range(len(fast.starts))]
    assert plain.kinds.tolist() == fast.kinds.tolist()


@given(st.lists(st.sampled_from([b"baseOffset: 1", b"| offset: 2", b"offset: 3", b"other", b"", b"base"]), max_size=9))
def test_some_lines_are_taken_as_they_stand(texts: list[bytes]) -> None:
    data = b"\n".join(texts)
    found = Lines.of(data)
    kept = [text for text in texts if text.startswith((b"baseOffset: ", b"| offset: ", b"offset: "))]
    assert [found.text(k) for k in range(len(found.starts))] == kept
    some = np.arange(0, len(kept), 2)
    taken = slices(data, found.starts[some], found.stops[some])
    assert taken.to_pylist() == [data[found.starts[k] : found.stops[k]] for k in some]


@given(st.lists(changes, min_size=1, max_size=6), st.integers(0, 40))
@example([[], [], []], 0)
@example([[], [(2, b"+5")], []], 0)
@example([[], [(35, b"true and more")], []], 0)
def test_a_shallow_dump_is_read_alike_line_by_line_and_as_a_run(texts: list[list[tuple[int, bytes]]], cut: int) -> None:
    data = b"".join(changed(LINES[NEWEST], own) + b"\n" for own in texts)
    data = data[: len(data) - cut] + bytes(160 * (cut % 2))
    assert_read_alike(data)
    with loading_takes(NEVER):
        plain = Lines.of(data)
    with loading_takes(NOTHING):
        fast = Lines.of(data)
    for name in ("starts", "ends", "kinds"):
        assert getattr(plain, name).tolist() == getattr(fast, name).tolist()


def test_a_small_shallow_dump_is_one_run_up_to_its_last_line() -> None:
    data = (LINES[NEWEST] + b"\n") * 3
    with loading_takes(NOTHING):
        assert len(Lines.of(data).run) == 3
        assert len(Lines.of(data[:-1]).run) == 2  # the last line may have been cut


def test_more_lines_than_usual_in_a_text_are_all_found() -> None:
    data = b"| offset: 1\n" * 100_000
    with loading_takes(NOTHING):
        assert len(Lines.of(data).starts) == 100_000


def dumps() -> list[Path]:
    return sorted(path for path in CASES.rglob("*.txt") if path.read_bytes().startswith(b"Dumping "))


def test_dumps_of_real_brokers_are_read_and_scanned_alike() -> None:
    for path in dumps():
        text, found = path.read_bytes(), []
        assert_read_alike(text)
        sections = [section for section in plan(text).sections if section.kind in LOG_KINDS]
        for microseconds in (NEVER, NOTHING):
            with loading_takes(microseconds):
                found.append([scanned_section(text, section) for section in sections])
        assert found[0] == found[1], path


def test_an_end_marker_that_is_not_its_batches_own_is_not_believed() -> None:
    control = HEAD.replace(b"isControl: false", b"isControl: true")
    control = control.replace(b"lastOffset: 7 count: 3", b"lastOffset: 5 count: 1")
    control += b" position: 0 CreateTime: 7 size: 78 magic: 2 compresscodec: NONE crc: 1 isvalid: true\n"
    text = dumping("orders-0") + control + LINES[MARKER_FORMS.forms[0]] + b"\n" + batch(6, 1, 78) * 2
    for offset, word in ((b"offset: 7", None), (b"offset: 5", "COMMIT")):
        own = text.replace(b"| offset: 7", b"| " + offset)
        (section,) = plan(own).sections
        for microseconds in (NEVER, NOTHING):
            with loading_takes(microseconds):
                assert scanned_section(own, section)[0]["marker"] == word


def scanned_section(text: bytes, section: Section) -> list[dict[str, Any]]:
    whole = ScanRange("dump.txt", None, "input", section, section.text_start_bytes, section.text_end_bytes)
    found = scan_range(MemoryText(text), whole)
    return found.rows().to_pylist() if found else []


def test_lines_of_other_forms_stand_in_their_places() -> None:
    legacy = b"offset: 0 position: 0 CreateTime: 5 isvalid: true size: 40 magic: 1 compresscodec: NONE crc: 7\n"
    data = dumping("orders-0") + LINES[NEWEST] + b"\n" + legacy + batch(1, 1, 40) + b"baseOffset: 1 torn\n"
    data += LINES[OLD] + b"\n" + batch(2, 1, 80) * 9
    plain = assert_read_alike(data)
    assert plain.columns["magic"].tolist()[:3] == [2, 1, 2]


def assert_read_alike(data: bytes) -> Candidates:
    with loading_takes(NEVER):
        plain = read_batch_lines(Lines.of(data))
    with loading_takes(NOTHING):
        fast = read_batch_lines(Lines.of(data))
    assert plain.line.tolist() == fast.line.tolist()
    for name, values in plain.columns.items():
        assert values.tolist() == fast.columns[name].tolist(), name
    return plain


@given(st.lists(st.tuples(st.booleans(), changes), min_size=1, max_size=3))
@example([(True, [(2, b"+5")])])
@example([(True, []), (True, [(6, b"-9223372036854775808")])])
def test_record_lines_without_payload_are_read_alike(texts: list[tuple[bool, list[tuple[int, bytes]]]]) -> None:
    """By the compiled reader, and by the walk from record to record."""
    new, old = (LINES[form].replace(b"offset: 7", b"offset: %d") for form in BARE_RECORD_FORMS.forms)
    parts = [changed((new if is_new else old) % k, c) + b"\n" for k, (is_new, c) in enumerate(texts)]
    text = dumping("orders-0") + b"".join(batch(k, 1, BATCH_SIZE * k) + line for k, line in enumerate(parts))
    (section,) = plan(text).sections
    found = []
    for microseconds in (NEVER, NOTHING):
        with loading_takes(microseconds):
            found.append(scanned_section(text, section))
    assert found[0] == found[1]


def test_record_lines_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the last one, behind which too little text stands."""
    walked: list[Walk] = []

    def walk(*place: Any, **limits: Any) -> Walk:
        walked.append(walk_records(*place, **limits))
        return walked[-1]

    monkeypatch.setattr(records, "walk_records", walk)
    text = deep("orders-0", *(record(k, None, printed=False) for k in range(50)))
    lines = Lines.of(text)
    with loading_takes(NOTHING):
        own = records.read_batch_text(
            lines, read_batch_lines(lines), starts_segment=True, ends_segment=True, has_header_keys=True
        )
    assert own.record_count.tolist() == [1] * 50
    assert len(walked) == 1
