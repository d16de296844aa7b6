"""A report for somebody outside: names become pseudonyms; numbers, times and enumerated words stay; all else goes.

A pseudonym is made of a name by a keyed hash (HMAC, RFC 2104): who has the key makes the same one of the same name in
each report, and who has not can neither undo it nor try names. What a text is, its field alone says: a name, or one of
the words that the field may have. No sentence of a run is printed, since any word of one may name something; what the
forms of a report say is made anew of what is left.
"""

from __future__ import annotations

import hmac
import re
from enum import Enum
from typing import Any

from pydantic import BaseModel

from txn_analysis.judge.causes import CAUSES
from txn_analysis.judge.early_warning import OPEN_TRANSACTION_NEAR_BOUND, WARNINGS
from txn_analysis.judge.rules import RULES
from txn_analysis.kafka import transactions
from txn_analysis.kafka.names import INTERNAL_TOPICS
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.report.model import AuditReport, Remedy, WarningItem
from txn_analysis.report.pictures import Pictures
from txn_analysis.report.upcoming import Risk, Upcoming
from txn_analysis.settings import Settings
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.tables.schema import COORDINATOR_EPOCH_BASES
from txn_analysis.verdict import Verdict

NOTICE = (
    "Anonymized: topics, transactional ids, groups, applications, clusters, captures, runs, files and people have "
    "pseudonyms, and commands are left out, and every sentence of the run. One name has one pseudonym in every report "
    "that is made with the same key, so that its reader can count and compare; without the key nobody can tell a name "
    "from a pseudonym, nor test a guess. Offsets, times, epochs, sizes and producer ids are as they are in the files: "
    "by them its sender finds what is meant, and so does everybody who may read the cluster."
)
LEFT_OUT = "(left out)"

_FIELDS = {
    "topic": "topic topics",
    "id": "transactional_id example",
    "group": "pending_groups waiting_groups",
    "application": "application subject",
    "cluster": "cluster",
    "capture": "capture earlier_captures forgotten_captures",
    "file": "path source",
    "person": "accepted_by",
    # Digests that anybody who guesses the names can make again.
    "run": "run_id first_run_id",
    "prune": "prune_id",
    "finding": "finding_id finding_ids new",
    "input": "input_id",
}
_KINDS = {field: kind for kind, fields in _FIELDS.items() for field in fields.split()}
_PLACES = frozenset(
    {"partitions_missing", "partitions", "doubtful_partitions", "oldest_partition", "worst_partition", "whom"}
)
_STATES = (transactions.EMPTY, *transactions.LIVE, *transactions.COMPLETED, "PrepareEpochFence", transactions.TOMBSTONE)
_BASES = ("given", "derived", "default", "newest_broker_timestamp", "last_timestamp", "broker_clock")
_OF_DUMPS = ("log_dump", "snapshot_dump", "aborted_txn_dump")
_INPUTS = (*_OF_DUMPS, "log_dir", "transaction_state_dump", "transaction_state_console")
_ENUMERATED = {
    "rule": {rule.name for rule in RULES},
    "name": {cause.name for cause in CAUSES},
    "coordinator_state": {*_STATES},
    "state": {*_STATES},
    "kind": {*ProblemKind, *(warning.kind for warning in WARNINGS), *_INPUTS},
    "outcome": {"COMMIT", "ABORT", "UNKNOWN"},
    "coordinator_epoch_basis": {*COORDINATOR_EPOCH_BASES},
} | {key: {*_BASES} for key in ("basis", "as_of_basis", "lateness_basis", "transaction_state_partitions_basis")}
"""By field the words that may stand in it; those of enumerations stand in any."""
_VERSIONS = re.compile(r"[0-9.+ ,-]+|binary|binary-verified|empty")
_KEYS = frozenset({*Settings.model_fields, *(verdict.value for verdict in Verdict)}) | {
    *("transaction_state_partitions_basis", "expected", "count", "used", "basis", "fitting", "fitting_count", "seen"),
    *("missing", "problems", "disproved", "newer", "partitions", "partition", "is_seen", "is_complete", "seen_to_ms"),
    *("undecodable", "misplaced_ids", "holes", "is_folder_whole"),
}
_DIGITS = 12


class Pseudonyms:
    """What names become under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of one name, such as `topic-3f9a0c41d2e8`; internal topics keep theirs."""
        if kind == "topic" and name in INTERNAL_TOPICS:
            return name
        digest = hmac.digest(self._key, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), "sha256")
        return f"{kind}-{digest.hex()[:_DIGITS]}"

    def of_place(self, place: str) -> str:
        """The same of a partition in Kafka's spelling, such as `orders-3`."""
        topic, _, number = place.rpartition("-")
        return f"{self.of('topic', topic)}-{number}" if topic and number.isdecimal() else self.of("name", place)

    def text(self, text: str, field: str) -> str | None:
        """What stands in a field in place of a text; None where nothing may."""
        if field in _KINDS:
            return self.of(_KINDS[field], text)
        if field in _PLACES:
            return self.of_place(text)
        if field in {"grammar", "fitting"}:
            return text if _VERSIONS.fullmatch(text) else None
        return text if {*text.split("+")} <= _ENUMERATED.get(field, set()) else None


def anonymized(report: AuditReport, pictures: Pictures | None, key: bytes) -> tuple[AuditReport, Pictures | None]:
    """The report and its pictures without names; its rows are in the order of the pseudonyms.

    Args:
        report: what was found.
        pictures: its series over time.
        key: of the keyed hash.
    """
    pseudonyms = Pseudonyms(key)
    anonymous: AuditReport = _without_names(report, pseudonyms)
    ordered = {
        "findings": anonymous.findings.worst_first(),
        "partitions": tuple(sorted(anonymous.partitions, key=lambda item: (item.topic, item.partition))),
        "inputs": tuple(sorted(anonymous.inputs, key=lambda item: item.path)),
    }
    ordered_report = anonymous.model_copy(update=ordered | {"anonymized": NOTICE})
    return ordered_report, None if pictures is None else _without_names(pictures, pseudonyms)


def _without_names(value: Any, pseudonyms: Pseudonyms, field: str = "") -> Any:
    """The same value, where each text is what its field may have; a list has no places for what it may not."""
    if isinstance(value, str) and not isinstance(value, Enum):
        made = pseudonyms.text(value, field)
        return LEFT_OUT if made is None else made
    if isinstance(value, dict):
        return {name: _without_names(part, pseudonyms, name) for name, part in value.items() if name in _KEYS}
    if isinstance(value, list | tuple | FindingRows) and not hasattr(value, "_fields"):
        parts = [part for part in (_without_names(one, pseudonyms, field) for one in value) if part != LEFT_OUT]
        return FindingRows.of(parts) if isinstance(value, FindingRows) else type(value)(parts)
    fields = _fields_of(value)
    if fields is None:
        return value
    parts_of = {name: _without_names(part, pseudonyms, name) for name, part in fields.items()}
    # Not a copy: that would take over what was worked out of the names.
    make = type(value).model_construct if isinstance(value, BaseModel) else type(value)
    return make(**parts_of | _of_its_kind(value, pseudonyms))


def _fields_of(value: Any) -> dict[str, Any] | None:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    return dict(zip(value._fields, value, strict=True)) if hasattr(value, "_fields") else None


def _of_its_kind(value: Any, pseudonyms: Pseudonyms) -> dict[str, str]:
    """What fields hold whose names do not say it."""
    if isinstance(value, Remedy):
        return {"missing": value.lack.value}
    if isinstance(value, Upcoming) and value.risk in {Risk.GROUP_STUCK, Risk.GROUP_NEAR}:
        return {"whom": pseudonyms.of("group", value.whom)}
    if isinstance(value, WarningItem) and value.kind == OPEN_TRANSACTION_NEAR_BOUND.kind:
        return {"subject": pseudonyms.of_place(value.subject)}
    return {}
