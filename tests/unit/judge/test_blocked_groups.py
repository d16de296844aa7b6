"""Which groups an open transaction in `__consumer_offsets` holds up, and when that is known."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.judged_cases import OPEN
from tests.tools.records import sections_of
from txn_analysis.judge.blocked_groups import (
    GroupCommit,
    GroupOffsets,
    ReadStretch,
    blocked_groups,
    files_that_count,
    group_files,
)
from txn_analysis.tables import Transaction
from txn_analysis.tables.inputs import InputSection

Row = dict[str, Any]

TOPIC = "__consumer_offsets"
BYTES_AN_OFFSET = 100
OPEN_PRODUCER, OTHER_PRODUCER = 7, 8
UNKNOWN = (None, None)


def opened(start: int = 50, *, partition: int = 0, producer_id: int = OPEN_PRODUCER, exact: bool = True) -> Transaction:
    place: Row = {"topic": TOPIC, "partition": partition, "producer_id": producer_id}
    return OPEN._replace(**place, txn_start_offset=start, is_txn_start_exact=exact)


def file(
    first: int, end: int, *, name: str = "a", base: int | None = None, partition: int = 0, rank: int = 0
) -> InputSection:
    """A copied file with batches at these offsets; none where the two are the same."""
    section = {
        "input_id": f"{name}-{first}",
        "section_index": 0,
        "kind": "log",
        "topic": TOPIC,
        "capture_rank": rank,
        "partition": partition,
        "file_base_offset": first if base is None else base,
        "first_offset": None if first == end else first,
        "end_offset": None if first == end else end,
        "text_start_bytes": first * BYTES_AN_OFFSET,
        "text_end_bytes": end * BYTES_AN_OFFSET,
    }
    return sections_of([section])[0]


def read(found: InputSection, *cuts: int) -> list[ReadStretch]:
    """The stretches of a file of which every record was read, in ranges that begin at some offsets."""
    bounds = [found.text_start_bytes, *(cut * BYTES_AN_OFFSET for cut in cuts), found.text_end_bytes]
    place = found.input_id, found.section_index, found.partition
    return [ReadStretch(*place, a, b) for a, b in pairwise(bounds) if a < b]


def commit(group: str, offset: int, producer_id: int | None = None, *, partition: int = 0) -> GroupCommit:
    return GroupCommit(partition, group, producer_id, offset)


def answer(
    transactions: list[Transaction],
    files: list[InputSection],
    found: Sequence[tuple[object, ...]],
    partition: int = 0,
) -> tuple[list[str] | None, ...]:
    """The pending and the waiting groups of a partition."""
    counted = files_that_count(files, {transaction.partition for transaction in transactions})
    keys = {(file.input_id, file.section_index) for file in counted}
    stretches = (s for s in found if isinstance(s, ReadStretch) and (s.input_id, s.section_index) in keys)
    commits = (one for one in found if isinstance(one, GroupCommit))
    groups = blocked_groups(transactions, counted, GroupOffsets(tuple(stretches), tuple(commits)))[partition]
    known = (groups.pending_groups, groups.waiting_groups)
    return tuple(None if names is None else list(names) for names in known)


LOG = file(0, 100)


@cases(
    "commits expected",
    {
        "none-at-all": ([], ([], [])),
        "in-the-transaction": ([commit("a", 60, OPEN_PRODUCER)], (["a"], [])),
        "in-its-first-batch": ([commit("a", 50, OPEN_PRODUCER)], (["a"], [])),
        "in-an-earlier-one-of-the-producer": ([commit("a", 49, OPEN_PRODUCER)], ([], ["a"])),
        "of-another-producer": ([commit("a", 60, OTHER_PRODUCER)], ([], ["a"])),
        "without-a-transaction": ([commit("a", 60)], ([], ["a"])),
        "pending-is-not-waiting": ([commit("a", 60, OPEN_PRODUCER), commit("a", 70)], (["a"], [])),
        "sorted": ([commit("b", 1), commit("a", 2)], ([], ["a", "b"])),
    },
)
def test_who_waits_and_who_shares(commits: list[GroupCommit], expected: tuple[list[str], list[str]]) -> None:
    assert answer([opened()], [LOG], [*read(LOG), *commits]) == expected


def test_each_open_transaction_has_its_own_start() -> None:
    transactions = [opened(), opened(80, producer_id=OTHER_PRODUCER)]
    commits = [commit("a", 70, OTHER_PRODUCER), commit("b", 80, OTHER_PRODUCER)]
    assert answer(transactions, [LOG], [*read(LOG), *commits]) == (["b"], ["a"])


def test_partitions_do_not_answer_for_each_other() -> None:
    other = file(0, 100, name="b", partition=1)
    rows = [*read(LOG), commit("a", 60), *read(other), commit("b", 60, partition=1)]
    transactions = [opened(), opened(partition=1)]
    assert answer(transactions, [LOG, other], rows) == ([], ["a"])
    assert answer(transactions, [LOG, other], rows, partition=1) == ([], ["b"])


def test_a_file_that_was_read_in_ranges_is_read() -> None:
    assert answer([opened()], [LOG], [*read(LOG, 30, 60), commit("a", 60)]) == ([], ["a"])


@pytest.mark.parametrize("lost", range(3))
def test_a_file_with_a_range_that_was_not_read_is_not_known(lost: int) -> None:
    ranges = read(LOG, 30, 60)
    ranges.pop(lost)
    assert answer([opened()], [LOG], [*ranges, commit("a", 60, OPEN_PRODUCER)]) == UNKNOWN


def test_what_was_read_without_the_table_is_not_known() -> None:
    assert answer([opened()], [LOG], []) == UNKNOWN


def test_a_partition_without_files_is_not_known() -> None:
    assert answer([opened()], [], []) == UNKNOWN


def test_a_dump_without_the_decoder_beside_one_with_it_takes_nothing_away() -> None:
    shallow = file(0, 100, name="shallow")
    assert answer([opened()], [LOG, shallow], [*read(LOG), commit("a", 60)]) == ([], ["a"])


def test_a_dump_without_the_decoder_that_reaches_further_may_hide_a_group() -> None:
    shallow = file(0, 101, name="shallow")
    assert answer([opened()], [LOG, shallow], [*read(LOG), commit("a", 60)]) == UNKNOWN


def test_a_file_of_which_nothing_was_understood_may_hide_a_group() -> None:
    garbage = file(100, 100, name="garbage")._replace(text_end_bytes=100_000)
    assert answer([opened()], [LOG, garbage], [*read(LOG), commit("a", 60)]) == UNKNOWN


def test_an_empty_file_hides_nothing() -> None:
    empty = file(100, 100, name="empty")
    assert answer([opened()], [LOG, empty], [*read(LOG), commit("a", 60)]) == ([], ["a"])


def test_between_two_files_compaction_may_have_removed_offsets_below_the_start() -> None:
    old, new = file(0, 20), file(40, 100)
    assert answer([opened()], [old, new], [*read(old), *read(new)]) == ([], [])


def test_a_hole_behind_the_start_may_hide_a_group() -> None:
    old, new = file(0, 60), file(70, 100)
    assert answer([opened()], [old, new], [*read(old), *read(new)]) == UNKNOWN


def test_a_start_that_only_a_snapshot_knows_may_have_had_more_groups() -> None:
    log = file(60, 100)
    assert answer([opened(50)], [log], [*read(log), commit("a", 70, OPEN_PRODUCER)]) == UNKNOWN


def test_a_start_that_may_lie_earlier_may_have_had_more_groups() -> None:
    assert answer([opened(exact=False)], [LOG], [*read(LOG), commit("a", 60, OPEN_PRODUCER)]) == UNKNOWN


def test_a_file_holds_what_compaction_left_from_its_name_on() -> None:
    shallow, decoded = file(3, 100, name="shallow", base=0), file(5, 100, base=0)
    assert answer([opened()], [shallow, decoded], [*read(decoded)]) == ([], [])


def test_an_earlier_capture_counts_for_what_begins_before_todays_files() -> None:
    yesterday, today = file(0, 60, name="yesterday", rank=1), file(60, 100)
    rows = [*read(yesterday), *read(today), commit("a", 55, OPEN_PRODUCER)]
    assert answer([opened()], [yesterday, today], rows) == (["a"], [])


def test_an_earlier_capture_that_was_not_read_counts_as_well() -> None:
    yesterday, today = file(0, 60, name="yesterday", rank=1), file(60, 100)
    assert answer([opened(70)], [yesterday, today], read(today)) == UNKNOWN


def test_an_earlier_copy_of_todays_files_does_not_count() -> None:
    """Compaction may have removed its groups since, and a version before this one may have read it."""
    yesterday, today = file(0, 90, name="yesterday", rank=1), file(0, 100, name="today")
    assert answer([opened()], [yesterday, today], [*read(today), commit("a", 60)]) == ([], ["a"])
    assert files_that_count([yesterday, today], {0}) == [today]


def test_the_same_file_in_two_captures_counts_once() -> None:
    assert files_that_count([LOG._replace(capture_rank=1), LOG], {0}) == [LOG]


def test_a_partition_that_only_an_earlier_capture_holds_is_answered_from_it() -> None:
    yesterday = file(0, 100, rank=2)
    assert answer([opened()], [yesterday], [*read(yesterday), commit("a", 60, OPEN_PRODUCER)]) == (["a"], [])


def test_other_topics_and_other_files_do_not_count() -> None:
    own = LOG._asdict()
    assert group_files(sections_of([own | {"topic": "orders"}, own | {"kind": "snapshot"}, own])) == [LOG]
    assert files_that_count([LOG._replace(partition=1)], {0}) == []
