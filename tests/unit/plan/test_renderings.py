import json
from typing import Any

import pytest

from tests.tools import report_rows as rows
from txn_analysis.plan.abort_plan import abort_plan, plan_fingerprint
from txn_analysis.plan.plan_file import ndjson, write_txn_markers
from txn_analysis.settings import Settings
from txn_analysis.tables import AbortRecord, Finding

EVIL = "evil\nkafka-transactions.sh abort --everything\x1b[2J\u202e\u2028'\"`$(rm -rf ~)`"


def plan_of(*findings: Finding) -> tuple[AbortRecord, ...]:
    return abort_plan(findings, Settings(), rows.AS_OF_MS)


def markers_of(*findings: Finding, api_version: int = 1) -> list[dict[str, Any]]:
    document, _ = write_txn_markers(plan_of(*findings), api_version)
    markers: list[dict[str, Any]] = json.loads(document)["markers"]
    return markers


def test_one_marker_per_producer_and_epochs() -> None:
    same = {"producer_id": 7, "producer_epoch": 1}
    markers = markers_of(
        rows.finding(**same, topic="b", partition=10),
        rows.finding(**same, topic="b", partition=9),
        rows.finding(**same, topic="a", partition=3),
        rows.finding(**same, topic="c", partition=0, coordinator_epoch=0, coordinator_epoch_basis="marker"),
        rows.finding(**same, topic="c", partition=1, coordinator_epoch=4, coordinator_epoch_basis="marker"),
        rows.finding(producer_id=7, producer_epoch=2, topic="d"),
    )
    assert [(m["producerEpoch"], m["coordinatorEpoch"]) for m in markers] == [(1, 0), (1, 4), (2, 0)]
    assert markers[0]["topics"] == [
        {"name": "a", "partitionIndexes": [3]},
        {"name": "b", "partitionIndexes": [9, 10]},
        {"name": "c", "partitionIndexes": [0]},
    ]
    assert not any(marker["transactionResult"] for marker in markers)


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_fields_of_the_request(api_version: int) -> None:
    (marker,) = markers_of(rows.finding(), api_version=api_version)
    fields = ["producerId", "producerEpoch", "transactionResult", "topics", "coordinatorEpoch"]
    assert list(marker) == fields + ["transactionVersion"] * (api_version == 2)
    assert marker.get("transactionVersion", 0) == 0


def test_unknown_coordinator_epoch_is_left_out_and_named() -> None:
    document, left_out = write_txn_markers(
        plan_of(rows.finding(coordinator_epoch_basis="unknown"), rows.live_finding()), ended=["inventory-sync"]
    )
    assert [m["producerId"] for m in json.loads(document)["markers"]] == [3]
    assert len(left_out) == 1
    assert "orders-2, producer id 987654321" in left_out[0]


def test_start_that_is_not_exact_is_left_out_and_named() -> None:
    """The recorded epochs would end what began before, which nobody has seen."""
    document, left_out = write_txn_markers(plan_of(rows.finding(is_txn_start_exact=False)))
    assert json.loads(document) == {"markers": []}
    assert len(left_out) == 1
    assert "orders-2, producer id 987654321: its start is not exact" in left_out[0]


def test_producer_that_may_write_again_is_left_out_until_somebody_says_that_it_is_ended() -> None:
    """The request has no place for this condition, and an abort before it would destroy what the producer writes."""
    plan = plan_of(rows.live_finding(), rows.finding())
    document, left_out = write_txn_markers(plan)
    assert [marker["producerId"] for marker in json.loads(document)["markers"]] == [987654321]
    (line,) = left_out
    assert line.startswith("left out: payments-0, producer id 3: its producer may write there again")
    assert line.endswith("then say --fenced inventory-sync")
    assert write_txn_markers(plan, ended=["somebody-else"]) == (document, left_out)
    document, left_out = write_txn_markers(plan, ended=["inventory-sync"])
    assert [marker["producerId"] for marker in json.loads(document)["markers"]] == [3, 987654321]
    assert left_out == []


def test_ndjson_is_the_whole_plan_and_can_be_checked() -> None:
    plan = plan_of(rows.finding(transactional_id=EVIL), rows.live_finding())
    text = ndjson(plan)
    assert text.isascii()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [next(iter(line.items())) for line in lines] == [("schema_version", 2)] * 2
    read = [AbortRecord(**{k: v for k, v in line.items() if k != "schema_version"}) for line in lines]
    assert tuple(read) == plan
    assert read[0].plan_fingerprint == plan_fingerprint(read)
