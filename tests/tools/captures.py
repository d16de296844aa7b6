"""The real captures and how each is audited, as `data/README.md` says."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tools.repository import CASES
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.past_run import PastRun
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.settings import Settings

PARAMETERS: dict[str, Any] = {"transaction_state_partitions": 4, "max_clock_skew_ms": 0}


@dataclass(frozen=True)
class Variant:
    """One way of giving a capture to the audit."""

    capture: str
    parts: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.capture}: {' + '.join(part.removeprefix('../') for part in self.parts)}"

    @property
    def paths(self) -> list[str]:
        return [str((CASES / self.capture / part).resolve()) for part in self.parts]

    @property
    def expected(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads((CASES / self.capture / "expected.json").read_text())[
            "open_transactions"
        ]
        return rows


AuditOf = Callable[[Variant], AuditReport]
TablesOf = Callable[[Variant], RunTables]
RunOf = Callable[[Variant], PastRun]
WarehouseOf = Callable[[Variant], str]

SEGMENTS = ("segments", "transaction-state")
COMPLETE = (("transaction_state_complete", True),)
TRUE_WORDS = (("state_copied_last", True), ("no_records_lost", True))
OF_MIXED = (("transaction_max_timeout_ms", 15_000),)
OF_EMPTIED = (*TRUE_WORDS, *COMPLETE, ("transaction_max_timeout_ms", 20_000))
FIND_HANGING = Variant("kafka-4.3-find-hanging/capture-1", ("log-dirs",))
VARIANTS = (
    Variant("kafka-2.8/capture-1", (*SEGMENTS, "producer-snapshots")),
    Variant("kafka-2.8/capture-1", ("segments", "../console"), COMPLETE),
    Variant("kafka-4.2/capture-1", SEGMENTS),
    Variant("kafka-4.2/capture-1", ("shallow", "transaction-state")),
    Variant("kafka-4.2/capture-2", (*SEGMENTS, "producer-snapshots")),
    Variant("kafka-4.2/capture-2", ("segments", "producer-snapshots", "../console"), COMPLETE),
    Variant("kafka-4.2/capture-3", (*SEGMENTS, "producer-snapshots")),
    Variant("kafka-4.2-edge/capture-1", SEGMENTS),
    Variant("kafka-4.2-edge/capture-2", (*SEGMENTS, "producer-snapshots")),
    Variant("kafka-4.2-tv2/capture-1", SEGMENTS),
    Variant(
        "twin-no-commit",
        SEGMENTS,
        (("transaction_state_partitions", 3), ("max_clock_skew_ms", 1_000), *TRUE_WORDS),
    ),
    Variant("kafka-4.2/capture-1", ("log-dirs",)),
    Variant("kafka-4.2-lost-marker/capture-1", ("log-dirs",)),
    Variant("kafka-4.2-rotation/capture-1", ("log-dirs",)),
    Variant("kafka-4.2-three-nodes/capture-1", ("log-dirs",)),
    Variant("kafka-4.2-mixed/capture-1", ("log-dirs",), OF_MIXED),
    Variant("kafka-4.2-mixed/capture-2", ("log-dirs",), OF_MIXED),
    Variant("kafka-4.3-wrong-order/capture-1", ("shallow", "state"), TRUE_WORDS[:1]),
    Variant("kafka-4.3-busy/capture-1", ("log-dirs",), TRUE_WORDS),
    Variant("kafka-4.4-upgrade/capture-1", ("log-dirs",), TRUE_WORDS),
    FIND_HANGING,
    Variant("kafka-4.3-emptied-file/capture-1", ("log-dirs",), OF_EMPTIED),
    Variant("kafka-4.3-flink/capture-1", ("log-dirs",), TRUE_WORDS),
    Variant("kafka-4.2-edge/capture-1", ("log-dirs", "segments/n1.accounts-0.txt", "segments/n1.trades-0.txt")),
    Variant("kafka-4.2-edge/capture-2", ("log-dirs", "segments/n1.accounts-0.txt"), (("verify", True),)),
)


def run_audit(spark: Any, warehouse: str, paths: list[str], **settings: Any) -> AuditReport:
    """Audit some paths with the captures' parameters, each in a cluster of its own unless one is named."""
    return pipeline.audit(spark, paths, Settings.model_validate({"warehouse": warehouse} | PARAMETERS | settings))


def all_but_last(
    spark: Any, warehouse: str, folder: Path, captures: Mapping[str, Mapping[str, bytes]], settings: dict[str, Any]
) -> str:
    """Write the files of captures of one cluster, oldest first, and ingest all but the last, whose name it returns."""
    *earlier, last = captures
    for name, files in captures.items():
        for path, data in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    for name in earlier:
        of_night = PARAMETERS | settings | {"warehouse": warehouse, "capture": name}
        pipeline.ingest(spark, [str(folder / name)], Settings.model_validate(of_night))
    return last


def rows_of(report: AuditReport) -> list[dict[str, Any]]:
    """The findings as JSON prints them."""
    found: list[dict[str, Any]] = json.loads(report.model_dump_json())["findings"]
    return found


def by_place(rows: list[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Rows by topic, partition and producer id."""
    return {(row["topic"], row["partition"], row["producer_id"]): row for row in rows}


def answers(report: AuditReport) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Verdict and rule of each open transaction."""
    return {(f.topic, f.partition, f.producer_id, f.txn_start_offset): (f.verdict, f.rule) for f in report.findings}
