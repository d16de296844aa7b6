"""Header keys are printed raw, without a size: what a client writes there can look like the end of the log."""

from dataclasses import replace
from typing import Any

import pytest

from tests.tools.forms.dump_writer import Tool, batch_line, record_line
from tests.tools.forms.model import Batch, History, Segment
from tests.tools.log_evidence import LinkedPartition, batches_of, linked, section_row, sections_and_text

DEEP, PAYLOAD, SHALLOW = Tool(deep=True), Tool((3, 3), payload=True), Tool()
DOUBT = (
    "may be text of a record's header keys, or stand behind a line that says that the tool stopped, and would open a "
    "transaction; give a dump without --deep-iteration and without 2>&1 as well"
)


def data(offset: int, producer: int, *, headers: str = "", size_bytes: int = 2_000, codec: str = "none") -> Batch:
    batch = Batch(
        offset, offset, 1, producer, 0, 0, is_transactional=True, max_timestamp_ms=1_000 + offset, crc=offset,
        size_bytes=size_bytes, codec=codec,
    )  # fmt: skip
    (record,) = batch.all_records()
    filled = replace(record, header_keys=headers, key="k", key_bytes=1, payload="v", value_bytes=1)
    return replace(batch, records=(filled,))


def marker(offset: int, producer: int) -> Batch:
    ended = Batch(offset, offset, 1, producer, 0, None, is_transactional=True, is_control=True, marker="COMMIT")
    return replace(ended, coordinator_epoch=0, max_timestamp_ms=1_000 + offset)


def reconstructed(*copies: tuple[tuple[Batch, ...], Tool]) -> LinkedPartition:
    rows: list[dict[str, Any]] = []
    scanned = []
    for number, (batches, tool) in enumerate(copies):
        history = History("orders", 0, (Segment(batches[0].base_offset, batches),))
        sections, text = sections_and_text(history, tool)
        rows += [section_row(s, input_id=f"copy {number}") for s in sections]
        scanned += batches_of(sections, text, range_bytes=100_000, input_id=f"copy {number}")
    return linked(rows, scanned)


def problems(found: LinkedPartition) -> list[str]:
    return [problem.reason for problem in found.health.problems]


def forged_end(true: Batch, tool: Tool) -> str:
    """A header key that ends the list of header keys, and prints an open transaction of another producer."""
    forged = data(true.last_offset + 1, producer=99)
    (record,) = forged.all_records()
    lines = [batch_line(forged, true.size_bytes, tool), record_line(record, forged, true.size_bytes, tool)]
    closing = " key: k payload: v" if tool.payload else ""
    return f"a]{closing}\n" + "\n".join(lines).rpartition("]")[0]


def test_a_forged_end_of_the_log_is_not_believed() -> None:
    for tool in (DEEP, PAYLOAD):
        true = data(0, producer=1)
        found = reconstructed(((data(0, producer=1, headers=forged_end(true, tool)),), tool))
        assert problems(found) == [f"batches from offset 1 on {DOUBT}"], "the forgery is not perfect"
        assert [(t.producer_id, t.evidence_gaps) for t in found.transactions] == [(1, (*problems(found),))]


def test_doubtful_lines_that_open_nothing_hide_no_open_transaction() -> None:
    opening, ended = (data(0, 1, headers="trace"), data(1, 2)), (data(0, 1, headers="trace"), data(1, 1))
    kinds = [found.health.problems[0].kind for found in (reconstructed((each, DEEP)) for each in (opening, ended))]
    assert kinds == ["header_keys_may_open", "may_be_header_keys"]


def test_headers_of_a_batch_that_cannot_hold_the_rest_of_the_log_are_no_doubt() -> None:
    batches = (data(0, 1, headers="trace", size_bytes=100), data(1, 2, headers="trace", size_bytes=100))
    assert problems(reconstructed((batches, DEEP))) == []


@pytest.mark.parametrize(
    ("behind", "size_bytes", "is_doubtful"), [(1, 120, False), (1, 2_000, True), (300, 400, False), (300, 40_000, True)]
)
def test_a_compressed_batch_is_doubted_if_it_could_hold_what_is_behind_it(
    behind: int, size_bytes: int, is_doubtful: bool
) -> None:
    first = data(0, 1, size_bytes=size_bytes, codec="zstd")
    later = (data(offset, 2, size_bytes=80) for offset in range(1, behind + 1))
    assert bool(problems(reconstructed(((first, *later), DEEP)))) is is_doubtful


def test_an_end_that_is_no_rest_of_a_record_is_no_doubt() -> None:
    assert problems(reconstructed(((data(0, 1, headers="trace"), data(1, 2), marker(2, 2)), DEEP))) == []


def test_a_file_that_follows_leaves_the_doubt_in_what_may_be_a_hole_before_it() -> None:
    batches = (data(0, 1, headers="trace"), data(1, 2))
    assert problems(reconstructed((batches, DEEP), ((marker(2, 1),), DEEP))) == [f"batches from offset 1 on {DOUBT}"]


@pytest.mark.parametrize("following", [(data(1, 2), marker(2, 2)), (marker(1, 1),)])
def test_a_file_that_begins_where_the_doubtful_lines_do_shows_what_is_there(following: tuple[Batch, ...]) -> None:
    batches, end = (data(0, 1, headers="trace"), data(1, 2)), following[-1]
    found = reconstructed((batches, DEEP), (following, DEEP))
    assert problems(found) == []
    ended = [(t.producer_id, t.end_offset) for t in found.transactions if t.outcome != "open"]
    assert ended == [(end.producer_id, end.base_offset)]


def test_a_shallow_dump_of_the_same_log_ends_the_doubt() -> None:
    batches = (data(0, 1, headers="trace"), data(1, 2))
    assert problems(reconstructed((batches, DEEP))) == [f"batches from offset 1 on {DOUBT}"]
    assert problems(reconstructed((batches, DEEP), (batches, SHALLOW))) == []


def test_a_shallow_dump_of_the_same_log_shows_that_what_it_lacks_is_text() -> None:
    true = data(0, producer=1)
    forged = (data(0, producer=1, headers=forged_end(true, DEEP)),)
    for copies in (((forged, DEEP), (forged, SHALLOW)), ((forged, SHALLOW), (forged, DEEP))):
        found = reconstructed(*copies)
        assert (problems(found), found.health.end_offset) == ([], 1)
        assert [t.producer_id for t in found.transactions] == [1]


def test_a_shallow_dump_that_ends_before_the_hiding_record_says_nothing_of_it() -> None:
    first, true = data(0, producer=1, size_bytes=100), data(1, producer=1, size_bytes=2_100)  # where both end
    forged = data(1, producer=1, headers=forged_end(true, DEEP))
    found = reconstructed(((first, forged), DEEP), ((first,), SHALLOW))
    assert problems(found) == [f"batches from offset 2 on {DOUBT}"]
