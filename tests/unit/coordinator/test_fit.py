"""Whether the state fits the logs: their COMMIT markers test it, and what speaks against it counts for whom.

Producer 7 of `billing` commits orders-0 at 200,000; times are milliseconds, the allowance for clocks is 100.
"""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.coordinator_rows import exported, known_of, marker_rows, record
from txn_analysis.coordinator.chain import LeaderEpochChange, StateChain
from txn_analysis.coordinator.fit import NO_CONTRADICTION, Contradictions, Fit, MarkerSums, UnexplainedMarker, fit_of
from txn_analysis.coordinator.history import ABORT, COMMIT, EndMarker
from txn_analysis.coordinator.marker_checks import sums_of_markers
from txn_analysis.coordinator.producer_bounds import GivenState
from txn_analysis.kafka.transactions import StateRecord, TopicPartition

SKEW_MS = 100
DECIDED_WITHIN_MS = 60_000
AT_MS = 200_000
END_MS = 900_000
HERE = TopicPartition("orders", 0)
HOME = 2
WHOLE = StateChain(last_moment_ms=END_MS, last_until_as_of_ms=END_MS, first_moment_ms=1, leader_epoch=5)
ALL_GIVEN = GivenState(
    chains=dict.fromkeys(range(4), WHOLE),
    is_whole=True,
    exports=frozenset(),
    is_export_complete=False,
    is_nothing_lost=False,
    max_clock_skew_ms=SKEW_MS,
    known_since_ms=None,
)
COMMITTED = [record("Ongoing", AT_MS - 50), record("PrepareCommit", AT_MS), record("CompleteCommit", AT_MS + 10)]
NEVER_HERE = [record("Empty", 5)]
"""What the id has where the commit of the log is not among its decisions."""
MARKER = EndMarker(50, COMMIT, AT_MS, 3, 5)


def told(
    *markers: EndMarker, history: list[StateRecord] | None = NEVER_HERE, state: GivenState = ALL_GIVEN
) -> MarkerSums:
    """What markers of producer 7 on orders-0 say of the state; no id has the producer where its history is None."""
    known = known_of(7, *([] if history is None else [history]))
    return sums_of_markers(marker_rows({7: {HERE: markers}}), known, state, {7})


def counts(sums: MarkerSums) -> tuple[int, int]:
    """How many confirm the state, and how many contradict it."""
    return sums.confirmed_count, sums.against.marker_count


def with_home(home: int = HOME, **changes: Any) -> GivenState:
    """One partition of the state is different."""
    return replace(ALL_GIVEN, chains={**ALL_GIVEN.chains, home: WHOLE._replace(**changes)})


def ending_at(at_ms: int | None, *numbers: int) -> GivenState:
    """Some partitions of the state end then, its home without any."""
    ended = dict.fromkeys(numbers or (HOME,), WHOLE._replace(last_moment_ms=at_ms, last_until_as_of_ms=at_ms))
    return replace(ALL_GIVEN, chains={**ALL_GIVEN.chains, **ended})


MIDDLE_EPOCH = 2**14
"""Of the 32,767 that a producer id has."""

CONFIRMED, CONTRADICTED, SILENT = (1, 0), (0, 1), (0, 0)


@cases(
    "at_ms expected",
    {
        "1-ms-before-its-decision": (AT_MS - SKEW_MS - 1, CONTRADICTED),
        "as-early-as-clocks-allow": (AT_MS - SKEW_MS, CONFIRMED),
        "as-late-as-clocks-allow": (AT_MS + 10 + SKEW_MS, CONFIRMED),
        "1-ms-after-it-was-completed": (AT_MS + 10 + SKEW_MS + 1, CONTRADICTED),
    },
)
def test_a_decision_confirms_its_marker(at_ms: int, expected: tuple[int, int]) -> None:
    assert counts(told(MARKER._replace(at_ms=at_ms), history=COMMITTED)) == expected


@pytest.mark.parametrize(("undecodable", "expected"), [(HOME, SILENT), (HOME + 1, CONTRADICTED)])
def test_a_record_of_its_ids_partition_that_could_not_be_decoded_may_be_its_decision(
    undecodable: int, expected: tuple[int, int]
) -> None:
    assert counts(told(MARKER, state=replace(ALL_GIVEN, undecodable=frozenset({undecodable})))) == expected


@cases(
    "history expected",
    {
        "not-yet-completed": (COMMITTED[:2], CONFIRMED),
        "its-complete-record-is-gone": ([COMMITTED[1], record("Ongoing", AT_MS + 500)], CONFIRMED),
        "an-export-says-not-when-it-was-completed": (exported(*COMMITTED), CONFIRMED),
        "an-abort-does-not": ([record("PrepareAbort", AT_MS), record("CompleteAbort", AT_MS + 10)], CONTRADICTED),
        "nor-a-commit-of-another-partition": (
            [record("PrepareCommit", AT_MS, topic_partitions=(("orders", 1),)), record("CompleteCommit", AT_MS + 10)],
            CONTRADICTED,
        ),
    },
)
def test_what_confirms_a_marker(history: list[StateRecord], expected: tuple[int, int]) -> None:
    late = MARKER._replace(at_ms=AT_MS + 50)
    assert counts(told(late, history=history)) == expected


@cases(
    "markers expected",
    {
        "repeated": ([MARKER, EndMarker(51, COMMIT, END_MS - 500, 3, 5, has_data=False)], CONFIRMED),
        "after-data-it-is-another-one": ([MARKER, EndMarker(51, COMMIT, END_MS - 500, 3, 5)], (1, 1)),
        "of-another-epoch": ([MARKER, EndMarker(51, COMMIT, END_MS - 500, 4, 5, has_data=False)], (1, 1)),
        "an-abort-may-be-an-administrators": ([EndMarker(50, ABORT, AT_MS, 3, 5)], SILENT),
        "of-a-kind-that-is-not-printed": ([EndMarker(50, None, AT_MS, 3, None)], SILENT),
    },
)
def test_which_markers_speak(markers: list[EndMarker], expected: tuple[int, int]) -> None:
    assert counts(told(*markers, history=COMMITTED)) == expected


@cases(
    "state expected",
    {
        "the-state-would-have-it": (ALL_GIVEN, CONTRADICTED),
        "it-reaches-just-past-it": (with_home(last_moment_ms=AT_MS + SKEW_MS), CONTRADICTED),
        "it-ends-1-ms-earlier": (with_home(last_moment_ms=AT_MS + SKEW_MS - 1), SILENT),
        "a-gap-may-have-held-it": (with_home(gap_end_ms=AT_MS - DECIDED_WITHIN_MS), SILENT),
        "a-gap-that-ends-later": (with_home(gap_end_ms=END_MS), SILENT),
        "a-gap-a-minute-before": (with_home(gap_end_ms=AT_MS - DECIDED_WITHIN_MS - 1), CONTRADICTED),
        "a-gap-of-another-partition": (with_home(0, gap_end_ms=AT_MS), CONTRADICTED),
        "its-leader-changed-meanwhile": (
            with_home(lost_tails=(LeaderEpochChange(AT_MS - DECIDED_WITHIN_MS, AT_MS),)),
            SILENT,
        ),
        "changed-long-before": (
            with_home(lost_tails=(LeaderEpochChange(1, AT_MS - DECIDED_WITHIN_MS - SKEW_MS - 1),)),
            CONTRADICTED,
        ),
        "coordinated-above-every-leader": (with_home(gap_end_ms=END_MS, leader_epoch=4), CONTRADICTED),
        "coordinated-by-the-last-leader": (with_home(gap_end_ms=END_MS, leader_epoch=5), SILENT),
        "by-leaders-that-are-not-printed": (with_home(gap_end_ms=END_MS, leader_epoch=None), SILENT),
        "by-one-behind-its-end": (with_home(gap_end_ms=END_MS, leader_epoch=4, last_moment_ms=AT_MS), SILENT),
        "what-was-lost-came-after-it": (
            with_home(lost_tails=(LeaderEpochChange(AT_MS + SKEW_MS + 1, END_MS),)),
            CONTRADICTED,
        ),
        "an-id-that-expired-left-its-tombstone": (replace(ALL_GIVEN, known_since_ms=AT_MS + 1), CONTRADICTED),
        "known-since-then": (replace(with_home(gap_end_ms=END_MS, leader_epoch=4), known_since_ms=AT_MS), CONTRADICTED),
        "an-id-that-is-there-has-not-expired": (
            replace(with_home(gap_end_ms=END_MS, leader_epoch=4), known_since_ms=AT_MS + 1),
            CONTRADICTED,
        ),
        "only-its-home-given": (replace(ALL_GIVEN, chains={HOME: WHOLE}, is_whole=False), CONTRADICTED),
        "its-home-not-given": (replace(ALL_GIVEN, chains={0: WHOLE}, is_whole=False), SILENT),
    },
)
def test_what_contradicts_the_state_for_a_known_id(state: GivenState, expected: tuple[int, int]) -> None:
    assert counts(told(MARKER, state=state)) == expected


def test_what_was_recorded_of_an_id_that_expired_may_be_compacted_away() -> None:
    state = replace(with_home(gap_end_ms=END_MS, leader_epoch=4), known_since_ms=AT_MS + 1)
    removed = [*NEVER_HERE, record("Dead", END_MS - 1)._replace(state=None, is_tombstone=True)]
    assert counts(told(MARKER, history=removed, state=state)) == SILENT


@cases(
    "state expected",
    {
        "the-whole-state-would-have-it": (ALL_GIVEN, CONTRADICTED),
        "not-all-was-given": (replace(ALL_GIVEN, is_whole=False), SILENT),
        "one-partition-ends-before": (with_home(0, last_moment_ms=AT_MS + SKEW_MS - 1), SILENT),
        "the-leader-of-one-changed": (with_home(0, lost_tails=(LeaderEpochChange(1, END_MS),)), SILENT),
        "compaction-leaves-the-last-record-of-each-id": (with_home(0, gap_end_ms=AT_MS), CONTRADICTED),
        "of-one-known-since-then": (replace(with_home(0, gap_end_ms=AT_MS), known_since_ms=AT_MS), CONTRADICTED),
        "a-gap-may-have-held-an-id-that-expired": (
            replace(with_home(0, gap_end_ms=AT_MS - DECIDED_WITHIN_MS), known_since_ms=AT_MS + 1),
            SILENT,
        ),
        "a-gap-a-minute-before": (
            replace(with_home(0, gap_end_ms=AT_MS - DECIDED_WITHIN_MS - 1), known_since_ms=AT_MS + 1),
            CONTRADICTED,
        ),
    },
)
def test_what_contradicts_the_state_for_a_producer_that_nobody_knows(
    state: GivenState, expected: tuple[int, int]
) -> None:
    assert counts(told(MARKER, history=None, state=state)) == expected


@cases(
    "producer_epoch expected",
    {
        "the-first-epoch": (0, CONTRADICTED),
        "far-from-the-last-epoch": (MIDDLE_EPOCH - 1, CONTRADICTED),
        "its-id-may-have-rotated-and-the-last-record-names-it-no-more": (MIDDLE_EPOCH, SILENT),
        "of-an-epoch-that-is-not-printed": (None, SILENT),
    },
)
def test_a_producer_outlasts_compaction_until_its_id_rotates(
    producer_epoch: int | None, expected: tuple[int, int]
) -> None:
    marker = MARKER._replace(producer_epoch=producer_epoch)
    assert counts(told(marker, history=None, state=with_home(0, gap_end_ms=END_MS))) == expected


COMPACTED = with_home(0, gap_end_ms=END_MS)
VERSION_2 = MARKER._replace(data_epoch=2)
HUNG_MS = AT_MS - DECIDED_WITHIN_MS - SKEW_MS - 1


def test_a_producer_of_version_2_rotates_at_any_epoch() -> None:
    sums = told(VERSION_2, history=None, state=COMPACTED)
    assert (counts(sums), sums.unreached) == (SILENT, None)


@cases(
    "markers",
    {
        "its-commits-have-the-epoch-of-their-data": [MARKER._replace(data_epoch=3)],
        "an-abort-is-raised-by-a-timeout-as-well": [MARKER, VERSION_2._replace(offset=51, kind=ABORT)],
        "its-data-was-not-seen": [MARKER, VERSION_2._replace(offset=51, data_epoch=None)],
    },
)
def test_what_does_not_show_version_2(markers: list[EndMarker]) -> None:
    assert told(*markers, history=None, state=COMPACTED).against.marker_count


@cases(
    "state expected",
    {
        "nothing-was-compacted": (ALL_GIVEN, CONTRADICTED),
        "only-before-it": (with_home(0, gap_end_ms=AT_MS - DECIDED_WITHIN_MS - 1), CONTRADICTED),
        "some-coordinator-has-its-epoch": (COMPACTED, SILENT),
        "coordinated-above-every-leader-of-the-whole-state": (
            replace(COMPACTED, chains={n: c._replace(leader_epoch=4) for n, c in COMPACTED.chains.items()}),
            CONTRADICTED,
        ),
        "not-all-was-given": (replace(COMPACTED, is_whole=False), SILENT),
    },
)
def test_what_contradicts_the_state_for_an_unknown_producer_of_version_2(
    state: GivenState, expected: tuple[int, int]
) -> None:
    assert counts(told(VERSION_2, history=None, state=state)) == expected


@pytest.mark.parametrize("known", [6, 8])
def test_any_leader_may_have_coordinated_an_unknown_producer(known: int) -> None:
    """Another producer's home has had fewer leaders."""
    state = replace(COMPACTED, chains={**COMPACTED.chains, HOME: WHOLE._replace(leader_epoch=4)})
    markers = marker_rows({known: {HERE: [MARKER._replace(coordinator_epoch=4)]}, 7: {HERE: [VERSION_2]}})
    committed = [each._replace(producer_id=known) for each in COMMITTED]
    assert counts(sums_of_markers(markers, known_of(known, committed), state, {7})) == CONFIRMED


def test_a_commit_of_some_partitions_confirms_the_markers_of_all() -> None:
    listed = (HERE, TopicPartition("orders", 1), TopicPartition("payments", 0))
    decided_ms = {6: AT_MS, 7: AT_MS + 9_000}
    known = [
        known_of(
            n,
            [
                record("PrepareCommit", ms, producer_id=n, topic_partitions=listed),
                record("CompleteCommit", ms + 10, producer_id=n),
            ],
        )
        for n, ms in decided_ms.items()
    ]
    markers = marker_rows({n: {where: [MARKER._replace(at_ms=ms)] for where in listed} for n, ms in decided_ms.items()})
    assert counts(sums_of_markers(markers, pa.concat_tables(known), ALL_GIVEN, {7})) == (6, 0)


def test_a_producer_is_contradicted_by_its_own_marker_though_anothers_is_earlier() -> None:
    markers = marker_rows({7: {HERE: [MARKER]}, 8: {HERE: [MARKER._replace(offset=40, at_ms=AT_MS - 5)]}})
    against = sums_of_markers(markers, known_of(7, NEVER_HERE), ALL_GIVEN, {7}).against
    assert [w and w.producer_id for w in (against.of_asked[7], against.first)] == [7, 8]


def test_the_newest_decision_of_an_id_is_not_followed_by_another_ids_record() -> None:
    known = known_of(7, COMMITTED[:2], [record("Empty", AT_MS + 10)])
    assert sums_of_markers(marker_rows({7: {HERE: [MARKER]}}), known, ALL_GIVEN, {7}).sure_ms is None


@pytest.mark.parametrize(("history", "is_unsure"), [(COMMITTED, False), (NEVER_HERE, True)])
def test_what_is_not_surely_confirmed_is_unsure(history: list[StateRecord], *, is_unsure: bool) -> None:
    assert told(MARKER, history=history).is_unsure is is_unsure


@cases(
    "at_ms is_recent",
    {
        "nobody-says-when": (None, True),
        "just-as-ids-are-known": (AT_MS, True),
        "its-id-may-have-expired": (AT_MS - 1, False),
    },
)
def test_a_marker_is_recent_unless_its_id_may_have_expired(at_ms: int | None, *, is_recent: bool) -> None:
    state = replace(ALL_GIVEN, known_since_ms=AT_MS)
    assert told(MARKER._replace(at_ms=at_ms), state=state).has_recent is is_recent


def test_the_coordinator_of_a_marker_led_the_home_of_its_id() -> None:
    sums = told(MARKER, history=COMMITTED)
    assert (sums.coordinator_epochs, sums.unknown_coordinator_epoch) == ({HOME: 5}, None)


def test_a_later_marker_is_unexplained_beside_undecoded_records_alone() -> None:
    sums = told(MARKER, state=ending_at(AT_MS - SKEW_MS - 1))
    assert (sums.later is not None, sums.has_later_unexplained) == (True, False)


def test_a_leaders_lost_tail_is_no_excuse_if_nothing_was_ever_lost() -> None:
    sums = told(MARKER, state=with_home(lost_tails=(LeaderEpochChange(1, END_MS),)))
    assert (counts(sums), counts(sums.if_nothing_was_lost)) == (SILENT, CONTRADICTED)


UNPRINTED = MARKER._replace(kind=None)


@cases(
    "history state is_doubt",
    {
        "the-state-would-have-its-decision": (None, ALL_GIVEN, True),
        "a-producer-of-version-1-outlasts-compaction": (None, COMPACTED, True),
        "it-is-later-than-some-partition": (None, with_home(last_moment_ms=5), False),
        "its-id-decided-something-else": (NEVER_HERE, ALL_GIVEN, True),
        "its-id-decided-it": (COMMITTED, ALL_GIVEN, False),
    },
)
def test_a_marker_of_unprinted_kind_contradicts_nothing_and_is_a_doubt(
    history: list[StateRecord] | None, state: GivenState, *, is_doubt: bool
) -> None:
    sums = told(UNPRINTED, history=history, state=state)
    found = sums.unprinted_of_unknown if history is None else sums.unprinted
    assert (counts(sums), found is not None) == (SILENT, is_doubt)


def test_a_repetition_of_a_decided_marker_of_unprinted_kind_says_nothing() -> None:
    again = UNPRINTED._replace(offset=51, at_ms=END_MS - 500, has_data=False)
    assert told(UNPRINTED, again, history=COMMITTED).unprinted is None


@cases(
    "marker history is_doubt",
    {
        "a-commit": (MARKER, None, True),
        "of-unprinted-kind": (UNPRINTED, None, True),
        "version-2-and-nothing-was-compacted": (VERSION_2, None, True),
        "its-producer-is-known": (MARKER, NEVER_HERE, False),
    },
)
def test_a_state_that_is_empty_in_places_says_nothing_unless_it_was_copied_last(
    marker: EndMarker, history: list[StateRecord] | None, *, is_doubt: bool
) -> None:
    sums = told(marker, history=history, state=ending_at(None, 0))
    assert (sums.unreached is not None) is is_doubt


@cases(
    "history is_sure",
    {
        "its-complete-record-is-behind-it": (COMMITTED, True),
        "any-record-is": ([COMMITTED[1], record("Ongoing", AT_MS + 500)], True),
        "it-is-the-newest": (COMMITTED[:2], False),
        "compaction-left-its-end": ([record("CompleteCommit", AT_MS + 10)._replace(last_update_ms=AT_MS - 5)], True),
        "what-is-left-was-decided-later": (
            [record("CompleteCommit", AT_MS + 900)._replace(last_update_ms=AT_MS + SKEW_MS + 1)],
            False,
        ),
        "nothing-was-decided": (NEVER_HERE, False),
        "it-hung-for-hours": ([record("PrepareCommit", HUNG_MS), record("CompleteCommit", END_MS)], False),
        "a-minute-before": ([record("PrepareCommit", HUNG_MS + 1), record("CompleteCommit", END_MS)], True),
    },
)
def test_what_confirms_a_marker_surely(history: list[StateRecord], *, is_sure: bool) -> None:
    found = {told(each, history=history).sure_ms for each in (MARKER, UNPRINTED)}
    assert found == {AT_MS if is_sure else None}


ABORTED = [each._replace(state=each.state and each.state.replace("Commit", "Abort")) for each in COMMITTED]


def test_an_abort_confirms_by_a_decision_to_abort() -> None:
    """And counts for whose state it is alone."""
    aborted = MARKER._replace(kind=ABORT)
    found = told(aborted, history=ABORTED)
    assert (found.sure_of_any_ms, found.sure_ms, counts(found)) == (AT_MS, None, SILENT)
    assert told(aborted, history=COMMITTED).sure_of_any_ms is None
    assert told(MARKER, history=COMMITTED).sure_of_any_ms == AT_MS


LONE = record("CompleteCommit", AT_MS + 10)._replace(last_update_ms=AT_MS - 5)


@cases(
    "marker lone is_sure",
    {
        "of-its-epoch-and-written-by-its-coordinator": (MARKER, LONE._replace(leader_epoch=5), True),
        "or-by-a-later-one": (MARKER, LONE._replace(leader_epoch=6), True),
        "by-an-earlier-leader": (MARKER, LONE._replace(leader_epoch=4), False),
        "nothing-says-by-whom-as-in-an-export": (MARKER, LONE._replace(leader_epoch=None), False),
        "of-another-producer-epoch": (MARKER, LONE._replace(producer_epoch=4), False),
        "whose-epoch-is-not-printed": (MARKER._replace(producer_epoch=None), LONE, False),
        "whose-coordinator-is-not-printed": (MARKER._replace(coordinator_epoch=None), LONE, False),
        "of-the-other-kind": (MARKER._replace(kind=ABORT), LONE, False),
    },
)
def test_what_compaction_left_confirms_a_marker_of_its_epoch_and_leader(
    marker: EndMarker, lone: StateRecord, *, is_sure: bool
) -> None:
    """An id that commits all the time has a Complete record near any marker of another cluster."""
    assert (told(marker, history=[lone]).sure_of_any_ms is not None) is is_sure


def test_a_decision_whose_complete_record_is_gone_has_no_end() -> None:
    follows = [COMMITTED[1], record("Ongoing", AT_MS + 500)]
    assert counts(told(MARKER._replace(at_ms=AT_MS + 500 + SKEW_MS + 1), history=follows)) == CONFIRMED


def test_what_another_leader_completed_later_hides_no_completion() -> None:
    later = record("CompleteCommit", AT_MS + 400_000, leader_epoch=6)
    assert told(MARKER, history=[LONE._replace(leader_epoch=5), later]).sure_of_any_ms == AT_MS


def test_only_the_newest_marker_that_is_not_later_than_the_state_is_asked_for() -> None:
    last, later = (MARKER._replace(offset=51, at_ms=ms) for ms in (END_MS, END_MS + 1))
    assert told(MARKER, later, history=COMMITTED).newest_ms == AT_MS
    assert told(MARKER, last, history=COMMITTED).newest_ms == END_MS


EXPORTED = replace(ALL_GIVEN, exports=frozenset(range(4)), is_export_complete=True)
NEW_ID = exported(record("Empty", 5, epoch=0))


def late_in_export(first_ms: int) -> GivenState:
    """The first record of some id in the export is of then."""
    return replace(EXPORTED, chains={**EXPORTED.chains, 0: WHOLE._replace(export_gap_ms=first_ms)})


def test_a_producer_of_version_2_may_have_rotated_before_an_exports_first_records() -> None:
    assert counts(told(VERSION_2, history=None, state=late_in_export(END_MS))) == SILENT
    assert counts(told(VERSION_2, history=None, state=EXPORTED)) == CONTRADICTED


@cases(
    "history state expected",
    {
        "complete-from-the-new-id-on": (NEW_ID, EXPORTED, CONTRADICTED),
        "nobody-says-it-is-complete": (NEW_ID, replace(EXPORTED, is_export_complete=False), SILENT),
        "its-first-record-came-later": (exported(record("Ongoing", AT_MS - DECIDED_WITHIN_MS)), EXPORTED, SILENT),
        "it-came-before": (exported(record("Ongoing", AT_MS - DECIDED_WITHIN_MS - 1)), EXPORTED, CONTRADICTED),
        "nobody-has-the-producer": (None, EXPORTED, CONTRADICTED),
        "nobody-has-it-in-some-export": (None, replace(EXPORTED, is_export_complete=False), SILENT),
        "nobody-has-it-and-ids-begin-later-but-it-cannot-rotate": (None, late_in_export(END_MS), CONTRADICTED),
    },
)
def test_what_a_console_export_contradicts(
    history: list[StateRecord] | None, state: GivenState, expected: tuple[int, int]
) -> None:
    assert counts(told(MARKER, history=history, state=state)) == expected


def test_an_export_lacks_a_producer_whose_epochs_were_used_up() -> None:
    assert counts(told(MARKER._replace(producer_epoch=32_766), history=None, state=EXPORTED)) == SILENT
    assert counts(told(MARKER._replace(producer_epoch=32_765), history=None, state=EXPORTED)) == CONTRADICTED


@cases(
    "history state is_later",
    {
        "1-ms-after-the-states-end": (NEVER_HERE, ending_at(AT_MS - SKEW_MS - 1), True),
        "as-late-as-clocks-allow": (NEVER_HERE, ending_at(AT_MS - SKEW_MS), False),
        "its-decision-is-there": (COMMITTED, ending_at(5), False),
        "its-decision-is-the-newest-record": (COMMITTED[:2], ending_at(AT_MS - SKEW_MS), False),
        "a-newest-record-decides-nothing-behind-the-end": (COMMITTED[:2], ending_at(AT_MS - SKEW_MS - 1), True),
        "its-partition-holds-no-moment": (NEVER_HERE, ending_at(None), True),
        "unknown-and-one-partition-reaches-further": (None, ending_at(5, 0), False),
        "unknown-and-later-than-every-partition": (None, ending_at(5, 0, 1, 2, 3), True),
        "its-partition-was-not-given": (NEVER_HERE, replace(ending_at(5), chains={0: WHOLE}), False),
    },
)
def test_a_marker_that_is_later_than_the_state(
    history: list[StateRecord] | None, state: GivenState, *, is_later: bool
) -> None:
    markers = MARKER, MARKER._replace(kind=None)
    assert {told(each, history=history, state=state).later is not None for each in markers} == {is_later}


def test_an_abort_that_is_later_than_the_state_may_be_an_administrators() -> None:
    assert told(MARKER._replace(kind=ABORT), state=ending_at(5)).later is None


def test_a_commit_without_data_of_its_own_may_be_later_than_the_state_too() -> None:
    """It repeats the one before as far as the log shows, but was written long after that was completed."""
    ended = ending_at(AT_MS + 10)
    bare = EndMarker(51, COMMIT, AT_MS + 10 + SKEW_MS + 1, 3, 5, has_data=False)
    sums = told(MARKER, bare, history=COMMITTED, state=ended)
    assert (counts(sums), sums.later) == (CONFIRMED, UnexplainedMarker(bare.at_ms or 0, "orders", 0, 51, 7))
    assert told(MARKER, bare._replace(at_ms=AT_MS + 10 + SKEW_MS), history=COMMITTED, state=ended).later is None


def witness(producer_id: int, at_ms: int = AT_MS) -> UnexplainedMarker:
    return UnexplainedMarker(at_ms, "orders", 0, 50, producer_id)


def contradicted(confirmed: int, *producer_ids: int) -> MarkerSums:
    told = {i: witness(i) for i in producer_ids}
    return MarkerSums(confirmed, Contradictions(len(producer_ids), told, min(told.values(), default=None)))


def fit(sums: MarkerSums, **changes: Any) -> Fit:
    """Whether a state fits that is of the logs' cluster, by the `cluster.id` of both."""
    known: dict[str, Any] = {"misplaced": None, "cluster_ids": (), "of_one_cluster": {HERE}}
    return fit_of(sums, **known | changes)


@cases(
    "sums changes speaks_against",
    {
        "all-confirmed": (MarkerSums(9), {}, set()),
        "nothing-speaks": (MarkerSums(), {}, set()),
        "one-of-two-counts-for-its-producer-and-the-unknown": (contradicted(1, 7), {}, {"7", "unknown"}),
        "most-count-for-everything": (contradicted(0, 7), {}, {"7", "8", "unknown"}),
        "two-of-three-count-for-everything": (contradicted(1, 7, 9), {}, {"7", "8", "unknown"}),
        "as-many-as-are-confirmed-do-not": (contradicted(2, 7, 9), {}, {"7", "unknown"}),
        "misplaced-ids": (MarkerSums(), {"misplaced": "ids lie elsewhere"}, {"7", "8", "unknown"}),
        "no-producer-occurs-in-it": (MarkerSums(has_recent=True), {}, {"7", "8", "unknown"}),
        "one-cluster": (MarkerSums(), {"cluster_ids": {"A"}}, set()),
        "two-clusters": (MarkerSums(), {"cluster_ids": {"A", "B"}}, {"7", "8", "unknown"}),
    },
)
def test_for_whom_it_counts(sums: MarkerSums, changes: dict[str, Any], speaks_against: set[str]) -> None:
    asked = {"7": (7, True), "8": (8, True), "unknown": (99, False)}
    found = fit(sums, **changes)
    assert {name for name, (i, known) in asked.items() if found.against(i, is_known=known)} == speaks_against


MARKED = MarkerSums(is_unsure=True)


@cases(
    "sums is_copied_last known unknown",
    {
        "no-marker-tests-it": (MarkerSums(), True, False, False),
        "it-surely-confirms-none": (MARKED, True, True, True),
        "a-newest-decision-is-not-sure": (replace(MARKED, confirmed_count=1), True, True, True),
        "one-is-sure": (replace(MARKED, sure_ms=AT_MS), True, False, False),
        "one-that-is-older-than-the-data-is": (replace(MARKED, sure_ms=AT_MS - 1), True, True, True),
        "any-contradiction": (contradicted(9, 7), True, True, True),
        "of-unprinted-kind": (MarkerSums(unprinted=witness(9)), True, True, True),
        "of-an-unknown-producer": (MarkerSums(unprinted_of_unknown=witness(9)), True, False, True),
        "later-than-a-part-that-was-copied-last": (MarkerSums(unreached=witness(9)), True, False, True),
        "later-than-a-part-of-it": (MarkerSums(unreached=witness(9)), False, False, False),
    },
)
def test_where_nothing_hangs_since_the_state_may_be_anothers(
    sums: MarkerSums, *, is_copied_last: bool, known: bool, unknown: bool
) -> None:
    found = fit(sums)
    said = [bool(found.doubts(HERE, AT_MS, is_known=i, is_copied_last=is_copied_last)) for i in (True, False)]
    assert said == [known, unknown]


@cases(
    "sums is_in_doubt",
    {
        "no-marker-tests-it": (MarkerSums(), True),
        "none-is-sure": (MarkerSums(confirmed_count=1), True),
        "one-that-is-older-than-the-data-is": (MarkerSums(sure_ms=AT_MS - 1), True),
        "one-is-sure": (MarkerSums(sure_ms=AT_MS), False),
    },
)
def test_of_some_partitions_alone_a_state_must_surely_confirm_a_marker(sums: MarkerSums, *, is_in_doubt: bool) -> None:
    found = fit(sums, is_partial=True)
    said = [bool(found.doubts(HERE, AT_MS, is_known=i, is_copied_last=False)) for i in (True, False)]
    assert said == [is_in_doubt, is_in_doubt]


@cases(
    "sums is_in_doubt",
    {
        "the-newest-commit-is-sure": (replace(MARKED, sure_ms=AT_MS, newest_ms=AT_MS), False),
        "an-older-one-is": (replace(MARKED, sure_ms=AT_MS, newest_ms=AT_MS + 1), True),
        "none-is": (replace(MARKED, newest_ms=AT_MS), True),
        "no-marker-is-unsure": (MarkerSums(newest_ms=AT_MS), False),
    },
)
def test_where_nothing_bounds_the_data_the_newest_commit_must_be_sure(sums: MarkerSums, *, is_in_doubt: bool) -> None:
    said = [bool(fit(sums).doubts(HERE, None, is_known=i, is_copied_last=True)) for i in (True, False)]
    assert said == [is_in_doubt, is_in_doubt]


@cases(
    "sums by_ms is_shown",
    {
        "no-marker-is": (MarkerSums(), AT_MS, False),
        "one-as-late-as-the-data-is": (MarkerSums(sure_of_any_ms=AT_MS), AT_MS, True),
        "only-an-older-one": (MarkerSums(sure_of_any_ms=AT_MS - 1), AT_MS, False),
        "nothing-says-how-late-that-is": (MarkerSums(sure_of_any_ms=AT_MS), None, False),
    },
)
def test_a_state_is_shown_to_be_of_this_cluster_by_a_marker(
    sums: MarkerSums, by_ms: int | None, *, is_shown: bool
) -> None:
    """Or by one `cluster.id`."""
    told = fit(sums, of_one_cluster=()).doubts(HERE, by_ms, is_known=True, is_copied_last=True)
    assert any("meta.properties" in words for words in told) is not is_shown
    assert not fit(sums).doubts(HERE, by_ms, is_known=True, is_copied_last=True)


@cases(
    "sums is_anothers",
    {
        "nothing-fits": (contradicted(0, 7), True),
        "it-confirms-some": (contradicted(1, 7, 9), False),
        "it-knows-the-producer": (MarkerSums(against=Contradictions(1, {}, witness(7), is_of_known=True)), False),
    },
)
def test_it_is_another_clusters_only_if_it_explains_nothing(sums: MarkerSums, *, is_anothers: bool) -> None:
    (told,) = fit(sums).misfits
    assert ("another cluster's" in told) is is_anothers


WITNESSES = st.builds(witness, st.integers(1, 3), st.integers(1, 9))
CONTRADICTIONS = st.just(NO_CONTRADICTION) | st.builds(
    Contradictions, st.integers(1, 3), st.dictionaries(st.integers(1, 3), WITNESSES), WITNESSES, st.booleans()
)
SUMS = st.builds(
    MarkerSums,
    st.integers(0, 3),
    CONTRADICTIONS,
    CONTRADICTIONS,
    st.none() | WITNESSES,
    st.none() | WITNESSES,
    st.none() | WITNESSES,
    st.none() | WITNESSES,
    st.booleans(),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
)


@given(SUMS, SUMS, SUMS)
def test_sums_add_up_however_they_are_split(one: MarkerSums, other: MarkerSums, third: MarkerSums) -> None:
    assert one.plus(other) == other.plus(one)
    assert one.plus(other).plus(third) == one.plus(other.plus(third))


@cases(
    "seen",
    {
        "a-marker-that-is-not-surely-confirmed": MarkerSums(is_unsure=True),
        "when-the-newest-was-surely-confirmed": MarkerSums(sure_ms=0),
        "transactions-ended-lately": MarkerSums(has_recent=True),
        "and-an-id-of-them-is-known": MarkerSums(knows_recent=True),
        "a-coordinators-first-epoch": MarkerSums(coordinator_epochs={1: 0}),
        "that-of-a-producer-nobody-knows": MarkerSums(unknown_coordinator_epoch=0),
    },
)
def test_what_one_partition_says_holds_beside_another_that_says_nothing(seen: MarkerSums) -> None:
    assert seen.plus(MarkerSums()) == MarkerSums().plus(seen) == seen
