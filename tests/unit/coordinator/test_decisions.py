"""Decisions without their marker: what they are, which marker serves which, and which matter (KAFKA-7408).

Producer 7 of `billing` writes to orders-0. Times are milliseconds of one morning; the allowance for clocks is 100.
"""

from hypothesis import given
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.coordinator_rows import ORDERS_0, exported, record, tombstone
from txn_analysis.coordinator.history import (
    ABORT,
    COMMIT,
    Decision,
    EndMarker,
    decisions_of,
    left_over,
    runs_of,
    that_matter,
    written_by_ms,
)
from txn_analysis.kafka.transactions import StateRecord, TopicPartition
from txn_analysis.logic import UNBOUNDED_MS

SKEW_MS = 100
HERE = TopicPartition("orders", 0)
LATER = record("Empty", 9_000)
"""The id goes on: what it decided before is no newest record any more."""


def commit(offset: int, at_ms: int | None, *, epoch: int = 3, has_data: bool = True) -> EndMarker:
    return EndMarker(offset, COMMIT, at_ms, epoch, 5, has_data=has_data)


def abort(offset: int, at_ms: int) -> EndMarker:
    return EndMarker(offset, ABORT, at_ms, 3, 5)


def shallow(offset: int, at_ms: int) -> EndMarker:
    """A marker whose kind a shallow dump does not print."""
    return EndMarker(offset, None, at_ms, 3, None)


def decided(*history: StateRecord) -> list[Decision]:
    return decisions_of(history, written_by_ms(history), HERE, 7)


def times(decisions: list[Decision]) -> list[tuple[str, int]]:
    return [(d.kind, d.prepared_ms) for d in decisions]


@cases(
    "history expected",
    {
        "a-commit": (
            [record("PrepareCommit", 1_000), record("CompleteCommit", 1_010)],
            [Decision(1_000, COMMIT, 1_010, 1_010)],
        ),
        "an-abort": (
            [record("PrepareAbort", 1_000), record("CompleteAbort", 1_010)],
            [Decision(1_000, ABORT, 1_010, 1_010)],
        ),
        "the-newest-record-is-none": ([record("Ongoing", 900), record("PrepareCommit", 1_000)], []),
        "its-complete-record-is-gone": (
            [record("PrepareCommit", 1_000), LATER],
            [Decision(1_000, COMMIT, UNBOUNDED_MS, 9_000)],
        ),
        "the-id-was-removed": (
            [record("PrepareCommit", 1_000), tombstone(9_000)],
            [Decision(1_000, COMMIT, UNBOUNDED_MS, 9_000)],
        ),
        "of-another-partition": (
            [record("PrepareCommit", 1_000, topic_partitions=(("orders", 1),)), record("CompleteCommit", 1_010)],
            [],
        ),
        "under-another-producer-id": (
            [record("PrepareCommit", 1_000, producer_id=8), record("CompleteCommit", 1_010, producer_id=8)],
            [],
        ),
        "the-producer-id-is-the-previous-one": (
            [
                record("PrepareCommit", 1_000, producer_id=8, previous_producer_id=7),
                record("CompleteCommit", 1_010, producer_id=8),
            ],
            [Decision(1_000, COMMIT, 1_010, 1_010)],
        ),
        "it-rotates-with-this-decision": (
            [record("PrepareCommit", 1_000, next_producer_id=8), record("CompleteCommit", 1_010, producer_id=8)],
            [Decision(1_000, COMMIT, 1_010, 1_010)],
        ),
        "written-twice-the-later-time-holds": (
            [record("PrepareCommit", 1_000), record("PrepareCommit", 1_500), record("CompleteCommit", 1_510)],
            [Decision(1_500, COMMIT, 1_510, 1_510)],
        ),
        "written-twice-and-still-the-newest": ([record("PrepareCommit", 1_000), record("PrepareCommit", 1_500)], []),
        "of-two-kinds": (
            [record("PrepareCommit", 1_000), record("PrepareAbort", 1_500), record("CompleteAbort", 1_510)],
            [Decision(1_000, COMMIT, UNBOUNDED_MS, 1_500), Decision(1_500, ABORT, 1_510, 1_510)],
        ),
        "of-two-lists": (
            [
                record("PrepareCommit", 1_000),
                record("PrepareCommit", 1_500, topic_partitions=(*ORDERS_0, ("orders", 1))),
                record("CompleteCommit", 1_510),
            ],
            [Decision(1_000, COMMIT, UNBOUNDED_MS, 1_500), Decision(1_500, COMMIT, 1_510, 1_510)],
        ),
        "an-export-does-not-say-when-it-was-completed": (
            exported(record("PrepareCommit", 1_000), record("CompleteCommit", 1_000)),
            [Decision(1_000, COMMIT, UNBOUNDED_MS, UNBOUNDED_MS)],
        ),
        "an-export-says-it-by-the-next-record": (
            exported(record("PrepareCommit", 1_000), record("CompleteCommit", 1_000), LATER),
            [Decision(1_000, COMMIT, 9_000, 9_000)],
        ),
    },
)
def test_what_was_decided(history: list[StateRecord], expected: list[Decision]) -> None:
    assert decided(*history) == expected


def test_a_prepare_record_that_is_written_again_after_others_is_one_decision_while_nothing_completes_it() -> None:
    """Of one kind and list, with no Complete record between: what lies between does not matter."""
    between = [record("PrepareCommit", 1_000), record("Ongoing", 1_200), record("PrepareCommit", 1_500)]
    assert times(decided(*between, record("CompleteCommit", 1_510))) == [(COMMIT, 1_500)]


def test_the_complete_record_of_another_decision_does_not_bound_its_marker() -> None:
    history = [record("PrepareCommit", 1_000), record("CompleteAbort", 2_000)]
    assert decided(*history) == [Decision(1_000, COMMIT, UNBOUNDED_MS, 2_000)]


ONE_COMMIT = Decision(1_000, COMMIT, 1_010, 1_010)


@cases(
    "marker is_its_own",
    {
        "1-ms-too-early": (commit(5, 1_000 - SKEW_MS - 1), False),
        "as-early-as-clocks-allow": (commit(5, 1_000 - SKEW_MS), True),
        "1-ms-later-than-that": (commit(5, 1_000 - SKEW_MS + 1), True),
        "1-ms-earlier-than-the-last-moment": (commit(5, 1_010 + SKEW_MS - 1), True),
        "as-late-as-clocks-allow": (commit(5, 1_010 + SKEW_MS), True),
        "1-ms-too-late": (commit(5, 1_010 + SKEW_MS + 1), False),
        "of-another-kind": (abort(5, 1_005), False),
        "of-a-kind-that-is-not-printed": (shallow(5, 1_005), True),
        "such-a-one-1-ms-too-late": (shallow(5, 1_010 + SKEW_MS + 1), False),
        "of-whatever-epoch": (commit(5, 1_005, epoch=9), True),
    },
)
def test_what_counts_as_its_marker(marker: EndMarker, *, is_its_own: bool) -> None:
    assert left_over([ONE_COMMIT], [marker], SKEW_MS) == ([] if is_its_own else [ONE_COMMIT])


def test_where_its_complete_record_is_gone_any_later_marker_is_its_own() -> None:
    assert left_over([Decision(1_000, COMMIT, UNBOUNDED_MS, 9_000)], [commit(5, 8_000_000)], SKEW_MS) == []


SECOND = Decision(1_050, COMMIT, 1_060, 1_060)


@cases(
    "markers expected",
    {
        "none-survived": ([], [ONE_COMMIT, SECOND]),
        "of-two-within-the-skew-the-newest-goes-without": ([commit(5, 1_055)], [SECOND]),
        "one-each": ([commit(5, 1_005), commit(7, 1_055)], []),
        "by-offset-whatever-the-clocks-say": ([commit(5, 1_055), commit(7, 1_005)], []),
        "the-second-one-repeats-the-first": ([commit(5, 1_005), commit(6, 1_055, has_data=False)], [SECOND]),
        "of-another-epoch-it-repeats-nothing": ([commit(5, 1_005), commit(6, 1_055, epoch=4, has_data=False)], []),
        "one-of-an-unprinted-kind": ([shallow(5, 1_005), commit(7, 1_055)], []),
    },
)
def test_one_marker_serves_one_decision(markers: list[EndMarker], expected: list[Decision]) -> None:
    assert left_over([ONE_COMMIT, SECOND], markers, SKEW_MS) == expected


def test_a_marker_that_is_written_twice_serves_once_and_any_of_its_times_fits() -> None:
    twice = [commit(5, 1_000 - SKEW_MS - 50), commit(6, 1_005, has_data=False)]
    assert left_over([ONE_COMMIT], twice, SKEW_MS) == []


def test_a_marker_that_two_sources_name_counts_once() -> None:
    """One whose transaction began in another piece of the log can be told a second time, without its data."""
    named_twice = [commit(5, 1_005, has_data=False), commit(5, 1_005)]
    assert [run.markers for run in runs_of(named_twice)] == [(commit(5, 1_005),)]


@cases(
    "appended_after_ms matters",
    {
        "nothing-bounds-the-data": (None, True),
        "appended-with-the-decision": (1_000, True),
        "as-late-as-clocks-allow": (1_000 + SKEW_MS, True),
        "1-ms-later": (1_000 + SKEW_MS + 1, False),
    },
)
def test_which_decisions_matter(appended_after_ms: int | None, *, matters: bool) -> None:
    found = that_matter([ONE_COMMIT], appended_after_ms, SKEW_MS)
    assert (found.commit == ONE_COMMIT, found.is_any) == (matters, matters)
    assert found.has_commit_of_any_age


def test_a_commit_counts_as_lost_when_the_first_one_must_have_had_its_marker() -> None:
    late = Decision(1_020, COMMIT, 5_000, 5_000)
    assert that_matter([late, ONE_COMMIT], None, SKEW_MS).commit == ONE_COMMIT


def test_aborts_are_over_when_the_last_one_must_have_had_its_marker() -> None:
    early, late = Decision(1_000, ABORT, 1_010, 1_010), Decision(1_020, ABORT, 5_000, 5_000)
    found = that_matter([early, late], None, SKEW_MS)
    assert (found.abort, found.commit, found.has_commit_of_any_age) == (late, None, False)


MOMENTS = st.integers(0, 600)
DECISIONS = st.lists(
    st.builds(
        lambda at_ms, took_ms, kind: Decision(at_ms, kind, at_ms + took_ms, at_ms + took_ms),
        MOMENTS,
        st.integers(0, 50),
        st.sampled_from([COMMIT, ABORT]),
    ),
    max_size=6,
)
MARKERS = st.lists(
    st.builds(EndMarker, st.integers(0, 30), st.sampled_from([COMMIT, ABORT, None]), MOMENTS, st.just(3), st.just(5)),
    max_size=6,
    unique_by=lambda marker: marker.offset,
)


@given(DECISIONS, MARKERS, MARKERS)
def test_more_markers_leave_no_more_decisions(
    decisions: list[Decision], markers: list[EndMarker], more: list[EndMarker]
) -> None:
    """Each marker serves at most one; one marker more can only serve another one, or none.

    So it is in a log whose times rise. Where they fall, a repetition can come later by offset and earlier by time, and
    its run takes an older decision than without it.
    """
    further = [m._replace(offset=m.offset + 31) if m.offset in {n.offset for n in markers} else m for m in more]
    in_order = [m._replace(at_ms=12 * m.offset) for m in (*markers, *further)]
    before, after = (len(left_over(decisions, found, SKEW_MS)) for found in (in_order[: len(markers)], in_order))
    assert after <= before
    assert before >= len(decisions) - len(markers)


@given(DECISIONS, MARKERS, st.randoms())
def test_no_order_of_decisions_or_markers_matters(
    decisions: list[Decision], markers: list[EndMarker], source: object
) -> None:
    shuffled, mixed = list(decisions), list(markers)
    source.shuffle(shuffled)  # type: ignore[attr-defined]
    source.shuffle(mixed)  # type: ignore[attr-defined]
    assert left_over(shuffled, mixed, SKEW_MS) == left_over(decisions, markers, SKEW_MS)


@given(DECISIONS, MARKERS)
def test_what_is_left_over_was_decided(decisions: list[Decision], markers: list[EndMarker]) -> None:
    unserved = left_over(decisions, markers, SKEW_MS)
    for decision in set(unserved):
        assert unserved.count(decision) <= decisions.count(decision)


@given(DECISIONS)
def test_where_each_has_its_marker_in_time_none_is_left(decisions: list[Decision]) -> None:
    """One coordinator writes the markers of one partition in the order of its decisions."""
    own = [EndMarker(n, d.kind, d.prepared_ms, 3, 5) for n, d in enumerate(sorted(decisions))]
    assert left_over(decisions, own, SKEW_MS) == []
