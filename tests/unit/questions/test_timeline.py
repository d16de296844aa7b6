"""Whose clock tells an event of a timeline, and where the coordinator's records stand among the log's batches."""

import pytest

from txn_analysis.questions.explain import Explanation, LoggedBatch, explanations_text, timeline

OWN = 7
DATA = LoggedBatch("orders", 10, 12, 3, OWN, 0, False, None, None, 5_000, "CreateTime")
COMMIT = LoggedBatch("orders", 20, 20, 1, OWN, 0, True, "COMMIT", 4, 6_000, "CreateTime")


def clock_of(batch: LoggedBatch) -> str:
    (event,) = timeline([batch], [], OWN)
    return event.clock


def test_data_is_told_by_its_clients_clock() -> None:
    assert clock_of(DATA) == "client"


def test_data_with_log_append_time_is_told_by_the_brokers_clock() -> None:
    assert clock_of(DATA._replace(timestamp_type="LogAppendTime")) == "broker"


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_data_of_a_topic_that_brokers_write_themselves_is_told_by_their_clock(topic: str) -> None:
    assert clock_of(DATA._replace(topic=topic)) == "broker"


def test_a_marker_is_told_by_the_brokers_clock() -> None:
    assert clock_of(COMMIT) == "broker"


def test_without_a_time_no_brokers_clock_tells_anything() -> None:
    assert clock_of(COMMIT._replace(max_timestamp_ms=None)) == "client"


def test_the_log_keeps_its_order() -> None:
    assert [event.kind for event in timeline([COMMIT, DATA], [], OWN)] == ["data", "marker"]


@pytest.mark.parametrize("offset", [0, 9_999_999, 10_000_000, 2**63 - 1])
@pytest.mark.parametrize("at_ms", [0, 2**63 - 1])
def test_a_long_offset_or_time_stands_apart_from_what_happened_there(offset: int, at_ms: int) -> None:
    events = timeline([DATA._replace(base_offset=offset, last_offset=offset, max_timestamp_ms=at_ms)], [], OWN)
    about = {"topic": "orders", "partition": 0, "producer_id": OWN, "txn_start_offset": offset, "run_id": "run-1"}
    judged = {"transactional_id": None, "verdict": "hanging", "rule": "unknown_producer", "cause": None, "owner": None}
    rest = {"facts": (), "rules": (), "would_change": (), "are_batches_kept": True}
    shown = Explanation.model_validate({"events": tuple(events), **about, **judged, **rest})
    assert f"(client) offset {offset} data" in " ".join(explanations_text([shown]).split())
