"""Small histories in memory: a log is a list of batches, a coordinator a list of records; all else is as it should be.

Offsets count from 0 unless they are given. Batches are 100 bytes long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from txn_analysis.config import Settings
from txn_analysis.core.history import History
from txn_analysis.ingest.batches import Batches
from txn_analysis.ingest.grammar import TIMES
from txn_analysis.ingest.java_hash import java_hash, state_partition
from txn_analysis.ingest.line_form import ABSENT

Row = dict[str, Any]

BATCH_BYTES = 100
STATE_TOPIC = "__transaction_state"
_WORDS = {"marker": object, "is_transactional": bool, "is_control": bool, "is_contested": bool}
_DEFAULTS: Row = {
    "record_count": 1,
    "producer_id": ABSENT,
    "producer_epoch": ABSENT,
    "base_sequence": ABSENT,
    "last_sequence": ABSENT,
    "is_transactional": False,
    "is_control": False,
    "marker": None,
    "coordinator_epoch": ABSENT,
    "timestamp_type": TIMES.index("CreateTime"),
    "leader_epoch": 0,
    "delete_horizon_ms": ABSENT,
    "codec": 0,
    "is_valid": 1,
    "is_contested": False,
    "record_line_count": ABSENT,
}


def data(producer_id: int, at_ms: int, epoch: int = 0, **changes: Any) -> Row:
    """A batch of transactional data."""
    batch = {"producer_id": producer_id, "producer_epoch": epoch, "max_timestamp_ms": at_ms, "is_transactional": True}
    return batch | changes


def marker(producer_id: int, at_ms: int, word: str = "COMMIT", epoch: int = 0, **changes: Any) -> Row:
    """An end marker of the coordinator."""
    ended = data(producer_id, at_ms, epoch) | {"is_control": True, "marker": word, "coordinator_epoch": 0}
    return ended | changes


def record(transactional_id: str, state: str | None, producer_id: int | None, at_ms: int, **changes: Any) -> Row:
    """A record of the coordinator; a state of None is a tombstone."""
    return {
        "transactional_id": transactional_id,
        "state": state,
        "is_tombstone": state is None,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "timeout_ms": 60_000,
        "topic_partitions": [],
        "last_update_ms": at_ms,
        "recorded_ms": at_ms,
        "start_ms": None,
    } | changes


@dataclass
class World:
    """What was copied: logs by partition, records by partition of the state, or a console export of it."""

    settings: Settings = field(default_factory=lambda: Settings(transaction_state_partitions=1, max_clock_skew_ms=0))
    logs: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    states: dict[int, list[Row]] = field(default_factory=lambda: {0: []})
    export: list[Row] = field(default_factory=list)

    def history(self) -> History:
        """It as the core takes it."""
        parts = [_batches(place, log) for place, log in self.logs.items() if log]
        parts += [_batches((STATE_TOPIC, n), [_state_batch(r) for r in own]) for n, own in self.states.items() if own]
        sections = [
            _section(place, "log", len(log), log[0].get("offset", 0) if log else 0) for place, log in self.logs.items()
        ]
        sections += [_section((STATE_TOPIC, n), "state", len(own)) for n, own in self.states.items()]
        rows = [_state_row(n, offset, r) for n, own in self.states.items() for offset, r in enumerate(own)]
        if self.export:
            sections.append(
                _section(("export", 0), "console_json", len(self.export)) | {"topic": None, "partition": None}
            )
            newest_ms = max(r["last_update_ms"] or 0 for r in self.export)
            rows += [_exported(n, r, newest_ms) for n, r in enumerate(self.export)]
        return History(self.settings, sections, parts, (), rows)

    def record(self, row: Row) -> None:
        """Append a record to the partition of the state that its id hashes to."""
        number = state_partition(java_hash(row["transactional_id"]), self.settings.transaction_state_partitions)
        self.states[number].append(row)


def _input_id(place: tuple[str, int]) -> str:
    return f"{place[0]}-{place[1]}"


def _section(place: tuple[str, int], kind: str, batch_count: int, base_offset: int = 0) -> Row:
    return {
        "input_id": _input_id(place),
        "section_index": 0,
        "capture_rank": 0,
        "kind": kind,
        "topic": place[0],
        "partition": place[1],
        "file_base_offset": base_offset,
        "text_start_bytes": 0,
        "text_end_bytes": batch_count * BATCH_BYTES,
        "torn_bytes": 0,
        "is_start_proven": True,
        "is_end_proven": True,
        "input_problem": None,
        "has_batches": True,
        "grammar": "2.2+",
        "stated": None,
    }


def _batches(place: tuple[str, int], log: list[Row]) -> Batches:
    count = len(log)
    position = np.arange(count) * BATCH_BYTES
    offset = np.array([row.get("offset", n) for n, row in enumerate(log)])
    columns = {
        name: np.array([row.get(name, default) for row in log], _WORDS.get(name, np.int64))
        for name, default in _DEFAULTS.items()
    }
    columns |= {"base_offset": offset, "last_offset": offset, "crc": offset}
    columns |= {"position": position, "size_bytes": np.full(count, BATCH_BYTES)}
    columns |= {"text_start_bytes": position, "text_bytes": columns["size_bytes"]}
    columns["may_be_header_keys"] = np.zeros(count, bool)
    columns["max_timestamp_ms"] = np.array([row["max_timestamp_ms"] for row in log])
    where = {"ingest_id": "ingest", "input_id": _input_id(place), "section_index": 0}
    return Batches(where | {"topic": place[0], "partition": place[1]}, columns)


def _state_batch(row: Row) -> Row:
    kept = {name: row[name] for name in ("offset", "leader_epoch") if name in row}
    return {"max_timestamp_ms": row["recorded_ms"]} | kept


def _exported(number: int, row: Row, newest_ms: int) -> Row:
    """A console export prints neither offsets nor the times of appends."""
    known = {"state_partition": None, "offset": None, "recorded_ms": None, "is_after_gap": None}
    return _state_row(0, number, row) | known | {"input_id": "export-0", "input_moment_ms": newest_ms}


def _state_row(number: int, offset: int, row: Row) -> Row:
    place = {"input_id": _input_id((STATE_TOPIC, number)), "section_index": 0, "state_partition": number}
    return (
        {
            "previous_producer_id": None,
            "next_producer_id": None,
            "client_transaction_version": None,
            "ordinal": offset,
            "offset": offset,
            "is_after_gap": False,
            "is_undecodable": False,
            "transactional_id_hash": java_hash(row["transactional_id"]),
            "capture_rank": 0,
            "input_moment_ms": None,
        }
        | place
        | row
    )
