"""The audit of a few captures in milliseconds: the product's own pure functions in the product's order, without Spark.

What stands here besides calls is what Spark glue does in `evidence`, `judge.coordinator` and `audit`: ranks of
captures, the order of state records, the join of open transactions with what the coordinator knows. That both answer
alike is shown in tests/acceptance/test_harness.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tests.torture.coordinator_side import Item, by, coordinator_facts, state_evidence, states_of
from tests.torture.inputs import RANGE_BYTES, InputReader, ReadInput
from txn_analysis.ingest.sections import LOG_KINDS, SNAPSHOT
from txn_analysis.judge.coordinator import candidate_key
from txn_analysis.judge.judgement import judgement_of
from txn_analysis.reconstruct.copies import (
    Comparison,
    Pair,
    compare,
    cuts_of,
    pairs_to_compare,
)
from txn_analysis.reconstruct.link import link_partition
from txn_analysis.reconstruct.segments import segments_of
from txn_analysis.tables import FINDINGS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.config import Settings
    from txn_analysis.judge.state_coverage import StateEvidence

Row = dict[str, Any]

_NOT_JUDGED_HERE = {"run_id", "finding_id", "impact"}


@dataclass(frozen=True)
class Answer:
    """What an audit says of one capture: rows of `findings` and `partition_health`, and the bytes that it lost.

    `state_seen_to_ms` is the last update that was seen in each partition of `__transaction_state`.
    """

    findings: list[Row]
    health: list[Row]
    unaccounted_bytes: int
    state_seen_to_ms: Mapping[int, int]

    @property
    def hanging(self) -> list[Row]:
        """The findings that would be aborted."""
        return [row for row in self.findings if row["verdict"] == "hanging"]


def audit_files(
    reader: InputReader,
    captures: Mapping[str, Mapping[str, bytes]],
    settings: Settings,
    *,
    judged: str | None = None,
    range_bytes: int = RANGE_BYTES,
) -> Answer:
    """Judge one capture (the newest by the brokers' clocks where none is named), with the older ones behind it.

    Args:
        reader: reads contents, and keeps what it read.
        captures: files of each capture, by path.
        settings: as for the audit; inputs that are not understood are left out, as with `--skip-unrecognised`.
        judged: name of the capture to judge.
        range_bytes: bytes of dump text that one task would parse.
    """
    items, as_of_ms = _evidence(reader, captures, judged, range_bytes)
    as_of_ms = settings.as_of_ms if settings.as_of_ms is not None else as_of_ms
    sections = [row for item in items if item.input.planned.sections for row in _section_rows(item)]
    cuts = cuts_of(sections)
    inputs = {item.input.planned.input_id: item.input for item in items}
    pieces = [piece for read in inputs.values() for piece in read.pieces(cuts)]
    opened, health = _linked(items, sections, pieces, as_of_ms)
    states = states_of(items, settings.transaction_state_partitions)
    state = state_evidence(states, sections, pieces, health, settings)
    findings = list(_findings(opened, health, states, state, settings, as_of_ms))
    updated = by([r for r in states if r["last_update_ms"] is not None], "state_partition")
    seen_to_ms = {partition: max(r["last_update_ms"] for r in rows) for (partition,), rows in updated.items()}
    lost = sum(item.input.unaccounted_bytes for item in items)
    place = ("topic", "partition", "txn_start_offset", "producer_id")
    return Answer(sorted(findings, key=lambda row: [row[n] for n in place]), health, lost, seen_to_ms)


def _evidence(
    reader: InputReader, captures: Mapping[str, Mapping[str, bytes]], judged: str | None, range_bytes: int
) -> tuple[list[Item], int | None]:
    """The inputs that the judged capture rests on, and that capture's newest broker-clock moment."""
    read = {
        name: {
            data.planned.input_id: data for path in sorted(files) for data in [reader.read(files[path], range_bytes)]
        }
        for name, files in captures.items()
    }
    moments = {
        name: max((i.moment_ms for i in inputs.values() if i.moment_ms is not None), default=None)
        for name, inputs in read.items()
    }
    names = sorted(moments, key=lambda name: (moments[name] is not None, moments[name] or 0, name))
    judged = judged or names[-1]
    behind = reversed(names[: names.index(judged) + 1])
    return [Item(data, rank) for rank, n in enumerate(behind) for data in read[n].values()], moments[judged]


def _section_rows(item: Item) -> list[Row]:
    """As `Evidence.sections`: a section's end is proven where the next one really begins."""
    planned = item.input.planned
    proven = [section.is_start_proven for section in planned.sections[1:]] + [True]
    problems = [None] * (len(planned.sections) - 1) + [planned.problem]
    of_input = {"input_id": planned.input_id, "capture_rank": item.rank}
    return [
        asdict(section)
        | of_input
        | {
            "section_index": section.index,
            "has_batches": True,
            "is_end_proven": is_end_proven,
            "input_problem": problem,
        }
        | dict(zip(("first_offset", "end_offset"), item.input.offsets(section.index), strict=True))
        for section, is_end_proven, problem in zip(planned.sections, proven, problems, strict=True)
    ]


def _linked(
    items: list[Item], sections: list[Row], pieces: list[Row], as_of_ms: int | None
) -> tuple[list[Row], list[Row]]:
    """Open rows of `transactions`, and rows of `partition_health`."""
    inputs = {item.input.planned.input_id: item.input for item in items}
    entries = [row for read in inputs.values() for row in read.records if "snapshot_offset" in row]
    wanted = [s for s in sections if s["kind"] in {*LOG_KINDS, SNAPSHOT}]
    opened, health = [], []
    pieces_at, snapshots_at = by(pieces, "topic", "partition"), by(entries, "topic", "partition")
    for at, found in sorted(by(wanted, "topic", "partition").items()):
        place = {"topic": at[0], "partition": at[1]}
        own = pieces_at.get(at, [])
        compared = _comparisons(inputs, [s for s in found if s["kind"] != SNAPSHOT], own)
        linked = link_partition(found, own, snapshots_at.get(at, []), compared, as_of_ms)
        health.append(linked.health | place)
        absent = dict.fromkeys(n for n in TRANSACTIONS.schema.names if n != "run_id")
        opened += [absent | row | place for row in linked.transactions if row["outcome"] == "open"]
    return opened, health


def _comparisons(inputs: Mapping[str, ReadInput], logs: list[Row], pieces: list[Row]) -> dict[Pair, Comparison]:
    """Of all copies of one partition that differ somewhere, how."""
    return {
        pair: compare(*[inputs[key[0]].batches_between(key[1], pair.start, pair.stop) for key in (pair.a, pair.b)])
        for pair in pairs_to_compare(segments_of(logs, pieces))
    }


def _findings(
    opened: list[Row],
    health: list[Row],
    states: list[Row],
    state: StateEvidence,
    settings: Settings,
    as_of_ms: int | None,
) -> Iterable[Row]:
    known = coordinator_facts(opened, states, settings.max_clock_skew_ms)
    partitions = {(row["topic"], row["partition"]): row for row in health}
    names = [name for name in FINDINGS.schema.names if name not in _NOT_JUDGED_HERE]
    for row in opened:
        partition = partitions[row["topic"], row["partition"]]
        finding = judgement_of(row, partition, known.get(candidate_key(row)), state, settings, as_of_ms)
        yield {name: finding[name] for name in names}
