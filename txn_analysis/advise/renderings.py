"""The abort plan in the three forms in which it leaves the tool. Nothing here talks to a broker."""

from __future__ import annotations

import json
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Any

from txn_analysis.report.escape import escape
from txn_analysis.report.words import count, iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.advise.abort_plan import AbortRecord

BROKERS = '"$BROKERS"'
# KIP-1228: the first version of WriteTxnMarkers that carries the transaction version.
_FIRST_API_VERSION_WITH_TRANSACTION_VERSION = 2


def write_txn_markers(records: Sequence[AbortRecord], api_version: int = 1) -> tuple[str, list[str]]:
    """The plan as Kafka's `WriteTxnMarkersRequestData` JSON.

    Args:
        records: the plan.
        api_version: 0 for brokers before 2.8, 1 for 2.8 and newer, 2 adds `transactionVersion`.

    Returns:
        The document, one marker per producer id, producer epoch and coordinator epoch; and one line for each record
        that is left out because its coordinator epoch is unknown.
    """
    sendable = sorted((r for r in records if r.coordinator_epoch is not None), key=_marker_order)
    markers = [_marker(list(group), api_version) for _, group in groupby(sendable, key=_marker_key)]
    left_out = [
        f"left out: {r.topic_partition}, producer id {r.producer_id}: its coordinator epoch is unknown; "
        "audit a deep dump (--deep-iteration) or a producer snapshot of the partition"
        + (", or use the --start-offset form of --format commands" if r.is_txn_start_exact else "")
        for r in records
        if r.coordinator_epoch is None
    ]
    return json.dumps({"markers": markers}, indent=2) + "\n", left_out


def ndjson(records: Sequence[AbortRecord]) -> str:
    """One plan record a line, evidence included; ASCII only."""
    return "".join(json.dumps(record.model_dump(), ensure_ascii=True) + "\n" for record in records)


def commands(records: Sequence[AbortRecord], bootstrap: str = BROKERS) -> str:
    """A shell script of `kafka-transactions.sh abort` lines, each behind comments on what must hold first.

    `bootstrap` goes into the script as it is: by default a quoted shell variable.
    """
    if not records:
        return "# Nothing to abort: this run found no hanging transaction.\n"
    first = records[0]
    plan = f"Abort plan {escape(first.plan_fingerprint)} of run {escape(first.run_id)}"
    head = [
        f"# {plan}: {count(len(records), 'transaction')}.",
        "# Read the conditions above each command before you run it; BROKERS is host:port[,host:port...].",
    ]
    return "\n".join([*head, *(line for r in records for line in _command_lines(r, bootstrap))]) + "\n"


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


def _command_lines(record: AbortRecord, bootstrap: str) -> Iterator[str]:
    start = f"offset {record.txn_start_offset}" + ("" if record.is_txn_start_exact else " or below")
    yield ""
    yield (
        f"# {record.topic_partition} from {start}: producer id {record.producer_id}, "
        f"epoch {record.producer_epoch}; {escape(record.rule)}"
    )
    if record.transactional_id is not None:
        yield f"#   transactional id: {escape(record.transactional_id)}"
    yield f"#   not before {iso_utc(record.not_before_ms)}, not after {iso_utc(record.not_after_ms)}"
    yield f"#   check first: {escape(record.precondition)}"
    abort = _abort_words(record, bootstrap)
    if record.is_txn_start_exact:
        yield f"{abort} --start-offset {record.txn_start_offset}"
    if record.coordinator_epoch is not None:
        when = "brokers before 3.0" if record.is_txn_start_exact else "the start is not exact, so only by epochs"
        yield (
            f"#   {when}: {abort} --producer-id {record.producer_id} --producer-epoch {record.producer_epoch} "
            f"--coordinator-epoch {record.coordinator_epoch}"
        )
    elif not record.is_txn_start_exact:
        yield (
            "#   no command: neither the start offset nor the coordinator epoch is known from these files; "
            "audit a producer snapshot of the partition as well"
        )


def _abort_words(record: AbortRecord, bootstrap: str) -> str:
    return (
        f"kafka-transactions.sh --bootstrap-server {bootstrap} abort "
        f"--topic {shlex.quote(record.topic)} --partition {record.partition}"
    )
