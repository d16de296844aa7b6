"""Batches of small sections of logs are the same, read together or each by itself, whatever else lies among them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.compiling import NEVER, NOTHING, loading_takes
from tests.tools.dump_texts import BATCH_SIZE, batch, deep, dumping, plan, record, shallow
from tests.tools.forms.history import histories
from tests.tools.forms.model import History
from tests.tools.log_dirs.encoder import as_written, segment_bytes
from tests.tools.log_dirs.reading import Segment
from tests.tools.log_evidence import MemoryText
from txn_analysis.reading.dump import small_sections
from txn_analysis.reading.dump.scan import scan_range
from txn_analysis.reading.dump.small_sections import SmallSections
from txn_analysis.reading.log_dir.segment import scan_segment
from txn_analysis.reading.text.section import ScanRange
from txn_analysis.reading.text.text import Text
from txn_analysis.tables.batches import Batches

Item = tuple["Text", ScanRange]

CHAINED = [shallow(f"orders-{k}", batches=k + 1, offset=k) for k in range(6)]
UNUSUAL = {
    "records": deep("orders-7", record(0), record(1)),
    "records behind the second batch": shallow("orders-7") + record(2),
    "a batch that is missing": dumping("orders-7") + batch(0, 1, 0) + batch(2, 1, 2 * BATCH_SIZE),
    "an offset that falls": dumping("orders-7", 5) + batch(5, 1, 0) + batch(4, 1, BATCH_SIZE),
    "a line that is cut": shallow("orders-7")[:-40],
    "a line without its end": shallow("orders-7")[:-1],
    "a line of something else": shallow("orders-7") + b"something else\n",
    "a count that no batch has": dumping("orders-7") + batch(0, 1, 0).replace(b"count: 1 ", b"count: 7 "),
    "another form of lines": shallow("orders-7").replace(b"deleteHorizonMs: OptionalLong.empty ", b""),
}


def dump(text: bytes) -> Item:
    (section,) = plan(text).sections
    place = "dump.txt", None, f"input-{section.partition}-{len(text)}"
    return MemoryText(text), ScanRange(*place, section, section.text_start_bytes, section.text_end_bytes)


def segment_item(data: bytes, base_offset: int) -> Item | None:
    found = Segment.of(data, base_offset=base_offset)
    (section,) = found.plan.sections
    part = ScanRange("0.log", None, found.plan.input_id, section, 0, section.text_end_bytes)
    return (found.text, part) if part.end else None


def together(items: Iterable[Item]) -> tuple[list[Batches], list[ScanRange]]:
    small, found = SmallSections(), list[Batches]()
    left = []
    for text, part in items:
        if not small.takes(text, part):
            left.append(part)
        found += small.batches()
    return [*found, *small.batches(is_end=True)], [*left, *small.left]


def rows(batches: Iterable[Batches | None]) -> list[dict[str, Any]]:
    found = [row for each in batches if each for row in each.rows().to_pylist()]
    return sorted(found, key=lambda row: (row["input_id"], row["text_start_bytes"]))


def check(items: Sequence[Item], scan: Any) -> list[ScanRange]:
    """Together with those that are left the rows are the same; those that are left."""
    with loading_takes(NOTHING):
        expected = rows(scan(text, part) for text, part in items)
        found, left = together(items)
        assert rows([*found, *(scan(text, part) for text, part in items if part in left)]) == expected
    return left


def test_shallow_dumps_are_read_together() -> None:
    assert not check([dump(text) for text in CHAINED], scan_range)


@pytest.mark.parametrize("what", UNUSUAL)
@pytest.mark.parametrize("at", [0, 3, 6])
def test_an_unusual_dump_among_others_changes_no_row(what: str, at: int) -> None:
    check([dump(text) for text in [*CHAINED[:at], UNUSUAL[what], *CHAINED[at:]]], scan_range)


@pytest.mark.parametrize("what", ["records", "records behind the second batch", "a batch that is missing"])
def test_an_unusual_dump_alone_is_left(what: str) -> None:
    items = [dump(text) for text in [*CHAINED[:3], UNUSUAL[what], *CHAINED[3:]]]
    assert check(items, scan_range) == [items[3][1]]


def test_few_lines_are_left_to_the_expressions() -> None:
    items = [dump(text) for text in CHAINED]
    with loading_takes(NEVER):
        assert together(items) == ([], [part for _, part in items])


def test_a_group_is_no_larger_than_what_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_sections, "TOGETHER_BYTES", 2 * len(CHAINED[2]))
    assert not check([dump(text) for text in CHAINED], scan_range)


@settings(max_examples=40, deadline=None)
@given(st.lists(histories(max_steps=12), min_size=1, max_size=4), st.data())
def test_small_segments_of_any_logs(logs: list[History], data: st.DataObject) -> None:
    """Damaged ones as well: of some a byte is another one, some end too early. What is whole is read with others."""
    items, whole = [], []
    for each in (each for history in logs for each in as_written(history).segments):
        content, is_damaged = segment_bytes(each), data.draw(st.booleans())
        if content and is_damaged:
            at, flipped = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 255))
            content = content[:at] + bytes([content[at] ^ flipped]) + content[at + 1 :]
            content = content[: data.draw(st.sampled_from([len(content), at]))]
        item = segment_item(content, each.base_offset)
        if item:
            items.append(item)
            whole += [] if is_damaged else [item[1]]
    left = check(items, scan_segment)
    assert not [part for part in whole if part in left]
