"""Records of a decoded dump are the same, read many at once or one by one, however the text is cut and damaged."""

import gc
import re
import weakref
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.bodies import damaged, plain_rows, read_state_slices, single_flips, transactional_ids
from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.dump_texts import plan
from tests.tools.forms.model import StateRecord, StateValue
from tests.tools.log_evidence import MemoryText
from tests.tools.repository import CASES
from tests.unit.reading.test_state_records import dumped, segment
from txn_analysis.reading.dump.scan import read_slice
from txn_analysis.reading.state.decoded_dump import StateDumpReader
from txn_analysis.reading.text.section import ScanRange, Section
from txn_analysis.reading.text.window import Reject

NAME = "__transaction_state-1/00000000000000000000.log"
VERSIONS = ((2, 7), (3, 7), (4, 2), (4, 4))
DUMPS = {path.read_bytes() for path in CASES.rglob("*transaction_state*.txt") if "console" not in path.parts} - {b""}


def section_of(body: bytes, version: tuple[int, int]) -> tuple[bytes, Section]:
    text = b"Dumping it\n" + body
    grammar = "3.2+" if version >= (3, 2) else "2.2-3.1"
    place = "state", "__transaction_state", 1, 0
    return text, Section(*place, len(text) - len(body), len(text), grammar, NAME)


def rows_and_rejects(
    text: bytes, section: Section, cuts: tuple[int, ...] = ()
) -> tuple[list[dict[str, Any]], list[Reject]]:
    items = list(read_state_slices(MemoryText(text), section, cuts))
    return plain_rows(items), [item for item in items if isinstance(item, Reject)]


def check(text: bytes, section: Section, cuts: tuple[int, ...] = ()) -> None:
    with loading_takes(NEVER):
        expected = rows_and_rejects(text, section)
    with loading_takes(NOTHING):
        assert rows_and_rejects(text, section, cuts) == expected


def test_every_capture() -> None:
    for text in sorted(DUMPS):
        for section in plan(text).sections:
            if section.kind == "state":
                length = section.text_end_bytes - section.text_start_bytes
                check(text, section)
                check(text, section, tuple(section.text_start_bytes + k * length // 7 for k in range(1, 7)))


def values() -> st.SearchStrategy[StateValue]:
    listed = st.lists(st.tuples(st.sampled_from(("orders", "a-b.c_d")), st.integers(0, 3)), max_size=3, unique=True)
    return st.builds(
        StateValue,
        st.sampled_from((0, 7, 2**40)),
        st.sampled_from((0, 3, 32767)),
        st.sampled_from(("Empty", "Ongoing", "PrepareAbort", "CompleteCommit", "Dead", "PrepareEpochFence")),
        listed.map(tuple),
        st.just(1795),
        st.just(60000),
        st.sampled_from((None, 1790)),
        version=st.sampled_from((0, 0, 0, 1)),
    )


def bodies(version: tuple[int, int]) -> st.SearchStrategy[bytes]:
    records = st.builds(StateRecord, st.sampled_from(["a", "orders-1"]) | transactional_ids(), st.none() | values())
    return st.lists(records, min_size=1, max_size=12).map(lambda found: dumped(segment(*found), version))


@pytest.mark.parametrize("version", VERSIONS)
@given(st.data())
@settings(max_examples=30)
def test_any_text(version: tuple[int, int], data: st.DataObject) -> None:
    body = data.draw(bodies(version))
    if data.draw(st.booleans()):
        body = data.draw(st.one_of(damaged(body), single_flips(body)))
    text, section = section_of(body, version)
    places = st.integers(section.text_start_bytes, section.text_end_bytes)
    check(text, section, tuple(data.draw(st.lists(places, max_size=3))))


FIELD = re.compile(rb"(?<=[:=])-?\d+|(?<=[:=\[])[\w.-]+")


@pytest.mark.parametrize("version", VERSIONS)
@given(st.data())
@settings(max_examples=60)
def test_any_value_at_a_field(version: tuple[int, int], data: st.DataObject) -> None:
    """Each is refused, or read, as one by one."""
    value = StateValue(7, 3, "Ongoing", (("orders", 0), ("orders", 2), ("a-b", 12)), 1795, 60000, 1790)
    body = dumped(segment(StateRecord("a", replace(value, partitions=())), *[StateRecord("a", value)] * 3), version)
    lines = body.splitlines(keepends=True)
    field = data.draw(st.sampled_from([*FIELD.finditer(lines[3])]))
    put = data.draw(
        st.sampled_from((b"-1", b"-0", b"00", b"01", b"-2", b"32768", b"2147483648", b"9223372036854775808", b"x", b""))
        | st.sampled_from((b"9" * 18, b"9" * 19, b"1.0", b"1e3", b"true", b"null", b"253402300800000", b"99999999999"))
    )
    lines[3] = lines[3][: field.start()] + put + lines[3][field.end() :]
    check(*section_of(b"".join(lines), version))


def test_a_text_that_was_read_takes_no_memory_any_more() -> None:
    """Without a search for cycles: there is none while large buffers come and go."""
    body = dumped(segment(StateRecord("a", StateValue(7, 3, "Ongoing", (("orders", 0),), 1795, 60000, 1790))), (4, 2))
    text, section = section_of(body, (4, 2))
    part = ScanRange("", None, "input", section, section.text_start_bytes, section.text_end_bytes)
    own, reader = read_slice(MemoryText(text), part), StateDumpReader(MemoryText(text), section)
    assert own is not None
    kept = weakref.ref(own)
    gc.disable()
    try:
        assert [*reader.read(part.end, own)]
        del own, reader
        assert kept() is None
    finally:
        gc.enable()
