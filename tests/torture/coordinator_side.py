"""The coordinator's side of the harness: what Spark does in `evidence` and `judge.coordinator`, over plain rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txn_analysis.ingest.java_hash import state_partition
from txn_analysis.judge.coordinator import CANDIDATE_KEY, HISTORY_COLUMNS, best_of, facts_of_id
from txn_analysis.judge.history import moment_ms
from txn_analysis.judge.state_coverage import MOST_MISPLACED_IDS, StateEvidence, StateSection, state_evidence_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.torture.inputs import ReadInput
    from txn_analysis.config import Settings

Row = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """One input of one capture; the judged capture has rank 0, the one before it rank 1, and so on."""

    input: ReadInput
    rank: int


def states_of(items: list[Item], partition_count: int) -> list[Row]:
    """Records of `__transaction_state`, each content once with its newest capture's rank; see `Evidence.states`."""
    dumps = [item.rank for item in items for s in item.input.planned.sections if s.kind == "state"]
    newest = {item.input.planned.input_id: item for item in sorted(items, key=lambda item: -item.rank)}
    rows = []
    for item in newest.values():
        for record in item.input.records:
            if "transactional_id" not in record:
                continue
            is_console = record["state_partition"] is None
            age = item.rank if is_console else min(dumps, default=0)
            place = (item.input.moment_ms or 0) if is_console else record["offset"]
            exported_in = item.input.planned.input_id if is_console else ""
            order = (-age, not is_console, place, exported_in, record["ordinal"] if is_console else 0)
            hashed = record["transactional_id_hash"]
            own = None if hashed is None else state_partition(hashed, partition_count)
            derived = {
                "capture_rank": item.rank,
                "is_console": is_console,
                "record_order": dict(enumerate(order)),
                "hashed_partition": own,
                "state_partition": own if is_console else record["state_partition"],
            }
            rows.append(record | derived)
    return rows


def state_evidence(
    states: list[Row], sections: list[Row], pieces: list[Row], health: list[Row], settings: Settings
) -> StateEvidence:
    """As `judge.coordinator.state_evidence`."""
    own = [s for s in sections if not s["capture_rank"]]
    records = by([r for r in _dumped(states) if not r["capture_rank"]], "input_id", "section_index")
    files = [
        _state_section(s, records.get((s["input_id"], s["section_index"]), [])) for s in own if s["kind"] == "state"
    ]
    is_console = any(s["kind"].startswith("console") for s in own)
    console = _console([r for r in states if r["is_console"] and not r["capture_rank"]]) if is_console else {}
    ended = {p["producer_id"] for piece in pieces for p in piece["producers"] if p["marker_offset"] is not None}
    is_foreign = bool(ended) and not ended & {producer for record in states for producer in _named(record)}
    return state_evidence_of(settings.transaction_state_partitions, files, console, health, is_foreign=is_foreign)


def _state_section(section: Row, records: list[Row]) -> StateSection:
    by_offset = sorted((r for r in records if r["offset"] is not None), key=lambda r: r["offset"])
    moments = [ms for r in records if (ms := moment_ms(r)) is not None]
    after_gap = [ms for r in records if r["is_after_gap"] and (ms := moment_ms(r)) is not None]
    misplaced = [r["transactional_id"] for r in records if r["hashed_partition"] not in {None, r["state_partition"]}]
    return StateSection(
        state_partition=section["partition"],
        file_base_offset=section["file_base_offset"],
        first_offset=by_offset[0]["offset"] if by_offset else None,
        last_offset=by_offset[-1]["offset"] if by_offset else None,
        first_ms=moment_ms(by_offset[0]) if by_offset else None,
        gap_ms=max(after_gap, default=None),
        moment_ms=max(moments, default=None),
        undecodable_count=sum(r["is_undecodable"] for r in records),
        misplaced_count=len(misplaced),
        misplaced_ids=tuple(sorted(set(misplaced))[:MOST_MISPLACED_IDS]),
        end_offset=section["end_offset"],
    )


def _console(records: list[Row]) -> dict[int, StateSection]:
    by_partition = by(records, "state_partition")
    lost = sum(r["is_undecodable"] for r in records if r["state_partition"] is None)
    found = {}
    for (number,), rows in by_partition.items():
        if number is not None:
            moment_ms = max((r["last_update_ms"] for r in rows if r["last_update_ms"] is not None), default=None)
            undecodable = sum(r["is_undecodable"] for r in rows) + lost
            found[number] = StateSection(number, 0, None, None, None, None, moment_ms, undecodable, 0)
    return found


def coordinator_facts(opened: list[Row], states: list[Row], max_clock_skew_ms: int) -> dict[tuple[Any, ...], Row]:
    """What the coordinator knows of each open transaction, as `judge.coordinator.coordinator_facts`."""
    history = defaultdict(list)
    ids_of: dict[int, set[str]] = defaultdict(set)
    for record in states:
        if record["transactional_id"] is not None:
            columns = (*HISTORY_COLUMNS, "record_order")
            history[record["transactional_id"]].append({name: record[name] for name in columns})
            for producer in _named(record):
                ids_of[producer].add(record["transactional_id"])
    asked = defaultdict(list)
    for row in opened:
        for name in ids_of.get(row["producer_id"], ()):
            asked[name].append(row)
    found = [row for name, rows in asked.items() for row in facts_of_id(history[name], rows, max_clock_skew_ms)]
    return {key: best_of(rows) for key, rows in by(found, *CANDIDATE_KEY).items()}


def _named(record: Row) -> set[int]:
    producers = (record["producer_id"], record["previous_producer_id"], record["next_producer_id"])
    return {producer for producer in producers if producer is not None}


def _dumped(states: list[Row]) -> list[Row]:
    return [r for r in states if not r["is_console"]]


def by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows in groups that agree in the named columns."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return groups
