"""Small histories in memory: a log is a list of batches, a coordinator a list of records; all else is as it should be.

Offsets count from 0 unless they are given. Batches are 100 bytes long.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.tools.stories.history import History
from txn_analysis.columns.arrays import ABSENT
from txn_analysis.kafka.names import TIMES, java_hash, state_partition
from txn_analysis.settings import Settings
from txn_analysis.tables.batches import Batches, BatchPlace
from txn_analysis.tables.inputs import Manifest

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


@dataclass(frozen=True)
class File:
    """One more file of a partition: another segment, another broker's copy, or one of an earlier capture.

    Offsets count from `base_offset`, the number in its name, unless rows have their own. `rank` is that of its capture
    (0 is the judged one); `folder` the log directory that it lies in, where no dump was made of it.
    """

    place: tuple[str, int]
    rows: list[Row]
    base_offset: int = 0
    rank: int = 0
    folder: str | None = None
    name: str = "more"

    @property
    def kind(self) -> str:
        """Of the log of a partition, or of one of the state."""
        return "state" if self.place[0] == STATE_TOPIC else "log"

    @property
    def placed(self) -> list[Row]:
        """Its rows with their offsets."""
        return [{"offset": self.base_offset + n} | row for n, row in enumerate(self.rows)]

    @property
    def input_id(self) -> str:
        """Which input it is."""
        return f"{_input_id(self.place)}, {self.name}, {self.base_offset}, {self.rank}"

    def section(self) -> Row:
        """Its row of `Evidence.sections`."""
        section = _section(self.place, self.kind, len(self.rows), self.base_offset)
        return section | {"input_id": self.input_id, "capture_rank": self.rank, "log_dir": self.folder}

    def batches(self) -> Batches:
        """What it holds."""
        rows = [_state_batch(row) for row in self.placed] if self.kind == "state" else self.placed
        return _batches(self.place, rows, self.input_id)

    def records(self) -> list[Row]:
        """Its rows of `transaction_states`."""
        known = {"input_id": self.input_id, "capture_rank": self.rank}
        return [_state_row(self.place[1], row["offset"], row) | known for row in self.placed if self.kind == "state"]


@dataclass(frozen=True)
class Snapshot:
    """One producer snapshot; `open_from` has the start of each open transaction, None for a producer without one."""

    place: tuple[str, int]
    offset: int
    open_from: dict[int, int | None]

    def section(self) -> Row:
        """Its row of `Evidence.sections`."""
        section = _section(self.place, "snapshot", 0, self.offset)
        return section | {"input_id": f"{_input_id(self.place)}, snapshot {self.offset}"}

    def rows(self) -> list[Row]:
        """Its rows of `producer_snapshots`."""
        known = {"topic": self.place[0], "partition": self.place[1], "snapshot_offset": self.offset}
        unknown = dict.fromkeys(("coordinator_epoch", "last_timestamp_ms", "last_sequence", "last_offset"))
        place = {name: self.section()[name] for name in ("input_id", "section_index", "capture_rank")}
        return [
            known | unknown | place | {"producer_id": i, "producer_epoch": 0, "current_txn_start_offset": start}
            for i, start in self.open_from.items()
        ]


@dataclass(frozen=True)
class Described:
    """One answer to DescribeProducers beside a log that was fetched; `producers` are rows of `producer_snapshots`."""

    place: tuple[str, int]
    first_offset: int
    high_watermark: int
    producers: list[Row]

    def section(self) -> Row:
        """Its row of `Evidence.sections`."""
        section = _section(self.place, "described_producers", 0, self.first_offset)
        return section | {"input_id": f"{_input_id(self.place)}, described", "stated": str(self.high_watermark)}

    def rows(self) -> list[Row]:
        """Its rows of `producer_snapshots`."""
        known = {"topic": self.place[0], "partition": self.place[1], "snapshot_offset": self.first_offset}
        known |= {name: self.section()[name] for name in ("input_id", "section_index", "capture_rank")}
        return [
            known | dict.fromkeys(("last_timestamp_ms", "last_sequence", "last_offset")) | p for p in self.producers
        ]


@dataclass
class World:
    """What was copied: logs by partition, records by partition of the state, or a console export of it.

    Attributes:
        settings: as for the audit.
        logs: of each partition the one file that a dump holds, named 0 unless its first batch has another offset.
        states: the same of the partitions of the state.
        export: records that a console consumer printed.
        is_export_text: it printed them as text, else as JSON.
        files: what else was copied.
        snapshots: of producers, beside the logs.
        described: answers to DescribeProducers, beside logs that were fetched.
        high_watermarks: by folder and partition, what the folder's checkpoint says.
        cluster_ids: of the folders' `meta.properties`.
        cluster_id: what a `meta.properties` beside every file states.
        epoch_starts: by partition, the newest leader epoch of its `leader-epoch-checkpoint`, and where that begins.
        manifests: what is said of the copying.
    """

    settings: Settings = field(default_factory=lambda: Settings(transaction_state_partitions=1, max_clock_skew_ms=0))
    logs: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    states: dict[int, list[Row]] = field(default_factory=lambda: {0: []})
    export: list[Row] = field(default_factory=list)
    is_export_text: bool = False
    files: list[File] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    described: list[Described] = field(default_factory=list)
    high_watermarks: dict[tuple[str, tuple[str, int]], int] = field(default_factory=dict)
    cluster_ids: list[str] = field(default_factory=list)
    cluster_id: str | None = None
    epoch_starts: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    manifests: list[Manifest] = field(default_factory=list)

    def history(self) -> History:
        """It as the core takes it."""
        parts = [_batches(place, log) for place, log in self.logs.items() if log]
        parts += [_batches((STATE_TOPIC, n), [_state_batch(r) for r in own]) for n, own in self.states.items() if own]
        parts += [file.batches() for file in self.files if file.rows]
        sections = [
            _section(place, "log", len(log), log[0].get("offset", 0) if log else 0) for place, log in self.logs.items()
        ]
        sections += [_section((STATE_TOPIC, n), "state", len(own)) for n, own in self.states.items()]
        sections += [file.section() for file in self.files] + [snapshot.section() for snapshot in self.snapshots]
        sections += [each.section() for each in self.described]
        sections += [_marked(folder, place, mark) for (folder, place), mark in self.high_watermarks.items()]
        sections += [_of_cluster(stated) for stated in self.cluster_ids]
        sections += [_epoch_start(place, *newest) for place, newest in self.epoch_starts.items()]
        sections = [section | {"cluster_id": self.cluster_id} for section in sections]
        rows = [_state_row(n, offset, r) for n, own in self.states.items() for offset, r in enumerate(own)]
        rows += [row for file in self.files for row in file.records()]
        if self.export:
            of_cluster = {"topic": None, "partition": None, "cluster_id": self.cluster_id}
            kind = "console_text" if self.is_export_text else "console_json"
            sections.append(_section(("export", 0), kind, len(self.export)) | of_cluster)
            newest_ms = max(r["last_update_ms"] or 0 for r in self.export)
            rows += [_exported(n, r, newest_ms) for n, r in enumerate(self.export)]
        taken = [row for snapshot in self.snapshots for row in snapshot.rows()]
        taken += [row for each in self.described for row in each.rows()]
        return History(self.settings, sections, parts, taken, rows, self.manifests)

    def record(self, row: Row) -> None:
        """Append a record to the partition of the state that its id hashes to."""
        count = self.settings.transaction_state_partitions or len(self.states)
        self.states[state_partition(java_hash(row["transactional_id"]), count)].append(row)


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
        "grammar": "2.2+",
        "stated": None,
        "log_dir": None,
    }


def _marked(folder: str, place: tuple[str, int], offset: int) -> Row:
    section = _section(place, "high_watermark", 0, offset)
    return section | {"input_id": f"{folder}, checkpoint", "log_dir": folder}


def _epoch_start(place: tuple[str, int], epoch: int, offset: int) -> Row:
    section = _section(place, "leader_epoch", 0, offset)
    return section | {"input_id": f"{_input_id(place)}, leader-epoch-checkpoint", "stated": str(epoch)}


def _of_cluster(stated: str) -> Row:
    section = _section(("meta", 0), "cluster_id", 0)
    unplaced = {"topic": None, "partition": None}
    return section | unplaced | {"input_id": f"meta.properties of {stated}", "stated": stated}


def _batches(place: tuple[str, int], log: list[Row], input_id: str | None = None) -> Batches:
    count = len(log)
    position = np.arange(count) * BATCH_BYTES
    offset = np.array([row.get("offset", n) for n, row in enumerate(log)])
    columns = {
        name: np.array([row.get(name, default) for row in log], _WORDS.get(name, np.int64))
        for name, default in _DEFAULTS.items()
    }
    columns |= {"base_offset": offset, "last_offset": offset}
    columns["crc"] = np.array([row.get("crc", at) for row, at in zip(log, offset, strict=True)])
    columns |= {"position": position, "size_bytes": np.full(count, BATCH_BYTES)}
    columns |= {"text_start_bytes": position, "text_bytes": columns["size_bytes"]}
    columns["may_be_header_keys"] = np.zeros(count, bool)
    columns["max_timestamp_ms"] = np.array([row["max_timestamp_ms"] for row in log])
    return Batches(BatchPlace("ingest", input_id or _input_id(place), 0, *place), columns)


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
            "batch_base_offset": row.get("offset", offset),
            "batch_last_offset": row.get("offset", offset),
            "leader_epoch": 0,
            "is_undecodable": False,
            "transactional_id_hash": None if row["transactional_id"] is None else java_hash(row["transactional_id"]),
            "capture_rank": 0,
            "input_moment_ms": None,
        }
        | place
        | row
    )


_SAID = ("state", "producer_id", "producer_epoch", "timeout_ms", "last_update_ms", "start_ms")


def undecoded(row: Row, *, is_key_read: bool) -> Row:
    """A record as it is where its value could not be decoded, or its key neither."""
    nothing = dict.fromkeys(_SAID) | {"topic_partitions": [], "is_undecodable": True}
    whose = {} if is_key_read else {"transactional_id": None, "transactional_id_hash": None}
    return row | nothing | whose
