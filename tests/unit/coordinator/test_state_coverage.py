"""What of `__transaction_state` was seen, and what its absence is worth."""

from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.judged_cases import FOUR, HEALTH
from txn_analysis.coordinator.chain import StateChain
from txn_analysis.coordinator.coverage import (
    Hole,
    StateEvidence,
    StatePartition,
    state_coverage,
    state_evidence_of,
)
from txn_analysis.coordinator.partition_count import DEFAULT, GIVEN, StateCount
from txn_analysis.coordinator.sections import SectionSum, StateSection
from txn_analysis.settings import Settings
from txn_analysis.tables import Problem


def changed(section: StateSection, **changes: Any) -> StateSection:
    """The same file, which has other values, or whose records have."""
    of_records = {name: changes.pop(name) for name in [*changes] if name in SectionSum._fields}
    return section._replace(sum=section.sum._replace(**of_records), **changes)


FIRST_FILE = StateSection(0, 0, SectionSum(first_offset=0, first_ms=10, last_offset=99))
SECOND_FILE = changed(FIRST_FILE, file_base_offset=100, first_offset=100, last_offset=150, first_ms=510)


def only(*sections: StateSection, problems: dict[int, list[str]] | None = None) -> StatePartition:
    return state_coverage(1, list(sections), problems or {}, {})[0]


def test_files_that_join_are_whole() -> None:
    partition = only(SECOND_FILE, FIRST_FILE)
    assert (partition.problems, partition.holes) == ([], [])


def test_a_missing_partition_is_named() -> None:
    assert [p.problems for p in state_coverage(2, [FIRST_FILE], {}, {})] == [[], ["not in the capture"]]


def test_a_partition_beyond_the_count_is_a_wrong_count() -> None:
    found = state_coverage(1, [FIRST_FILE, changed(FIRST_FILE, state_partition=3)], {}, {})
    assert found[1].problems == ["there is no partition 3 in 1"]


def test_a_log_that_does_not_begin_with_its_first_file_has_a_hole_of_any_time() -> None:
    assert only(SECOND_FILE).holes == [Hole("does not begin with its first file, but with 100", None)]


def test_a_missing_file_is_a_hole_that_ends_with_the_first_batch_behind_it() -> None:
    partition = only(FIRST_FILE, changed(SECOND_FILE, file_base_offset=120, first_offset=120))
    assert partition.holes == [Hole("offsets 100 to 119 are in no file", 510)]


@cases(
    "hole since_ms counts",
    {
        "it-ends-after-it": (Hole("", 510), 509, True),
        "it-ends-with-it": (Hole("", 510), 510, True),
        "it-ended-before": (Hole("", 510), 511, False),
        "there-is-no-end-marker": (Hole("", 510), None, True),
        "no-first-file": (Hole("", None), 511, True),
    },
)
def test_a_hole_counts_where_it_can_hide_what_came_since_a_marker(
    hole: Hole, since_ms: int | None, counts: bool
) -> None:
    assert hole.is_since(since_ms) is counts


def test_a_cleaned_file_whose_last_batch_is_kept_without_a_record_joins_the_next() -> None:
    """`LogCleaner` keeps a producer's last batch even where none of its records is left."""
    cleaned = changed(FIRST_FILE, last_offset=40, end_offset=100)
    assert only(cleaned, SECOND_FILE).holes == []
    assert only(changed(cleaned, end_offset=99), SECOND_FILE).holes == [Hole("offsets 99 to 99 are in no file", 510)]


def test_compaction_inside_a_file_is_no_hole() -> None:
    assert only(changed(FIRST_FILE, first_offset=40)).holes == []


def test_an_empty_partition_is_seen_but_never_speaks() -> None:
    empty = StateSection(0, 0)
    assert only(empty) == StatePartition(0, is_seen=True)


def test_one_record_is_one() -> None:
    partition = only(changed(FIRST_FILE, undecodable_count=1, misplaced_count=1))
    assert partition.problems == [
        "1 record could not be decoded",
        "1 record has an id that belongs to another partition",
    ]


def test_decoder_errors_and_broken_batches_are_problems() -> None:
    partition = only(changed(FIRST_FILE, undecodable_count=2), problems={0: ["positions do not chain"]})
    assert partition.problems == ["2 records could not be decoded", "positions do not chain"]


@cases(
    "kind is_counted",
    {
        "what-compaction-makes": ("hole_in_file", False),
        "what-is-counted-between-the-files": ("offsets_in_no_file", False),
        "a-problem-worded-like-a-hole": ("input_problem", True),
        "of-a-later-version": ("a_kind_of_tomorrow", True),
    },
)
def test_the_kind_of_a_problem_decides_and_no_words(kind: str, is_counted: bool) -> None:
    reason = "file 00000000000000000000.log has no batch for offset 7: offsets 5 to 7 are in no file"
    state_0 = HEALTH._replace(topic="__transaction_state", partition=0, problems=(Problem(7, kind, reason),))
    evidence = state_evidence_of(StateCount(1, GIVEN), [FIRST_FILE], {}, {}, [state_0], {})
    assert evidence.partitions[0].problems == ([reason] if is_counted else [])


@cases(
    "ids such_as",
    {
        "one-id": (("orders-tx",), ", such as 'orders-tx' (to 0)"),
        "two-ids": (("a", "b"), ", such as 'a' (to 1), 'b' (to 2)"),
        "a-long-id-is-cut": (("x" * 81,), f", such as '{'x' * 80}...' (to 0)"),
        "the-hash-that-has-no-abs": (("polygenelubricants",), ", such as 'polygenelubricants' (to 0)"),
        "no-id-known": ((), ""),
    },
)
def test_ids_of_another_partition_are_named_with_the_partition_they_belong_to(
    ids: tuple[str, ...], such_as: str
) -> None:
    mislabelled = changed(FIRST_FILE, state_partition=3, misplaced_count=5, misplaced_ids=ids)
    partition = state_coverage(4, [mislabelled], {}, {})[3]
    assert partition.problems == [f"5 records have ids that belong to another partition{such_as}"]
    assert partition.misplaced_ids == ids


def test_a_mislabelled_partition_names_the_first_few_ids_of_all_its_files() -> None:
    files = [
        changed(FIRST_FILE, misplaced_count=3, misplaced_ids=("b", "d", "\U0001f600")),
        changed(SECOND_FILE, misplaced_count=2, misplaced_ids=("a", "b")),
    ]
    assert only(*files).misplaced_ids == ("a", "b", "d")


def missing_in(*numbers: int, count: int) -> StateEvidence:
    seen = [StatePartition(n, is_seen=n not in numbers) for n in range(count)]
    for number in numbers:
        seen[number].problems.append("not in the capture")
    return StateEvidence(seen, StateCount(count, GIVEN))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (missing_in(count=4), []),
        (missing_in(3, count=4), ["__transaction_state-3: not in the capture"]),
        (missing_in(0, 1, 2, 3, count=4), ["__transaction_state: not in the capture"]),
        (missing_in(*range(4, 50), count=50), ["__transaction_state, 46 partitions (4 to 49): not in the capture"]),
        (missing_in(1, 3, 4, count=6), ["__transaction_state, 3 partitions (1, 3 to 4): not in the capture"]),
    ],
)
def test_what_is_missing_in_many_partitions_is_said_once(state: StateEvidence, words: list[str]) -> None:
    assert [*state.gaps(Settings())] == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (StateCount(3, GIVEN, (4,)), "among 3: of the counts up to 1000000 only 4 would fit"),
        (StateCount(50, DEFAULT, (4, 8)), "among 50: of the counts up to 1000000 only 4, 8 would fit"),
        (StateCount(3, GIVEN), "among 3: no count of partitions fits: mislabelled dumps"),
    ],
)
def test_ids_in_the_wrong_place_name_the_counts_that_fit(count: StateCount, words: str) -> None:
    state = StateEvidence([StatePartition(0, is_seen=True, misplaced_ids=("a",))], count)
    assert (state.misplaced or "").endswith(words)
    assert StateEvidence([StatePartition(0, is_seen=True)], count).misplaced is None


def test_a_partition_reaches_as_far_as_any_other_in_its_log_directory() -> None:
    """An id that is stuck writes nothing more into its own partition; by offset, since a clock may have jumped."""
    stuck = changed(FIRST_FILE, last_ms=500, log_dir="a")
    jumped = changed(FIRST_FILE, state_partition=1, last_ms=9_999, log_dir="a")
    busy = changed(SECOND_FILE, state_partition=1, last_ms=800, log_dir="a")
    elsewhere = changed(FIRST_FILE, state_partition=2, last_ms=900, log_dir="b")
    dumped = changed(FIRST_FILE, state_partition=3, last_ms=950)
    found = state_coverage(4, [stuck, jumped, busy, elsewhere, dumped], {}, {})
    assert [p.log_dir_end_ms for p in found] == [800, 800, 900, None]


def test_files_in_any_order_give_the_same_words() -> None:
    copy = changed(FIRST_FILE, undecodable_count=1)
    other = changed(FIRST_FILE, undecodable_count=2)
    assert only(copy, other, SECOND_FILE) == only(SECOND_FILE, other, copy)


def test_coverage_tells_of_each_partition_whether_it_is_whole_and_why_not() -> None:
    sections = [FIRST_FILE, changed(SECOND_FILE, state_partition=1), changed(FIRST_FILE, state_partition=2)]
    sections[2] = changed(sections[2], undecodable_count=2)
    moments = {0: 500, 1: 900, 2: 500}
    chains = {number: StateChain(last_moment_ms=ms) for number, ms in moments.items()}
    state = state_evidence_of(FOUR, sections, {}, chains, [], {})
    coverage = state.coverage(Settings())
    parts = coverage["partitions"]
    told = {part["partition"]: (part["is_seen"], part["is_complete"], part["seen_to_ms"]) for part in parts}
    assert told == {0: (True, True, 500), 1: (True, False, 900), 2: (True, False, 500), 3: (False, False, None)}
    assert [part["undecodable"] for part in parts] == [0, 0, 2, 0]
    assert parts[1]["holes"] == ["does not begin with its first file, but with 100"]
    assert parts[2]["problems"] == ["2 records could not be decoded"]
    assert (coverage["seen"], coverage["missing"]) == (3, [3])


@cases(
    "section is_complete",
    {"holes-are": (SECOND_FILE, True), "decoder-errors-are-not": (changed(SECOND_FILE, undecodable_count=1), False)},
)
def test_what_the_operators_word_waives(section: StateSection, is_complete: bool) -> None:
    state = StateEvidence([only(section)], StateCount(1, GIVEN))
    assert state.coverage(Settings(transaction_state_complete=True))["partitions"][0]["is_complete"] is is_complete


def test_a_console_export_covers_nothing_by_itself() -> None:
    seen, silent = state_coverage(2, [], {}, {0: SectionSum()})
    assert (seen.is_seen, seen.is_console, silent.is_seen, silent.is_console) == (True, True, True, True)
    assert seen.holes == [Hole("a console export does not say what it covers")]
