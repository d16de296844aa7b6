"""How the batches of one partition of `__transaction_state` follow one another, in all copies and captures together."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.coordinator_rows import TODAY, YESTERDAY, Row, states_of
from tests.tools.coordinator_rows import state_row as row
from txn_analysis.coordinator.chain import NO_RECORDS, LeaderEpochChange, StateChain, chains_of
from txn_analysis.logic import UNBOUNDED_MS


def chain(*rows: Row, as_of_ms: int | None = None) -> StateChain:
    placed = [row | {"ordinal": n} for n, row in enumerate(rows)]
    none = np.zeros(len(rows), np.int64)
    return chains_of(states_of(*placed), none, none, {0: as_of_ms}).get(0, {}).get(1, NO_RECORDS)


UNDECODED = row(1, rank=YESTERDAY, is_undecodable=True) | {"transactional_id": None, "state": None}


@cases(
    "rows expected",
    {
        "none": ([row(0), row(1), row(2)], None),
        "between-two-batches": ([row(0), row(3)], 30),
        "before-the-first-batch": ([row(2), row(3)], 20),
        "of-the-first-offset-alone": ([row(1), row(2)], 10),
        "the-newest-counts": ([row(2), row(3), row(5)], 50),
        "filled-by-an-earlier-capture": ([row(0), row(2), row(1, rank=YESTERDAY)], None),
        "filled-by-another-copy": ([row(0), row(2), row(1, leader_epoch=0), row(2)], None),
        "filled-in-part": ([row(0), row(4), row(1, rank=YESTERDAY)], 40),
        "an-earlier-record-that-was-not-decoded-fills-none": ([row(0), row(2), UNDECODED], 20),
        "unless-another-copy-has-it": ([row(0), row(2), UNDECODED, row(1, rank=YESTERDAY)], None),
        "compaction-inside-a-batch-leaves-its-offsets": ([row(0, batch_last_offset=3), row(4)], None),
        "a-batch-of-another-copy-within-it": ([row(0, batch_last_offset=9), row(2), row(10)], None),
        "nothing-says-when-it-ends": ([row(0), row(3, recorded_ms=None)], UNBOUNDED_MS),
        "a-clock-that-jumped-makes-none": ([row(0, recorded_ms=99), row(1), row(2)], None),
    },
)
def test_a_gap_ends_with_the_batch_behind_it(rows: list[Row], expected: int | None) -> None:
    assert chain(*rows).gap_end_ms == expected


def test_the_last_moment_is_that_of_the_highest_offset_in_todays_copy() -> None:
    """Not the largest: one jump of a broker's clock moves no bound."""
    assert chain(row(0), row(1, recorded_ms=9_999), row(2)).last_moment_ms == 20
    assert chain(row(0), row(1), row(7, rank=YESTERDAY)).last_moment_ms == 10


def test_a_moment_after_the_stated_copy_bounds_no_word() -> None:
    found = chain(row(0), row(1), row(2, recorded_ms=9_999), as_of_ms=15)
    assert (found.last_moment_ms, found.last_until_as_of_ms) == (9_999, 10)


def test_an_update_after_the_stated_copy_bounds_no_word() -> None:
    exported = [row(None, last_update_ms=ms, recorded_ms=None) for ms in (70, 30)]
    assert chain(*exported, as_of_ms=50).last_until_as_of_ms == 30


def test_the_update_time_of_a_record_of_a_dump_is_no_moment() -> None:
    assert chain(row(0, last_update_ms=9_999)).last_moment_ms == 0


def test_an_earlier_capture_alone_gives_no_last_moment() -> None:
    assert chain(row(7, rank=YESTERDAY)).last_moment_ms is None


def test_the_first_moment_is_that_of_all_captures() -> None:
    assert chain(row(5), row(3, rank=YESTERDAY)).first_moment_ms == 30


def test_the_largest_producer_id_is_that_of_all_records_whatever_they_name_it_for() -> None:
    known = [row(0, producer_id=7), row(1, producer_id=8, next_producer_id=3_000), row(2, is_tombstone=True)]
    assert chain(*known).largest_producer_id == 3_000
    assert chain(row(2, is_tombstone=True)).largest_producer_id is None


def test_a_clock_that_jumped_at_the_first_batch_does_not_hide_an_earlier_moment() -> None:
    """The state has a moment before the data wherever that stands."""
    assert chain(row(0, recorded_ms=9_999), row(1)).first_moment_ms == 10


def test_an_export_has_the_update_times_as_moments() -> None:
    exported = [row(None, last_update_ms=ms, recorded_ms=None) for ms in (70, 30)]
    found = chain(*exported)
    assert (found.last_moment_ms, found.first_moment_ms, found.gap_end_ms) == (70, 30, None)


@cases(
    "first expected",
    {"whose-beginning-is-not-there": ({}, 40), "that-begins-with-it": ({"producer_id": 7, "producer_epoch": 0}, None)},
)
def test_an_export_lacks_what_came_before_the_first_record_of_an_id(first: Row, expected: int | None) -> None:
    exported = [row(None, last_update_ms=ms, recorded_ms=None) | first for ms in (40, 50)]
    assert chain(row(0, name="another"), *exported).export_gap_ms == expected


@cases(
    "rows expected",
    {
        "one-leader": ([row(0), row(1)], ()),
        "it-changed": ([row(0), row(1, leader_epoch=1), row(2, leader_epoch=1)], (LeaderEpochChange(0, 10),)),
        "an-earlier-capture-narrows-it": (
            [row(0), row(2, leader_epoch=1), row(1, rank=YESTERDAY)],
            (LeaderEpochChange(10, 20),),
        ),
        "nobody-says-whose": ([row(0, leader_epoch=None), row(1, leader_epoch=None)], (LeaderEpochChange(None, None),)),
        "one-batch-alone": ([row(0, leader_epoch=None)], ()),
        "the-last-does-not-say": ([*map(row, range(3)), row(3, leader_epoch=None)], (LeaderEpochChange(20, None),)),
        "the-first-does-not-say": (
            [row(0, leader_epoch=None), row(1, leader_epoch=4), row(2, leader_epoch=4)],
            (LeaderEpochChange(None, 10),),
        ),
        "none-led-before-the-first": (
            [row(0, leader_epoch=None), row(1), row(2, leader_epoch=4)],
            (LeaderEpochChange(10, 20),),
        ),
        "who-led-the-first-batch-leads": ([row(0, leader_epoch=4), row(1, leader_epoch=4)], ()),
        "began-again-under-a-higher-epoch-looks-new": ([row(3, leader_epoch=4)], ()),
    },
)
def test_where_the_leader_of_the_state_changed(rows: list[Row], expected: tuple[LeaderEpochChange, ...]) -> None:
    assert chain(*rows).rises == expected


@cases(
    "rows expected",
    {
        "it-changed": ([row(0), row(1, leader_epoch=1)], (LeaderEpochChange(0, 10),)),
        "compaction-took-what-was-around-it": ([row(0), row(2, leader_epoch=1)], ()),
        "an-earlier-capture-has-it": (
            [row(0), row(2, leader_epoch=1), row(1, rank=YESTERDAY)],
            (LeaderEpochChange(10, 20),),
        ),
        "the-tail-that-was-cut-off-is-in-another-copy": (
            [row(0), row(1), row(2), row(1, leader_epoch=1), row(3, leader_epoch=1)],
            (LeaderEpochChange(0, 10),),
        ),
        "the-tail-of-the-second-of-three-leaders-was-cut-off": (
            [row(0), row(1, leader_epoch=1), row(2, leader_epoch=1), row(2, leader_epoch=2)],
            (LeaderEpochChange(0, 10), LeaderEpochChange(10, 20)),
        ),
        "nobody-says-whose": ([row(0, leader_epoch=None), row(1, leader_epoch=None)], (LeaderEpochChange(None, None),)),
    },
)
def test_where_the_end_of_an_old_leader_can_be_lost(rows: list[Row], expected: tuple[LeaderEpochChange, ...]) -> None:
    assert chain(*rows).lost_tails == expected


@cases(
    "rise first_ms last_ms expected",
    {
        "at-the-skew-before": (LeaderEpochChange(100, 200), 300, None, True),
        "1-ms-earlier": (LeaderEpochChange(100, 199), 300, None, False),
        "at-the-skew-behind": (LeaderEpochChange(400, 500), None, 300, True),
        "1-ms-later": (LeaderEpochChange(401, 500), None, 300, False),
        "at-any-time": (LeaderEpochChange(None, None), 300, 300, True),
        "nothing-bounds-the-data": (LeaderEpochChange(1, 2), None, None, True),
    },
)
def test_a_rise_may_touch_the_data(
    rise: LeaderEpochChange, first_ms: int | None, last_ms: int | None, *, expected: bool
) -> None:
    assert rise.may_touch(first_ms, last_ms, 100) is expected


@cases(
    "rows expected",
    {
        "its-prepare-is-there": ([row(0, state="PrepareCommit"), row(1, state="CompleteCommit")], None),
        "alone": ([row(1, state="CompleteCommit")], 10),
        "behind-what-compaction-took": ([row(0, state="PrepareCommit"), row(5, state="CompleteCommit")], None),
        "of-another-kind": ([row(0, state="PrepareAbort"), row(1, state="CompleteCommit")], 10),
        "of-another-id": ([row(0, state="PrepareCommit", name="ledger"), row(1, state="CompleteCommit")], 10),
        "in-an-earlier-capture": (
            [row(0, state="PrepareCommit", rank=YESTERDAY), row(1, state="CompleteCommit")],
            None,
        ),
        "the-newest-counts": ([row(0, state="CompleteCommit"), row(4, state="CompleteAbort")], 40),
        "completed-by-a-dead-leader-and-again-by-its-successor": (
            [
                row(0, state="PrepareCommit"),
                row(1, state="CompleteCommit"),
                row(1, name="ledger", leader_epoch=1, recorded_ms=90),
                row(2, state="CompleteCommit", leader_epoch=1, recorded_ms=91),
            ],
            None,
        ),
        "another-decision-may-have-been-where-its-successors-log-has-a-hole": (
            [
                row(0, state="PrepareCommit"),
                row(1, state="CompleteCommit"),
                row(2, name="ledger"),
                row(1, name="ledger", leader_epoch=1, recorded_ms=90),
                row(3, state="CompleteCommit", leader_epoch=1, recorded_ms=91),
            ],
            91,
        ),
        "completed-twice-and-nothing-was-cut-off": (
            [
                row(0, state="PrepareCommit"),
                row(1, state="CompleteCommit"),
                row(2, state="CompleteCommit", leader_epoch=1),
            ],
            20,
        ),
        "its-prepare-was-cut-off": (
            [
                row(0, state="PrepareCommit"),
                row(0, name="ledger", leader_epoch=1),
                row(1, state="CompleteCommit", leader_epoch=1),
            ],
            10,
        ),
        "an-export-does-not-say-when": (
            [row(None, state="CompleteCommit", recorded_ms=None, last_update_ms=10)],
            UNBOUNDED_MS,
        ),
    },
)
def test_a_complete_record_without_its_prepare(rows: list[Row], expected: int | None) -> None:
    assert chain(*rows).lone_complete_ms == expected


def test_an_id_is_followed_within_its_partition_alone() -> None:
    here = [row(0, state="PrepareCommit", name=name) for name in ("a", "b", "c")]
    there = [row(4, state="CompleteCommit", name="a"), row(5, name="b")]
    placed = [*here, *(each | {"held_by": 2} for each in there)]
    none = np.zeros(len(placed), np.int64)
    found = chains_of(states_of(*(each | {"ordinal": n} for n, each in enumerate(placed))), none, none, {0: None})
    assert found[0][2].lone_complete_ms == 40


def test_audits_at_once_are_followed_each_for_itself() -> None:
    here = [row(0, held_by=1, ordinal=0), row(1, held_by=1, ordinal=1)]
    there = [row(7, held_by=0, audit=1, ordinal=2), row(8, held_by=1, audit=1, ordinal=3)]
    found = chains_of(states_of(*here, *there), np.array([0, 0, 1, 1]), np.zeros(4, np.int64), {0: None, 1: None})
    assert {(audit, n): own.last_moment_ms for audit, held in found.items() for n, own in held.items()} == {
        (0, 1): 10,
        (1, 0): 70,
        (1, 1): 80,
    }


def test_copies_that_contradict_each_other_are_read_in_one_order_whatever_they_are_called() -> None:
    """Of a Prepare and a Complete at one offset the Complete comes first, and has no Prepare before it."""
    for n in range(20):
        name = f"billing-{n}"
        decided, ended = row(0, name=name, state="PrepareCommit"), row(0, name=name, state="CompleteCommit")
        assert chain(decided, ended).lone_complete_ms == 0, name


@given(st.lists(st.builds(row, st.integers(0, 9), rank=st.sampled_from([TODAY, YESTERDAY])), max_size=8), st.randoms())
def test_no_order_and_no_repetition_of_records_matters(rows: list[Row], source: Any) -> None:
    mixed = source.sample([*rows, *rows], 2 * len(rows))
    assert chain(*mixed) == chain(*rows)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_what_an_earlier_capture_holds_never_makes_a_gap_newer(own: set[int], earlier: set[int]) -> None:
    today = [row(n) for n in own]
    united = chain(*today, *(row(n, rank=YESTERDAY) for n in earlier if not own or n <= max(own)))
    alone = chain(*today)
    assert not own or (united.gap_end_ms or 0) <= (alone.gap_end_ms or 0)
