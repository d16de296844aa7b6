"""A plan on its way to whoever executes it: as Kafka's own request, as one record a line, and checked before use."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

from pydantic import JsonValue, ValidationError

from txn_analysis.errors import AuditError
from txn_analysis.kafka.address import Address
from txn_analysis.kafka.names import TRANSACTIONS
from txn_analysis.plan.abort_plan import another_producer_id, fingerprinted, plan_fingerprint, why_not_by_epochs
from txn_analysis.plan.script import fence_with_kafkas_tool
from txn_analysis.tables import AbortRecord
from txn_analysis.text import SCHEMA_DIALECT, clip, count, escape, iso_utc, shell_option

_MAY_DIFFER = {"plan_fingerprint"}  # a part of a plan has a fingerprint of its own

_NOT_OF_THE_RECORD = {"schema_version"}
_LONGEST_SAID = 200


class PlanLine(AbortRecord):
    """One line of `--format ndjson`: a record, and which version of its fields it has."""

    schema_version: Literal[2]


@dataclass(frozen=True)
class Part:
    """Which records of a plan are wanted; None, or an empty tuple, asks for all."""

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    max_records: int | None = None
    addresses: tuple[Address, ...] = ()

    def __post_init__(self) -> None:
        """Refuses a partition without its topic.

        Raises:
            AuditError: a bare number names a partition of every topic.
        """
        if self.partitions and not self.topics:
            raise AuditError("--partition needs --topic: say of which topic")

    def of(self, records: Iterable[AbortRecord]) -> tuple[AbortRecord, ...]:
        """The wanted records, the first ones in the order of the plan, as a plan with a fingerprint of its own.

        Raises:
            AuditError: an address is of no abort of the plan.
        """
        records = [*records]
        planned = {*map(Address.of_transaction, records)}
        for address in self.addresses:
            if address not in planned:
                raise AuditError(f"{escape(str(address))}: the plan has no abort of it; `explain` says what it is")
        return fingerprinted(islice(filter(self._is_wanted, records), self.max_records))

    def _is_wanted(self, record: AbortRecord) -> bool:
        return (
            (not self.addresses or Address.of_transaction(record) in self.addresses)
            and (not self.topics or record.topic in self.topics)
            and (not self.partitions or record.partition in self.partitions)
            and (not self.transactional_ids or record.transactional_id in self.transactional_ids)
        )


def check_size(records: Sequence[AbortRecord], most_partitions: int) -> None:
    """Refuses a plan that nobody can have meant.

    Raises:
        AuditError: it has markers for more partitions than that.
    """
    partitions = len({(record.topic, record.partition) for record in records})
    if partitions > most_partitions:
        raise AuditError(
            f"the plan is for {count(partitions, 'partition')}, more than plan_max_partitions ({most_partitions}): so "
            "many at once are rather a wrong setting or an incomplete copy. Look at the findings, then send a part "
            "(--topic, --transactional-id, --max-records), or say --yes-many"
        )


def record_schema() -> dict[str, JsonValue]:
    """The JSON schema of one line of `--format ndjson`; the descriptions are those of the table `abort_plan`."""
    # Spark's types take a second to import, which the other functions here do without.
    from txn_analysis.tables import ABORT_PLAN  # noqa: PLC0415

    schema = PlanLine.model_json_schema()
    schema["properties"]["schema_version"]["description"] = "version of these fields; docs/data-formats.md says which"
    schema["required"] = ["schema_version", *(name for name in schema["required"] if name != "schema_version")]
    for column in ABORT_PLAN.columns:
        schema["properties"][column.name]["description"] = column.comment
    return {"$schema": SCHEMA_DIALECT} | schema | {"description": AbortRecord.__doc__}


def read_plan(text: str, name: str) -> tuple[AbortRecord, ...]:
    """The records of a file that `--format ndjson` printed.

    Raises:
        AuditError: it is no such file, or of another version, or not one byte for byte: its records, its order or its
            spelling were changed.
    """
    lines = text.splitlines(keepends=True)
    if not lines:
        raise AuditError(f"{name}: holds no record, so there is nothing to execute")
    records = tuple(_record(line, f"{name}, line {number}") for number, line in enumerate(lines, 1))
    stated, computed = records[0].plan_fingerprint, plan_fingerprint(records)
    if stated != computed:
        raise AuditError(f"{name}: changed: its records give the fingerprint {computed}, it says {escape(stated)}")
    if ndjson(fingerprinted(records)) != text:
        # A key twice, or other spelling: another reader could take it for something else.
        raise AuditError(f"{name}: changed: it is not written as `--format ndjson` writes its records")
    return records


def _record(line: str, where: str) -> AbortRecord:
    try:
        read = PlanLine.model_validate_json(line)
    except ValidationError as error:
        for wrong in error.errors():
            if wrong["loc"] == ("schema_version",) and wrong["type"] == "literal_error":
                version = clip(str(wrong["input"]), _LONGEST_SAID)
                raise AuditError(
                    f"{where}: has schema_version {version}, which this version does not read: audit again"
                ) from error
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'it'}: {e['msg']}" for e in error.errors())
        raise AuditError(
            f"{where}: is no record of a plan ({clip(faults, _LONGEST_SAID)}). Only what `abort-plan --format ndjson` "
            "prints can be checked"
        ) from error
    return AbortRecord.model_validate(read.model_dump(exclude=_NOT_OF_THE_RECORD))


def check_time(records: Sequence[AbortRecord], now_ms: int, name: str) -> None:
    """Refuses a plan of which a record is too old to be executed.

    Raises:
        AuditError: what was true when the files were copied may have changed since.
    """
    ends_ms = min(record.not_after_ms for record in records)
    if now_ms > ends_ms:
        raise AuditError(f"{name}: expired at {iso_utc(ends_ms)}: copy the logs again, audit, and print a new plan")


def check_against(records: Sequence[AbortRecord], stored: Sequence[AbortRecord], name: str) -> None:
    """Refuses a plan with a record that its run never recommended in this form.

    Raises:
        AuditError: someone changed it, and its fingerprint as well.
    """
    known = [record.model_dump(exclude=_MAY_DIFFER) for record in stored]
    for record in records:
        if record.model_dump(exclude=_MAY_DIFFER) not in known:
            raise AuditError(
                f"{name}: run {escape(record.run_id)} recommends no such abort of {record.topic_partition}, "
                f"producer id {record.producer_id}"
            )


def what_was_checked(records: Sequence[AbortRecord], now_ms: int, max_timeout_ms: int | None = None) -> str:
    """What is said of a plan that may be executed: from when on, and which producers must be ended first, and how."""
    first = records[0]
    early = [record.not_before_ms for record in records if record.not_before_ms > now_ms]
    wait = f"; {len(early)} of them not before {iso_utc(max(early))}" if early else ""
    until = iso_utc(min(record.not_after_ms for record in records))
    checked = (
        f"plan {first.plan_fingerprint} of run {escape(first.run_id)}: {count(len(records), 'record')}, unchanged, "
        f"valid until {until}{wait}"
    )
    return "".join(f"{line}\n" for line in (checked, *producers_to_end(records, max_timeout_ms)))


def producers_to_end(records: Iterable[AbortRecord], max_timeout_ms: int | None = None) -> list[str]:
    """One line for each record whose producer must be ended before it is sent.

    Args:
        records: of the plan.
        max_timeout_ms: transaction.max.timeout.ms of the brokers, above which they refuse a tool's own timeout.
    """
    return [_producer_to_end(record, max_timeout_ms) for record in records if record.must_end_producer]


def _producer_to_end(record: AbortRecord, max_timeout_ms: int | None) -> str:
    transactional_id = str(record.transactional_id)
    fence = fence_with_kafkas_tool(transactional_id, max_timeout_ms)
    another = another_producer_id(record)
    return (
        f"first end the producer of {record.topic_partition}, transactional id {escape(transactional_id)}: what it "
        f"writes there before the abort would be lost. Stop its application, and let what it has in progress end. Then "
        f"fence its id, by a line that goes on only where nothing is in progress: `{fence.line}` "
        f"({fence.needs}; the runbook has lines for older ones). Then a fresh "
        f"`{TRANSACTIONS} describe {shell_option('--transactional-id', transactional_id)}` must show an epoch above "
        f"{record.producer_epoch}{another if another in record.precondition else ''} and not list the partition"
    )


def check_printed(records: Sequence[AbortRecord], now_ms: int) -> None:
    """Refuses to print a plan of which a record is too old to be executed.

    Raises:
        AuditError: what was true when the files were copied may have changed since.
    """
    if late := expired(records, now_ms):
        raise AuditError(f"{late[0]}, or print the plan as it was with --expired")


def check_ended(records: Iterable[AbortRecord], ended: Iterable[str]) -> None:
    """Refuses a transactional id that stands in no record whose producer must be ended: a slip would look like a plan.

    Raises:
        AuditError: the id, and those that would fit.
    """
    wanted = sorted({str(record.transactional_id) for record in records if record.must_end_producer})
    for name in ended:
        if name not in wanted:
            fitting = f"it needs {', '.join(map(escape, wanted))} ended" if wanted else "it needs no producer ended"
            raise AuditError(f"--fenced {escape(name)}: the plan does not ask for this; {fitting}")


def expired(records: Iterable[AbortRecord], now_ms: int) -> list[str]:
    """One line where a part of a plan is out of date."""
    ended = [record.not_after_ms for record in records if record.not_after_ms < now_ms]
    if not ended:
        return []
    late = f"{count(len(ended), 'record')} of the plan expired, the first at {iso_utc(min(ended))}"
    return [f"{late}: copy the files and audit again"]


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
    sendable = sorted(
        (record for record, reason in looked_at if reason is None),
        key=lambda record: (_marker_key(record), record.topic, record.partition),
    )
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


def _why_left_out(record: AbortRecord, ended: Collection[str]) -> str | None:
    """Why a record must not be sent by its epochs as it stands; None where it may be."""
    if not record.is_sendable_by_epochs:
        other_form = "" if record.must_end_producer else ", or use the --start-offset form of --format commands"
        return why_not_by_epochs(record) + other_form
    if record.must_end_producer and record.transactional_id not in ended:
        return (
            "its producer may write there again, and an abort would destroy that as well; stop its application, let "
            f"what is in progress end, fence its id, then say {shell_option('--fenced', str(record.transactional_id))}"
        )
    return None


def _marker_key(record: AbortRecord) -> tuple[int, int, int]:
    return record.producer_id, record.producer_epoch, record.coordinator_epoch or 0


def _marker(records: list[AbortRecord], api_version: int) -> dict[str, JsonValue]:
    first = records[0]
    topics: list[JsonValue] = [
        {"name": topic, "partitionIndexes": [*sorted({record.partition for record in group})]}
        for topic, group in groupby(records, key=lambda record: record.topic)
    ]
    marker: dict[str, JsonValue] = {
        "producerId": first.producer_id,
        "producerEpoch": first.producer_epoch,
        "transactionResult": first.transaction_result,
        "topics": topics,
        "coordinatorEpoch": first.coordinator_epoch,
    }
    if api_version >= _FIRST_API_VERSION_WITH_TRANSACTION_VERSION:
        marker["transactionVersion"] = first.transaction_version
    return marker
