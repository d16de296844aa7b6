"""The abort plan as data: Kafka's own request, and one record a line. The script is in `plan/script.py`."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from txn_analysis.text.escape import shell_option

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from txn_analysis.plan.abort_plan import AbortRecord

PLAN_SCHEMA_VERSION = 2
"""Of one line of ndjson; lines of version 1 did not say theirs. What makes it grow: docs/data-formats.md."""

# KIP-1228: the first version of WriteTxnMarkers that carries the transaction version.
_FIRST_API_VERSION_WITH_TRANSACTION_VERSION = 2


def write_txn_markers(
    records: Sequence[AbortRecord], api_version: int = 1, ended: Collection[str] = ()
) -> tuple[str, list[str]]:
    """The plan as Kafka's `WriteTxnMarkersRequestData` JSON.

    Args:
        records: the plan.
        api_version: 0 for brokers before 2.8, 1 for 2.8 and newer, 2 adds `transactionVersion`.
        ended: transactional ids whose producers somebody stopped and fenced.

    Returns:
        The document, one marker per producer id, producer epoch and coordinator epoch; and one line for each record
        that is left out, with the reason: the document has no place for what must be true before it is sent.
    """
    looked_at = [(record, _why_left_out(record, ended)) for record in records]
    sendable = sorted((record for record, reason in looked_at if reason is None), key=_marker_order)
    markers = [_marker(list(group), api_version) for _, group in groupby(sendable, key=_marker_key)]
    left_out = [
        f"left out: {record.topic_partition}, producer id {record.producer_id}: {reason}"
        for record, reason in looked_at
        if reason is not None
    ]
    return json.dumps({"markers": markers}, indent=2) + "\n", left_out


def ndjson(records: Sequence[AbortRecord]) -> str:
    """One plan record a line, its `schema_version` first, evidence included; ASCII only."""
    version = {"schema_version": PLAN_SCHEMA_VERSION}
    return "".join(json.dumps(version | record.model_dump(), ensure_ascii=True) + "\n" for record in records)


def why_not_by_epochs(record: AbortRecord) -> str:
    """Why the recorded epochs cannot be sent, and what would settle it."""
    if record.is_txn_start_exact:
        return "its coordinator epoch is unknown; audit a deep dump (--deep-iteration) or a producer snapshot"
    return (
        "its start is not exact, so that the recorded epochs could end more than was seen; audit older files or a "
        "producer snapshot"
    )


def _why_left_out(record: AbortRecord, ended: Collection[str]) -> str | None:
    """Why a record must not be sent by its epochs as it stands; None where it may be."""
    if not record.is_sendable_by_epochs:
        other_form = "" if record.must_end_producer else ", or use the --start-offset form of --format commands"
        return why_not_by_epochs(record) + other_form
    if record.must_end_producer and record.transactional_id not in ended:
        return (
            "its producer may write there again, and an abort would destroy that as well; stop its application, fence "
            f"its id, then say {shell_option('--ended', str(record.transactional_id))}"
        )
    return None


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
