"""The abort plan as data: Kafka's own request, and one record a line. The script is in `plan/script.py`."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.plan.abort_plan import AbortRecord

# KIP-1228: the first version of WriteTxnMarkers that carries the transaction version.
_FIRST_API_VERSION_WITH_TRANSACTION_VERSION = 2


def write_txn_markers(records: Sequence[AbortRecord], api_version: int = 1) -> tuple[str, list[str]]:
    """The plan as Kafka's `WriteTxnMarkersRequestData` JSON.

    Args:
        records: the plan.
        api_version: 0 for brokers before 2.8, 1 for 2.8 and newer, 2 adds `transactionVersion`.

    Returns:
        The document, one marker per producer id, producer epoch and coordinator epoch; and one line for each record
        that is left out, with the reason.
    """
    sendable = sorted(filter(lambda r: r.is_sendable_by_epochs, records), key=_marker_order)
    markers = [_marker(list(group), api_version) for _, group in groupby(sendable, key=_marker_key)]
    left_out = [_left_out(record) for record in records if not record.is_sendable_by_epochs]
    return json.dumps({"markers": markers}, indent=2) + "\n", left_out


def ndjson(records: Sequence[AbortRecord]) -> str:
    """One plan record a line, evidence included; ASCII only."""
    return "".join(json.dumps(record.model_dump(), ensure_ascii=True) + "\n" for record in records)


def why_not_by_epochs(record: AbortRecord) -> str:
    """Why the recorded epochs cannot be sent, and what would settle it."""
    if record.is_txn_start_exact:
        return "its coordinator epoch is unknown; audit a deep dump (--deep-iteration) or a producer snapshot"
    return (
        "its start is not exact, so that the recorded epochs could end more than was seen; audit older files or a "
        "producer snapshot"
    )


def _left_out(record: AbortRecord) -> str:
    other_form = "" if record.must_end_producer else ", or use the --start-offset form of --format commands"
    return (
        f"left out: {record.topic_partition}, producer id {record.producer_id}: {why_not_by_epochs(record)}{other_form}"
    )


def _marker_key(record: AbortRecord) -> tuple[int, int, int]:
    return record.producer_id, record.producer_epoch, record.coordinator_epoch or 0


def _marker_order(record: AbortRecord) -> tuple[tuple[int, int, int], str, int]:
    return _marker_key(record), record.topic, record.partition


def _marker(records: list[AbortRecord], api_version: int) -> dict[str, Any]:
    first = records[0]
    topics = [
        {"name": topic, "partitionIndexes": sorted({record.partition for record in group})}
        for topic, group in groupby(records, key=lambda record: record.topic)
    ]
    marker = {
        "producerId": first.producer_id,
        "producerEpoch": first.producer_epoch,
        "transactionResult": first.transaction_result,
        "topics": topics,
        "coordinatorEpoch": first.coordinator_epoch,
    }
    if api_version >= _FIRST_API_VERSION_WITH_TRANSACTION_VERSION:
        marker["transactionVersion"] = first.transaction_version
    return marker
