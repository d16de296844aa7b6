"""An upgrade that stopped half way: a new coordinator's markers never reach the old broker (KAFKA-20322)."""

from dataclasses import replace
from typing import Any

import pytest

from tests.judge.cases import ALL_SEEN, FOUR, HEALTH, KNOWN, MINUTE_MS, NOW_MS, OPEN, SKEW_MS, listed
from tests.records import sections_of
from txn_analysis.coordinator.coverage import StateEvidence, StatePartition
from txn_analysis.coordinator.fit import Fit
from txn_analysis.judge.fact_finding import Moments
from txn_analysis.judge.judgement import Judgement, judge_of
from txn_analysis.kafka.names import HIGH_WATERMARK, LOG, NODE_ID, STATE, STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.settings import Settings

Row = dict[str, Any]

COMMITS_AND_ABORTS = ("PrepareCommit", "PrepareAbort", "PrepareCommit", "PrepareCommit", "PrepareAbort")


def said(
    log_dir: str | None, kind: str, topic: str, partition: int, *, stated: str | None = None, rank: int = 0
) -> Row:
    """One file of a broker's log directory, or what it states; None is a dump."""
    place = {"topic": topic, "partition": partition, "log_dir": log_dir}
    return place | {"kind": kind, "capture_rank": rank, "stated": stated}


def copied(log_dir: str | None, topic: str, *partitions: int, rank: int = 0) -> list[Row]:
    """Files of some partitions."""
    return [said(log_dir, STATE if topic == STATE_TOPIC else LOG, topic, n, rank=rank) for n in partitions]


def checkpoint(log_dir: str, topic: str, *partitions: int, node: int) -> list[Row]:
    """The `meta.properties` of a log directory, and its checkpoint, which lists the replicas that it holds."""
    marks = [said(log_dir, HIGH_WATERMARK, topic, n) for n in partitions]
    return [said(log_dir, NODE_ID, "", -1, stated=str(node)), *marks]


ORDERS = [*copied("old", "orders", 0, 1, 2, 3, 4), *copied("new", STATE_TOPIC, 0, 1)]
OLD_LEADS = checkpoint("old", "orders", 0, 1, 2, 3, 4, node=1)
NEW_DECIDES = checkpoint("new", STATE_TOPIC, 0, 1, node=2)
UPGRADING = [*ORDERS, *OLD_LEADS, *NEW_DECIDES]


def judged(
    sections: list[Row],
    states: tuple[str, ...] = COMMITS_AND_ABORTS,
    *,
    decided_ms: int = NOW_MS - 2 * MINUTE_MS,
    log_end_ms: int | None = NOW_MS,
    ids: int | None = None,
    fit: Fit | None = None,
    partitions: tuple[StatePartition, ...] = ALL_SEEN,
    **changes: Any,
) -> list[Judgement]:
    """One open transaction in each of orders-0, orders-1, ..., which two partitions of the state have decided so."""
    opened = [OPEN._replace(partition=n, producer_id=7 + n) for n in range(len(states))]
    views = {
        o.key: KNOWN._replace(
            transactional_id=f"billing-{n if ids is None else n % ids}",
            state_partition=n % 2,
            **listed(state, update_ms=decided_ms) | changes,
        )
        for n, (o, state) in enumerate(zip(opened, states, strict=True))
    }
    logs = {
        TopicPartition(h.topic, h.partition): h
        for h in (HEALTH._replace(partition=o.partition, last_moment_ms=log_end_ms) for o in opened)
    }
    settings = Settings(transaction_state_partitions=4, max_clock_skew_ms=SKEW_MS)
    state = StateEvidence(list(partitions), FOUR, fit or Fit())
    cases = [(one, views[one.key]) for one in opened]
    moments = Moments(NOW_MS, NOW_MS)
    return judge_of(lambda: [cases], logs, state, settings, moments, sections_of(sections)).judged(cases)


def causes(found: list[Judgement]) -> set[tuple[str, str]]:
    return {(j.cause.name, j.cause.confidence.value) for j in found if j.cause is not None}


def test_decisions_of_one_broker_whose_markers_another_lacks_name_the_upgrade() -> None:
    found = judged(UPGRADING)
    assert causes(found) == {("marker_not_sent_in_upgrade", "likely")}
    assert {j.verdict.value for j in found} == {"coordinated"}
    first = found[0].cause
    assert first is not None
    many, brokers = first.evidence_for[-2:]
    assert many == "5 transactional ids stand like this for more than a minute"
    lacking = "orders-0, orders-1, orders-2, orders-3, orders-4"
    assert (
        f"lacks markers: {lacking}; another one all decisions: __transaction_state-0, __transaction_state-1" in brokers
    )
    assert "a leader that its coordinator cannot reach leaves the same" in first.evidence_against[0]


def test_a_decision_that_is_overdue_stays_so_and_is_never_aborted() -> None:
    found = judged(UPGRADING, decided_ms=NOW_MS - 30 * MINUTE_MS)
    assert {j.rule.name for j in found} == {"marker_overdue"}
    assert causes(found) == {("marker_not_sent_in_upgrade", "likely")}


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param([], id="console-export"),
        pytest.param([*copied(None, "orders", 0, 1, 2, 3, 4), *copied(None, STATE_TOPIC, 0, 1)], id="dumps"),
        pytest.param([*UPGRADING, *copied(None, "orders", 0)], id="a-dump-beside-it"),
        pytest.param(ORDERS, id="no-small-files"),
        pytest.param([*ORDERS, *OLD_LEADS, NEW_DECIDES[0]], id="no-checkpoint-of-one-broker"),
        pytest.param([*UPGRADING, said("new", HIGH_WATERMARK, "orders", 0)], id="two-replicas-of-one-log"),
        pytest.param(
            [*OLD_LEADS[:-1], *checkpoint("older", "orders", 4, node=3), *NEW_DECIDES],
            id="two-old-brokers-lack-markers",
        ),
    ],
)
def test_where_it_cannot_be_told_to_be_one_broker_on_each_side_it_is_possible(sections: list[Row]) -> None:
    assert causes(judged(sections)) == {("marker_not_sent_in_upgrade", "possible")}


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param(
            checkpoint("old", "orders", 0, 1, 2, 3, 4, node=1) + checkpoint("old", STATE_TOPIC, 0, 1, node=1), id="one"
        ),
        pytest.param([*OLD_LEADS, said("old", HIGH_WATERMARK, STATE_TOPIC, 1), *NEW_DECIDES[:2]], id="both-decide"),
        pytest.param([*OLD_LEADS, *checkpoint("disk-2", STATE_TOPIC, 0, 1, node=1)], id="one-broker-of-two-disks"),
    ],
)
def test_a_broker_that_decides_and_lacks_markers_is_no_upgrade(sections: list[Row]) -> None:
    assert causes(judged(sections)) == {("marker_missing", "certain")}


def test_two_disks_of_one_node_are_one_broker() -> None:
    two_disks = [*OLD_LEADS[:-1], *checkpoint("disk-2", "orders", 4, node=1), *NEW_DECIDES]
    assert causes(judged(two_disks)) == {("marker_not_sent_in_upgrade", "likely")}


def test_files_of_an_earlier_capture_do_not_say_who_leads_now() -> None:
    before = copied("new", "orders", 0, 1, 2, 3, 4, rank=1)
    assert causes(judged([*UPGRADING, *before])) == {("marker_not_sent_in_upgrade", "likely")}


def test_one_id_that_waits_for_its_markers_shows_nothing() -> None:
    """KAFKA-16352, or a leader that was slow: one id on many partitions is one wait."""
    assert causes(judged(UPGRADING, ids=1)) == {("marker_missing", "certain")}


@pytest.mark.parametrize(
    ("age_ms", "name"), [(MINUTE_MS, "marker_missing"), (MINUTE_MS + 1, "marker_not_sent_in_upgrade")]
)
def test_markers_on_their_way_are_no_pattern(age_ms: int, name: str) -> None:
    found = judged(UPGRADING, decided_ms=NOW_MS - age_ms)
    assert {cause for cause, _ in causes(found)} == {name}


def test_a_partition_of_the_state_that_fell_silent_stands_beside_another_one_of_its_broker() -> None:
    """What is stuck writes nothing more: the state's own partitions end with their decisions, and so do the logs."""
    at_ms = NOW_MS - 5 * MINUTE_MS
    silent = [replace(p, chain=p.chain._replace(last_moment_ms=at_ms)) for p in ALL_SEEN[:3]]
    quiet: Row = {"partitions": (*silent, ALL_SEEN[3]), "decided_ms": at_ms, "log_end_ms": None}
    of_its_broker = [*ORDERS, *OLD_LEADS, *checkpoint("new", STATE_TOPIC, 0, 1, 3, node=2)]
    assert causes(judged(of_its_broker, **quiet)) == {("marker_not_sent_in_upgrade", "likely")}
    of_another = [*UPGRADING, *checkpoint("third", STATE_TOPIC, 3, node=3)]
    assert causes(judged(of_another, **quiet)) == {("marker_missing", "certain")}


def test_what_is_in_progress_beside_it_keeps_its_own_cause() -> None:
    *stuck, running = judged(UPGRADING, (*COMMITS_AND_ABORTS[:4], "Ongoing"))
    assert causes(stuck) == {("marker_not_sent_in_upgrade", "likely")}
    assert causes([running]) == {("transaction_in_progress", "certain")}


def test_another_clusters_state_names_nothing() -> None:
    assert causes(judged(UPGRADING, fit=Fit(unfit=("it is another cluster's",)))) == set()
