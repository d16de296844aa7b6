"""Why open data is open: one story a cause, read from the id's records, with the facts that decide."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from tests.tools.cases import cases
from tests.tools.coordinator_rows import record, tombstone
from tests.tools.judged_cases import (
    ALL_SEEN,
    FOUR,
    HEALTH,
    HOLDER,
    KNOWN,
    MINUTE_MS,
    NOW_MS,
    OPEN,
    WRITTEN_MS,
    Case,
    asked,
    listed,
    with_partition,
)
from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
from txn_analysis.coordinator.fit import Fit
from txn_analysis.coordinator.view import CoordinatorView, origins_of, view_of
from txn_analysis.judge import case as judged_case
from txn_analysis.judge.case import Moments
from txn_analysis.judge.causes import CAUSES, DIAGNOSES, cause_named
from txn_analysis.judge.causes.cause import Cause
from txn_analysis.judge.judgement import Judgement, judgement_of
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.logic import UNBOUNDED_MS
from txn_analysis.settings import Settings
from txn_analysis.tables import FoundCause, Transaction

Row = dict[str, Any]

MARKER_MS = OPEN.last_marker_ms or 0
BOUND_MS = OPEN.first_appended_before_ms or 0
NEVER_MARKED: Row = {"last_marker_ms": None, "coordinator_epoch": None, "coordinator_epoch_basis": "none_seen"}
ELSEWHERE = (("orders", 1),)


def transaction(start_ms: int, *, end: str = "Commit", epoch: int = 3, **changes: Any) -> list[StateRecord]:
    """A whole transaction of producer 7 on orders-0: ten milliseconds from its start to the decision."""
    return [
        record("Ongoing", start_ms, start_ms=start_ms, epoch=epoch, **changes),
        record(f"Prepare{end}", start_ms + 10, start_ms=start_ms, epoch=epoch, **changes),
        record(f"Complete{end}", start_ms + 15, start_ms=start_ms, epoch=epoch),
    ]


MARKED = transaction(MARKER_MS - 12)


def judged(
    opened: Transaction,
    known: CoordinatorView | None,
    partitions: tuple[StatePartition, ...] = ALL_SEEN,
    state_leader_epoch: int | None = None,
    *,
    no_records_lost: bool = False,
) -> FoundCause:
    settings = Settings.model_validate(
        {"transaction_state_partitions": 4, "max_clock_skew_ms": 0, "no_records_lost": no_records_lost}
    )
    fit = Fit(of_one_cluster={opened.topic_partition})
    state, moments = StateEvidence(list(partitions), FOUR, fit), Moments(NOW_MS, NOW_MS)
    found = judgement_of(judged_case.Case(opened, HEALTH, known, state, settings, moments, state_leader_epoch)).cause
    assert found is not None
    return found


def cause(
    history: list[StateRecord] | None,
    *,
    state_leader_epoch: int | None = None,
    partitions: tuple[StatePartition, ...] = ALL_SEEN,
    no_records_lost: bool = False,
    **changes: Any,
) -> FoundCause:
    """The cause of the open data of the proof table, with this history of its id (None: no id has the producer)."""
    opened = OPEN._replace(**changes)
    known = None if history is None else view_of(history, asked(opened), (), 0)
    return judged(opened, known, partitions, state_leader_epoch, no_records_lost=no_records_lost)


@cases(
    "history changes name confidence",
    {
        "written-after-the-end-marker": (MARKED, {}, "late_write_after_marker", "certain"),
        "a-transaction-that-began-later-is-not-its-own": (
            [*MARKED, *transaction(BOUND_MS + 1_000, topic_partitions=ELSEWHERE)],
            {},
            "late_write_after_marker",
            "certain",
        ),
        "written-in-a-transaction-that-does-not-list-the-partition": (
            [*MARKED, *transaction(MARKER_MS + 500, topic_partitions=ELSEWHERE)],
            {},
            "write_before_partition_added",
            "certain",
        ),
        "never-added": (
            [record("Empty", 1), record("Ongoing", 5, topic_partitions=ELSEWHERE)],
            NEVER_MARKED,
            "write_before_partition_added",
            "certain",
        ),
        "a-new-instance-took-over": (
            [record("Empty", 1), record("Empty", 9, epoch=4)],
            NEVER_MARKED,
            "old_epoch_left_open",
            "certain",
        ),
        "how-its-transaction-ended-is-in-no-record": (
            [*MARKED, *transaction(MARKER_MS + 100, epoch=4)[:1], record("Empty", BOUND_MS + 50, epoch=5)],
            {},
            "marker_missing",
            "possible",
        ),
        "decided-after-the-data-and-completed": (
            [*MARKED, *transaction(BOUND_MS + 100)],
            {},
            "marker_missing",
            "certain",
        ),
        "decided-and-completed-perhaps-before-the-data": (
            [*MARKED, *transaction(MARKER_MS + 100)],
            {},
            "marker_missing",
            "likely",
        ),
        "what-the-records-list-comes-before-a-rotation": (
            [record("Ongoing", 5, epoch=32_766), record("Empty", BOUND_MS + 9, producer_id=99, epoch=0)],
            {**NEVER_MARKED, "first_producer_epoch": 32_766},
            "marker_missing",
            "possible",
        ),
        "epochs-were-used-up": (
            [record("Empty", 5, epoch=32_766), record("Empty", BOUND_MS + 9, producer_id=99, epoch=0)],
            {**NEVER_MARKED, "first_producer_epoch": 32_766},
            "producer_id_rotated",
            "likely",
        ),
        "the-records-link-both-producer-ids": (
            [record("Empty", 5), record("Empty", BOUND_MS + 9, producer_id=99, epoch=0, previous_producer_id=7)],
            NEVER_MARKED,
            "producer_id_rotated",
            "certain",
        ),
        "written-after-its-id-was-removed": (
            [record("Empty", 5), tombstone(MARKER_MS)],
            NEVER_MARKED,
            "transactional_id_expired",
            "certain",
        ),
        "its-id-was-removed-later": (
            [record("Empty", 5), tombstone(NOW_MS - 1)],
            NEVER_MARKED,
            "transactional_id_expired",
            "likely",
        ),
        "nobody-has-the-producer-id": (None, {}, "producer_id_never_known", "likely"),
        "nobody-has-it-and-it-may-have-expired": (
            None,
            {"appended_after_ms": NOW_MS - 604_800_000},
            "transactional_id_expired",
            "possible",
        ),
    },
)
def test_cause_of_data_that_nothing_lists(
    history: list[StateRecord] | None, changes: Row, name: str, confidence: str
) -> None:
    found = cause(history, **changes)
    assert (found.name, found.confidence.value) == (name, confidence)
    assert found.evidence_for


@cases(
    "coordinator changes name confidence",
    {
        "running": ({}, {}, "transaction_in_progress", "certain"),
        "older-than-its-transaction-by-the-brokers-clocks": (
            {"start_ms": BOUND_MS + 1},
            {},
            "late_write_joined_next_transaction",
            "certain",
        ),
        "past-its-timeout": (
            {"start_ms": WRITTEN_MS - 40_000_000, "timeout_ms": MINUTE_MS},
            {},
            "coordinator_overdue",
            "certain",
        ),
    },
)
def test_cause_of_data_in_a_running_transaction(coordinator: Row, changes: Row, name: str, confidence: str) -> None:
    found = judged(OPEN._replace(**changes), KNOWN._replace(**listed("Ongoing", **coordinator)))
    assert (found.name, found.confidence.value) == (name, confidence)


@pytest.mark.parametrize(("epoch", "is_said"), [(32_765, False), (32_766, True), (32_767, True)])
def test_an_overdue_transaction_at_the_last_epoch_is_told_of_as_such(epoch: int, is_said: bool) -> None:
    overdue = listed("Ongoing", start_ms=WRITTEN_MS - 40_000_000, timeout_ms=MINUTE_MS)
    found = judged(OPEN, KNOWN._replace(**overdue | {"producer_epoch": epoch, "state_epoch": epoch}))
    assert found.name == "coordinator_overdue"
    assert any("KAFKA-20090" in line for line in found.evidence_for) is is_said


def test_a_client_that_stamped_it_like_its_former_transaction_may_have_written_late() -> None:
    unending = {"timeout_ms": 2**31 - 1}
    history = [*MARKED, record("Ongoing", BOUND_MS - 100, start_ms=BOUND_MS - 100, **unending)]
    found = cause(history, previous_last_timestamp_ms=WRITTEN_MS)
    assert (found.name, found.confidence) == ("late_write_joined_next_transaction", "possible")
    assert cause(history, previous_last_timestamp_ms=WRITTEN_MS - 1).name == "transaction_in_progress"


def test_a_repeated_decision_that_the_client_outlived_may_be_a_late_end() -> None:
    twice = [*transaction(MARKER_MS - 60), *MARKED]
    found = cause(twice)
    assert (found.name, found.confidence) == ("late_end_txn", "possible")
    assert cause(twice, last_timestamp_ms=MARKER_MS).name == "late_write_after_marker"


@pytest.mark.parametrize("shows", ["commits raise the epoch", "a record says so"])
def test_a_repeated_decision_ends_nothing_under_transaction_version_2(shows: str) -> None:
    first, last = transaction(MARKER_MS - 60), MARKED
    if shows == "a record says so":
        first = [one._replace(client_transaction_version=2) for one in first]
    else:
        first = [first[0], *(one._replace(producer_epoch=4) for one in first[1:])]
    assert cause([*first, *last]).name == "late_write_after_marker"


def test_a_gap_in_the_history_makes_a_late_write_less_than_certain() -> None:
    gap = with_partition(HOLDER, gap_end_ms=NOW_MS)
    assert cause(MARKED, partitions=gap).confidence == "possible"  # a commit's marker may be missing
    found = cause(MARKED, partitions=gap, no_records_lost=True)
    assert (found.name, found.confidence) == ("late_write_after_marker", "likely")
    assert "records of the transactional id may be gone" in found.evidence_against


def test_a_lower_coordinator_epoch_than_before_is_a_cause_of_its_own() -> None:
    found = cause(MARKED, has_coordinator_epoch_fallen=True)
    assert (found.name, found.confidence) == ("coordinator_epoch_went_back", "likely")
    fenced = cause(MARKED, state_leader_epoch=(OPEN.coordinator_epoch or 0) - 1)
    assert fenced.name == "coordinator_epoch_went_back"
    assert cause(MARKED, state_leader_epoch=OPEN.coordinator_epoch).name == "late_write_after_marker"


def test_broken_evidence_makes_no_cause_more_than_possible() -> None:
    found = cause(MARKED, evidence_gaps=("offsets 10 to 20 are in no file",))
    assert found.confidence == "possible"
    assert "missing: offsets 10 to 20 are in no file" in found.evidence_against


@pytest.mark.parametrize(
    ("producer_id", "name"),
    [(1_005_000, "transactional_id_expired"), (1_005_001, "producer_id_never_known")],
)
def test_an_id_far_above_those_that_were_given_out_was_invented(producer_id: int, name: str) -> None:
    """Nothing says how old it is: its records begin the log, so that no broker's clock speaks before them."""
    given_out = with_partition(HOLDER, largest_producer_id=5_000)
    found = unknown(given_out, producer_id=producer_id, appended_after_ms=None).cause
    assert found is not None
    assert (found.name, found.confidence) == (name, "possible")
    assert any("largest in __transaction_state is 5000" in line for line in found.evidence_for) is (
        producer_id > 1_005_000
    )
    assert not any("so lately" in line for line in found.evidence_for)


NOT_GIVEN = tuple(StatePartition(n, problems=["not in the capture"]) for n in range(4))


def unknown(partitions: tuple[StatePartition, ...] = ALL_SEEN, fit: Fit | None = None, **changes: Any) -> Judgement:
    """The open data of the proof table, whose producer nobody knows."""
    return Case("", "", open=changes, known=None, partitions=partitions, fit=fit or Fit()).judged()


@pytest.mark.parametrize("last_timestamp_ms", [WRITTEN_MS, NOW_MS], ids=["late", "in-progress"])
def test_without_a_state_no_cause_is_told(last_timestamp_ms: int) -> None:
    assert unknown(last_timestamp_ms=last_timestamp_ms).cause is not None
    assert unknown(NOT_GIVEN, last_timestamp_ms=last_timestamp_ms).cause is None


def test_of_another_clusters_state_no_cause_is_told() -> None:
    foreign = Fit(unfit=("it is another cluster's",))
    assert unknown(fit=foreign).cause is None
    assert Case("", "", fit=foreign, known=listed("Ongoing")).judged().cause is None


def test_what_the_log_alone_shows_is_told_without_a_state() -> None:
    found = unknown(NOT_GIVEN, has_coordinator_epoch_fallen=True).cause
    assert found is not None
    assert (found.name, found.confidence) == ("coordinator_epoch_went_back", "possible")


def test_a_record_of_its_partition_that_was_not_decoded_keeps_a_cause_from_being_certain() -> None:
    undecoded = with_partition(HOLDER, undecodable_count=1, gap_end_ms=UNBOUNDED_MS)
    found = cause(MARKED, partitions=undecoded, no_records_lost=True)
    assert (found.name, found.confidence.value) == ("late_write_after_marker", "likely")
    assert "records of the transactional id may be gone" in found.evidence_against


AGAIN = "__transaction_state begins after the data: it may have been made again"


def test_a_state_that_was_not_given_is_not_said_to_be_made_again() -> None:
    begun_later = tuple(replace(p, chain=p.chain._replace(first_moment_ms=BOUND_MS)) for p in ALL_SEEN)
    assert AGAIN in unknown(begun_later).case.state_lacks
    broken = (*begun_later[:3], replace(begun_later[3], problems=["broken"]))
    assert unknown(broken).case.state_lacks == ("__transaction_state-3: broken", AGAIN)
    some = (*begun_later[:3], NOT_GIVEN[3])
    assert unknown(some).case.state_lacks == ("__transaction_state-3: not in the capture",)
    assert unknown(NOT_GIVEN).case.state_lacks == ("__transaction_state: not in the capture",)


def test_of_two_decisions_within_the_skew_the_nearest_one_wrote_the_marker() -> None:
    history = [*transaction(MARKER_MS - 12), *transaction(MARKER_MS + 30)]
    found = origins_of(history, asked(OPEN), max_clock_skew_ms=1_000)
    assert (found.ended_ms, found.prepared_ms) == (MARKER_MS - 2, MARKER_MS + 40)
    assert found.is_order_doubtful
    assert not origins_of(history, asked(OPEN), max_clock_skew_ms=0).is_order_doubtful


@pytest.mark.parametrize("cause", CAUSES[:-1], ids=lambda cause: cause.name)
def test_a_cause_is_found_by_its_name(cause: Cause) -> None:
    assert cause_named(cause.name) is cause
    assert vars(import_module(cause.evidence.__module__))[cause.name.upper()] is cause


def test_every_cause_has_a_name_of_its_own_and_the_last_reading_always_explains() -> None:
    assert len(CAUSES) == len({cause.name for cause in CAUSES})
    assert DIAGNOSES[-1].cause.name == "unexplained"
