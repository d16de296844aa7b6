"""When a start is exact: nothing that is missing could hold an earlier batch of the transaction."""

from typing import Any

import pytest

from tests.tools.forms.model import Batch, History, Segment
from tests.tools.log_evidence import (
    LinkedPartition,
    batches_of,
    linked,
    section_row,
    sections_and_text,
    snapshot_evidence,
)
from tests.unit.log.test_copies import DEEP, FULL, OTHER_PRODUCER, TODAY, YESTERDAY, data, gaps, link, log, marker

Row = dict[str, Any]
OTHERS = OTHER_PRODUCER


def exact(found: LinkedPartition) -> dict[int, bool]:
    return {t.producer_id: t.is_txn_start_exact for t in found.transactions if t.outcome == "open"}


def files(*given: tuple[int, tuple[Batch, ...]], snapshots: tuple[tuple[History, int], ...] = ()) -> LinkedPartition:
    """Files of one broker by the offsets in their names, and snapshots of what a whole log held at an offset."""
    return link(
        *[(log(*batches, base_offset=base), DEEP, TODAY) for base, batches in given],
        snapshots=tuple(snapshot_evidence(history, offset) for history, offset in snapshots),
    )


def test_a_log_from_offset_0_has_every_start() -> None:
    assert exact(files((0, (data(0), data(1, producer=OTHERS))))) == {7: True, OTHERS: True}


def test_of_a_log_whose_first_files_are_gone_only_a_marker_before_makes_it_exact() -> None:
    assert exact(files((5, (marker(5), data(6), data(7, producer=OTHERS))))) == {7: True, OTHERS: False}


@pytest.mark.parametrize("base_offset", [0, 1])
def test_what_compaction_took_inside_the_first_file_hides_no_start(base_offset: int) -> None:
    """Of a file named 1, a log that begins there is not known to be the whole."""
    assert exact(files((base_offset, (data(3), data(4))))) == {7: base_offset == 0}


def test_what_compaction_took_between_batches_of_a_file_hides_no_start() -> None:
    assert exact(files((0, (data(0, producer=OTHERS), marker(1, producer=OTHERS), data(5))))) == {7: True}


def test_a_file_that_is_gone_in_the_middle_may_hold_the_start() -> None:
    before = (marker(0), data(1, producer=OTHERS))
    assert exact(files((0, before), (5, (data(5), data(6, producer=9))))) == {7: False, OTHERS: True, 9: False}
    again = (marker(5), data(6))
    assert exact(files((0, before), (5, again))) == {7: True, OTHERS: True}


def test_an_empty_first_file_is_not_the_log_up_to_the_next_one() -> None:
    (empty,), _ = sections_and_text(log(base_offset=0), DEEP)
    (later,), text = sections_and_text(log(data(5)), DEEP)
    rows = [section_row(empty, input_id="empty") | {"text_end_bytes": empty.text_start_bytes}, section_row(later)]
    assert exact(linked(rows, batches_of([later], text, range_bytes=10_000))) == {7: False}


def test_batches_that_are_missing_inside_a_file_may_hold_the_start() -> None:
    """Compaction leaves positions that chain; a cut out of a dump does not."""
    (section,), text = sections_and_text(log(data(0, producer=OTHERS), data(1), data(2), data(3, producer=9)), DEEP)
    lines = text.split(b"\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(b"baseOffset: 2 "))
    scanned = batches_of([section], b"\n".join(lines[:at]), range_bytes=10_000)
    behind = next(n for n, line in enumerate(lines) if line.startswith(b"baseOffset: 3 "))
    cut = b"\n".join(lines[:at] + lines[behind:])
    scanned = batches_of([section], cut.ljust(len(text), b"\n"), range_bytes=10_000)
    assert exact(linked([section_row(section)], scanned)) == {7: True, OTHERS: True, 9: False}


WHOLE = log(data(0), data(1, producer=OTHERS), marker(2, producer=OTHERS), data(3), data(4, producer=OTHERS))


def test_a_snapshot_where_the_first_file_begins_stands_for_what_is_gone() -> None:
    found = files((3, WHOLE.batches[3:]), snapshots=((WHOLE, 3),))
    assert (exact(found), gaps(found)) == ({7: True, OTHERS: True}, [])


def test_a_snapshot_stands_for_what_is_gone_where_compaction_took_the_first_batches_of_the_file() -> None:
    found = files((3, WHOLE.batches[4:]), snapshots=((WHOLE, 3),))
    assert exact(found) == {7: True, OTHERS: True}


def test_where_files_are_missing_behind_a_snapshot_what_it_names_may_have_ended() -> None:
    found = files((4, WHOLE.batches[4:]), snapshots=((WHOLE, 3),))
    assert exact(found) == {7: False, OTHERS: False}
    broken = {t.producer_id: t.evidence_gaps for t in found.transactions}
    assert broken == {7: ("offsets 3 to 3 are in no file",), OTHERS: ()}


def test_a_newer_snapshot_that_names_it_as_well_settles_that() -> None:
    whole = log(*WHOLE.batches, data(5, producer=OTHERS))
    found = files((4, WHOLE.batches[4:]), (5, whole.batches[5:]), snapshots=((whole, 3), (whole, 5)))
    assert {t.producer_id: t.evidence_gaps for t in found.transactions} == {7: (), OTHERS: ()}


def test_an_end_marker_that_compaction_took_since_an_earlier_copy_still_counts() -> None:
    thinned = log(*FULL[2:], base_offset=0)
    whole = (log(*FULL), DEEP, YESTERDAY)
    later = log(data(6))
    assert exact(link((thinned, DEEP, TODAY), (later, DEEP, TODAY), whole)) == {7: True}


def test_a_file_that_is_not_there_from_its_first_batch_on_may_lack_the_start() -> None:
    history = History("orders", 0, (Segment(0, (data(0, producer=OTHERS), data(1), data(2))),))
    (section,), text = sections_and_text(history, DEEP)
    at = text.index(b"baseOffset: 1 ")
    scanned = batches_of([section], b"\n" * at + text[at:], range_bytes=10_000)
    assert exact(linked([section_row(section)], scanned)) == {7: False}
