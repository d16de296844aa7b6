"""What happens on brokers, and is kept as a case of `data/cases`: start, do, copy, expect."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.hangs import Hang
from tests.systems.e2e.stage import Stage, Topics, staged
from tests.tools.kafka_jars import dump_tool, tools_version

Row = dict[str, Any]


@dataclass(frozen=True)
class Expected:
    """What is open in one capture, and the verdicts that it must get; a note for people, and more of the head."""

    rows: Sequence[Row]
    note: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Happened:
    """What came of it: by capture what is expected, what was made to hang, and what clients were answered."""

    captures: Mapping[str, Expected]
    stories: Sequence[Mapping[str, Any]] = ()
    clients: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """What happens, on which brokers, and how the captures are audited.

    Attributes:
        case: its folder in `data/cases`.
        start: makes the cluster, in a folder of its own.
        do: lets it happen, and copies captures into the folder of the case.
        topics: that there are before.
        files: of each capture, what an audit is given, relative to it.
        settings: of these audits.
        takes_long: whether `--brief` leaves it out.
        first_topic: as of `Cluster.start`.
    """

    case: str
    start: Callable[[Path], Cluster]
    do: Callable[[Stage, Path], Happened]
    topics: Topics = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Sequence[tuple[str, Any]] = ()
    takes_long: bool = True
    first_topic: Callable[[Cluster], None] | None = None

    def inputs(self, case: Path, capture: str) -> list[Path]:
        """The paths that an audit of a capture is given."""
        return [(case / capture / part).resolve() for part in self.files.get(capture, ("log-dirs",))]


def play(scenario: Scenario, folder: Path, case: Path) -> Happened:
    """Let a scenario happen on brokers in a folder, and write its case: captures, and what is known of them."""
    case.mkdir(parents=True)
    cluster = scenario.start(folder)
    with staged(cluster, scenario.topics, scenario.first_topic) as stage:
        happened = scenario.do(stage, case)
    versions = " and ".join(dict.fromkeys(cluster.versions))
    head = {"kafka_version": versions, "transaction_state_partitions": STATE_PARTITIONS}
    for name, expected in happened.captures.items():
        note = {} if expected.note is None else {"note": expected.note}
        told = {**head, **expected.more, **note, "open_transactions": list(expected.rows)}
        write_json(case / name / "expected.json", told)
    if happened.stories:
        write_json(case / "scenario.json", list(happened.stories))
    if happened.clients:
        write_json(case / "clients.json", happened.clients)
    return happened


def row(opened: Hang, verdict: str, rule: str, *, coordinator_epoch: int | None = None, record_count: int = 2) -> Row:
    """An open transaction as `expected.json` has it."""
    return {
        "topic": opened.topic,
        "partition": opened.partition,
        "producer_id": opened.producer_id,
        "producer_epoch": opened.producer_epoch,
        "coordinator_epoch": coordinator_epoch,
        "txn_start_offset": opened.txn_start_offset,
        "record_count": record_count,
        "verdict": verdict,
        "rule": rule,
        "transactional_id": opened.transactional_id,
    }


def stories(hangs: Iterable[Hang]) -> list[Row]:
    """How what hangs was made."""
    return [{"kind": h.cause, "topic": h.topic, "partition": h.partition, "producer_id": h.producer_id} for h in hangs]


def dump_text(cluster: Cluster, log: Path, *options: str, tools: str | None = None) -> str:
    """What Kafka's tool prints of a copied segment, named as from the log directory that it lies in."""
    version = tools or tools_version(cluster.version)
    words = (*options, "--files", str(log))
    return cluster.run(dump_tool(version), *words, version=version).replace(f"{log.parents[1]}/", "")


def write_json(file: Path, content: object) -> None:
    """Write a file that a person may read."""
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
