"""The abort markers that a run recommends: one validated record for each hanging transaction on a partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import pyarrow as pa
from pydantic import ValidationError
from pydantic_core import to_json

from txn_analysis.columns.values import Json
from txn_analysis.errors import AuditError
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.kafka.transactions import EXHAUSTED_EPOCH
from txn_analysis.settings import Settings
from txn_analysis.tables import ABORT_PLAN, AbortRecord, Finding
from txn_analysis.text import escape, json_in_ascii, shell_option
from txn_analysis.verdict import Verdict

_FINGERPRINT_BYTES = 16
_ROWS_AT_ONCE = 1_000
_ORDER = ("topic", "partition", "txn_start_offset", "producer_id")
_CANONICAL_ORDER = ("topic", "partition", "producer_id", "txn_start_offset")
"""Of the text that a fingerprint is of; plans of 1.0 have theirs by it."""
# What an id has in progress can use up two epochs when it ends (KAFKA-19367), before the fence takes one.
_LAST_EPOCH_TO_FENCE = EXHAUSTED_EPOCH - 3

# What a record says just as the finding does.
_AS_FOUND = (
    *("run_id", "finding_id", "topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch_basis"),
    *("txn_start_offset", "is_txn_start_exact", "last_timestamp_ms", "rule", "transactional_id"),
)


class Window(NamedTuple):
    """From when until when an abort may be sent; epoch milliseconds by the brokers' clocks."""

    not_before_ms: int
    not_after_ms: int


def window(
    appended_before_ms: int | None, as_of_ms: int | None, *, late_after_ms: int, plan_valid_ms: int
) -> Window | None:
    """When the abort of one hanging transaction may be sent; None where no broker's clock dates it.

    Args:
        appended_before_ms: the broker's moment before which its last record was appended.
        as_of_ms: the moment at which the files were copied.
        late_after_ms: how long a transaction may be idle before it is late (KIP-664).
        plan_valid_ms: how long a plan holds.
    """
    base_ms = as_of_ms if appended_before_ms is None else appended_before_ms
    if base_ms is None:
        return None
    not_before_ms = base_ms + late_after_ms
    return Window(not_before_ms, max(not_before_ms, as_of_ms or 0) + plan_valid_ms)


def abort_plan(findings: Iterable[Finding], settings: Settings, as_of_ms: int | None) -> tuple[AbortRecord, ...]:
    """The `abort_plan` table of one run.

    Args:
        findings: those of one run; only the hanging ones give a record.
        settings: `transaction_max_timeout_ms` and `plan_valid_ms` make the time window.
        as_of_ms: the moment at which the files were copied; epoch milliseconds.

    Returns:
        One record for each hanging finding, sorted by topic, partition, start and producer id, all with the same
        fingerprint over the whole plan.

    Raises:
        AuditError: a hanging finding cannot become a valid record. It is named; nothing is left out silently.
    """
    return fingerprinted(planned(findings, settings, as_of_ms))


def planned(findings: Iterable[Finding], settings: Settings, as_of_ms: int | None) -> list[AbortRecord]:
    """The same of some findings of a run, in their order and without a fingerprint."""
    return [_record(finding, settings, as_of_ms) for finding in findings if finding.verdict is Verdict.HANGING]


def whole_plan(rows: Iterable[pa.RecordBatch]) -> pa.Table:
    """Rows of `abort_plan`, without a fingerprint, as one plan: see `fingerprinted`."""
    plan = _sorted(pa.Table.from_batches(rows, ABORT_PLAN.arrow_schema), _CANONICAL_ORDER)
    place = plan.schema.get_field_index("plan_fingerprint")
    printed = plan.select(sorted({*plan.column_names} - {"plan_fingerprint"}))
    records = (batch.to_pylist() for batch in printed.to_batches(_ROWS_AT_ONCE))
    fingerprint = pa.repeat(_fingerprint_of(records), len(plan))
    return _sorted(plan.set_column(place, plan.schema.field(place), fingerprint), _ORDER)


def _sorted(plan: pa.Table, names: Sequence[str]) -> pa.Table:
    return plan.sort_by([(name, "ascending") for name in names])


def shown_once_fenced(finding: Finding) -> str:
    """What `describe` of its id shows once its producer is fenced.

    A fence raises the epoch. Where the epochs are used up, it gives the id another producer id, at epoch 0
    (`TransactionCoordinator.initProducerId`), and no epoch above the recorded one ever appears.
    """
    epoch = finding.producer_epoch
    epochs = epoch or 0, finding.coordinator_producer_epoch or 0
    is_another = finding.coordinator_producer_id not in {None, finding.producer_id}
    may_be_another = is_another or max(epochs) > _LAST_EPOCH_TO_FENCE
    return f"an epoch above {epoch}{another_producer_id(finding) if may_be_another else ''}"


def another_producer_id(planned: Finding | AbortRecord) -> str:
    """The other sign of a fence, as a `precondition` has it where it can come."""
    return f" (or another producer id than {planned.producer_id})"


def why_not_by_epochs(record: AbortRecord) -> str:
    """Why the recorded epochs cannot be sent, and what would settle it."""
    if record.is_txn_start_exact:
        return "its coordinator epoch is unknown; audit a deep dump (--deep-iteration) or a producer snapshot"
    return (
        "its start is not exact, so that the recorded epochs could end more than was seen; audit older files or a "
        "producer snapshot"
    )


def fingerprinted(records: Iterable[AbortRecord]) -> tuple[AbortRecord, ...]:
    """The records as one plan: sorted by topic, partition, start and producer id, each with the plan's fingerprint."""
    ordered = sorted(records, key=attrgetter(*_ORDER))
    if not ordered:
        return ()
    fingerprint = plan_fingerprint(ordered)
    return tuple(record.model_copy(update={"plan_fingerprint": fingerprint}) for record in ordered)


def plan_fingerprint(records: Iterable[AbortRecord]) -> str:
    """blake2b-128 of the canonical JSON of all records, without their `plan_fingerprint`; order does not matter.

    Canonical: a list sorted by topic, partition, producer id and start; keys sorted; no blanks; ASCII.
    """
    ordered = sorted(records, key=attrgetter(*_CANONICAL_ORDER))
    dumped = (record.model_dump(exclude={"plan_fingerprint"}) for record in ordered)
    return _fingerprint_of([[dict(sorted(row.items())) for row in dumped]])


def _fingerprint_of(some_at_a_time: Iterable[list[dict[str, Json]]]) -> str:
    """Of records whose keys are sorted."""
    digest = hashlib.blake2b(digest_size=_FINGERPRINT_BYTES)
    for place, records in enumerate(filter(None, some_at_a_time)):
        text = json_in_ascii(to_json(records).decode())
        digest.update(f"{',' if place else '['}{text[1:-1]}".encode("ascii"))
    digest.update(b"]")
    return digest.hexdigest()


def _record(finding: Finding, settings: Settings, as_of_ms: int | None) -> AbortRecord:
    late_after_ms, valid_ms = settings.late_after_ms, settings.plan_valid_ms
    dates = window(finding.appended_before_ms, as_of_ms, late_after_ms=late_after_ms, plan_valid_ms=valid_ms)
    if dates is None:
        raise AuditError(
            f"{_name(finding)} has no broker's time at all, so no abort can be dated: give --as-of and run audit again"
        )
    # Kafka's own tool sends 0 where the partition has seen no marker; any leader epoch is at least that.
    coordinator_epoch = 0 if finding.coordinator_epoch_basis == "none_seen" else finding.coordinator_epoch
    evidence = {name: getattr(finding, name) for name in _AS_FOUND}
    try:
        return AbortRecord.model_validate(
            evidence
            | {
                "plan_fingerprint": "",
                "coordinator_epoch": coordinator_epoch,
                "transaction_result": False,
                "transaction_version": 0,
                "evidence": list(finding.evidence),
                **dates._asdict(),
                "producer_is_live": finding.is_producer_live,
                "producer_may_return": finding.producer_may_return,
                "precondition": _precondition(finding),
            }
        )
    except ValidationError as error:
        fields = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'record'}: {e['msg']}" for e in error.errors())
        raise AuditError(f"{_name(finding)} cannot become an abort marker: {escape(fields)}") from error


def _name(finding: Finding) -> str:
    where = f"{finding.topic}-{finding.partition}"
    return f"hanging transaction on {escape(where)} (producer id {finding.producer_id})"


def _precondition(finding: Finding) -> str:
    topic, partition, epoch = finding.topic, finding.partition, finding.producer_epoch
    start, last_ms = finding.txn_start_offset, finding.last_timestamp_ms
    lookup = (
        f"a fresh `{TRANSACTIONS} describe-producers {shell_option('--topic', topic)} --partition {partition}` "
        f"must show producer id {finding.producer_id} with epoch {epoch} and CurrentTransactionStartOffset {start}"
        + ("" if last_ms is None else f", and no LastTimestamp after {last_ms}")
    )
    if not finding.must_end_producer or finding.transactional_id is None:
        return lookup
    describe = shell_option("--transactional-id", finding.transactional_id)
    return (
        "first end the producer, which may come back and write into the open transaction: stop its application, let "
        f"what its id has in progress end, and fence the id. Then "
        f"a fresh `{TRANSACTIONS} describe {describe}` must show {shown_once_fenced(finding)} and "
        f"not list {escape(topic)}-{partition}, and {lookup}. Then abort with the recorded epochs, never by "
        "--start-offset, which takes whatever epoch it finds"
    )
