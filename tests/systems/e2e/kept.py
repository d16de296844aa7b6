"""What a program keeps of a capture beside the copied files: dumps, and what is expected of them."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import STATE_PARTITIONS, Cluster
from tests.systems.e2e.hangs import Hang
from tests.tools.kafka_jars import dump_tool, tools_version

STATE = "__transaction_state"


def dump_text(cluster: Cluster, log: Path, *options: str, tools: str | None = None) -> str:
    """What Kafka's tool prints of a copied segment, named as from the log directory that it lies in."""
    version = tools or tools_version(cluster.version)
    words = (*options, "--files", str(log))
    return cluster.run(dump_tool(version), *words, version=version).replace(f"{log.parents[1]}/", "")


def are_checkpointed(cluster: Cluster, topic: str, partitions: int, node: int = 0) -> bool:
    """Whether a node has written down high watermarks of all partitions of a topic."""
    return (cluster.log_dir(node) / "replication-offset-checkpoint").read_text().count(f"{topic} ") == partitions


def row(
    opened: Hang, verdict: str, rule: str, *, coordinator_epoch: int | None = None, record_count: int = 2
) -> dict[str, Any]:
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


def expect(capture: Path, version: str, note: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    """Write `expected.json` of a capture."""
    head = {"kafka_version": version, "transaction_state_partitions": STATE_PARTITIONS, **more, "note": note}
    write_json(capture / "expected.json", head | {"open_transactions": list(rows)})


def tell(case: Path, hangs: Iterable[Hang]) -> None:
    """Write `scenario.json`: how what hangs was made."""
    kinds = ({"kind": h.cause, "topic": h.topic, "partition": h.partition, "producer_id": h.producer_id} for h in hangs)
    write_json(case / "scenario.json", [*kinds])


def write_json(file: Path, content: object) -> None:
    """Write a file that a person may read."""
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def made_anew(case: Path, make: Callable[[Path, Path], None]) -> None:
    """Let a program make a case again; it gets a folder for its brokers, and the case.

    What a person expects of it stays, unless the program says what to expect.
    """
    by_hand = {file: file.read_text(encoding="utf-8") for file in case.rglob("expected.json")}
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix=f"{case.name}-") as folder:
        make(Path(folder), case)
    for file, text in by_hand.items():
        if not file.exists():
            file.write_text(text, encoding="utf-8")
