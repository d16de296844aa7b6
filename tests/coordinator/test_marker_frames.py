"""End markers on Spark: what they say of the state is what the pure core says of them, producer by producer."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from tests.coordinator.builders import table_row
from tests.coordinator.frames import MARKERS, as_read, states
from tests.coordinator.test_fit import ALL_GIVEN, AT_MS, COMMITTED, EXPORTED, MARKER, SKEW_MS, ending_at, with_home
from txn_analysis.coordinator.chain import Rise
from txn_analysis.coordinator.end_markers import ABORT, EndMarker
from txn_analysis.coordinator.fit import MarkerSums
from txn_analysis.coordinator.history import by_id, in_order
from txn_analysis.coordinator.marker_checks import sums_of_producer
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.pipeline.on_spark.markers import end_markers, marker_sums

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from txn_analysis.coordinator.state_at_hand import StateAtHand

Row = dict[str, Any]
ASKED = frozenset({7, 8, 9})
LATE = MARKER._replace(offset=60, at_ms=AT_MS + 5_000)

MARKS: dict[int, list[EndMarker]] = {
    7: [MARKER],  # confirmed
    8: [MARKER, LATE],  # its id decided once
    9: [MARKER],  # nobody has it
    10: [MARKER, LATE._replace(has_data=False)],  # repeated long after
    11: [MARKER._replace(kind=ABORT), LATE._replace(kind=None)],  # neither speaks
    12: [MARKER._replace(coordinator_epoch=9)],  # above every leader
    13: [],
    14: [MARKER._replace(data_epoch=2)],  # of version 2, and nobody has it
    15: [MARKER, LATE._replace(data_epoch=2)],  # the second shows version 2
    16: [MARKER._replace(kind=None)],  # nobody has it, and its kind is not printed
    17: [MARKER._replace(kind=None), LATE._replace(kind=None, has_data=False)],  # its id has it; repeated
}


def records() -> list[Row]:
    """Ids named after their producers; each but those of 9 and 12 has committed orders-0 at 200,000."""
    found = []
    for producer_id in (7, 8, 10, 11, 13, 17):
        for number, each in enumerate(COMMITTED):
            offset = 10 * producer_id + number
            places = [("orders", 0)] if each.topic_partitions else []
            times = {"recorded_ms": each.recorded_ms, "last_update_ms": each.last_update_ms}
            listed = {"topic_partitions": places, "state_partition": 2}
            found.append(table_row(offset, f"id-{producer_id}", each.state, producer_id, **times | listed))
    return [*found, table_row(500, "id-12", "Empty", 12, state_partition=2, recorded_ms=5, last_update_ms=5)]


def of_the_core(state: StateAtHand) -> MarkerSums:
    known = {name: in_order(history) for name, history in by_id(as_read(*records())).items()}
    sums = []
    for producer_id, own in MARKS.items():
        histories = [history for name, history in known.items() if name == f"id-{producer_id}"]
        sums.append(sums_of_producer(producer_id, {TopicPartition("orders", 0): own}, histories, state, ASKED))
    return reduce(MarkerSums.plus, sums, MarkerSums())


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(ALL_GIVEN, id="whole"),
        pytest.param(replace(ALL_GIVEN, is_whole=False), id="not-all-given"),
        pytest.param(ending_at(AT_MS + 20), id="it-ends-before-some"),
        pytest.param(ending_at(AT_MS + 5_000 - SKEW_MS), id="it-ends-with-the-last"),
        pytest.param(with_home(gap_end_ms=AT_MS), id="compacted"),
        pytest.param(with_home(lost_tails=(Rise(1, AT_MS),)), id="its-leader-changed"),
        pytest.param(EXPORTED, id="an-export"),
        pytest.param(replace(ALL_GIVEN, known_since_ms=AT_MS + 1), id="some-may-have-expired"),
    ],
)
def test_sums_on_spark_are_those_of_the_core(spark: SparkSession, state: StateAtHand) -> None:
    rows = [("orders", 0, producer_id, *marker) for producer_id, own in MARKS.items() for marker in own]
    found = marker_sums(spark.createDataFrame(rows, MARKERS), states(spark, *records()), state, ASKED)
    expected = of_the_core(state)
    is_contradicted = expected.against.marker_count or expected.more_if_nothing_was_lost.marker_count
    # How many confirm is asked only where something contradicts.
    assert found == (expected if is_contradicted else replace(expected, confirmed_count=found.confirmed_count))


def test_markers_are_those_of_ended_transactions_and_the_bare_ones(spark: SparkSession) -> None:
    ended = spark.sql(
        "SELECT 'orders' AS topic, 0 AS partition, 7L AS producer_id, outcome, end_offset, 100L AS end_timestamp_ms, "
        "3 AS end_producer_epoch, 5 AS coordinator_epoch, 2 AS max_producer_epoch "
        "FROM VALUES ('COMMIT', 4L), ('ended', 6L) AS t(outcome, end_offset)"
    )
    health = spark.sql(
        "SELECT 'orders' AS topic, 0 AS partition, array(named_struct('producer_id', 8L, 'offset', 9L, 'marker', "
        "'ABORT', 'timestamp_ms', 200L, 'producer_epoch', 1, 'coordinator_epoch', 2)) AS bare_markers"
    )
    told = {
        (row["producer_id"], *(row[name] for name in EndMarker._fields)) for row in end_markers(ended, health).collect()
    }
    assert told == {
        (7, 4, "COMMIT", 100, 3, 5, True, 2),
        (7, 6, None, 100, 3, 5, True, 2),
        (8, 9, "ABORT", 200, 1, 2, False, None),
    }
