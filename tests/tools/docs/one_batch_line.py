"""One batch line of the capture of `make demo`, from its file to the command that ends its transaction.

What docs/architecture.md prints of it is read from the file and from the tables of a run, station by station.
"""

import re
from typing import Any

from tests.tools.repository import ROOT
from tests.tools.table_rows import listed
from txn_analysis.plan.script import commands
from txn_analysis.runs.run_tables import RunTables
from txn_analysis.tables import ABORT_PLAN, FINDINGS, LOG_BATCHES, LOG_PIECES, TRANSACTIONS, AbortRecord

FILE = "data/cases/kafka-4.2/capture-1/segments/n1.orders-2.txt"
TOPIC, PARTITION, OFFSET, PRODUCER_ID = "orders", 2, 155, 987654321
_OF_BATCH = "base_offset last_offset record_count producer_id producer_epoch is_transactional position max_timestamp_ms"
_OF_PIECE = "first_position end_position first_offset last_offset first_leader_epoch max_moment_ms"
_OF_FRAGMENT = "start_offset last_offset last_timestamp_ms first_before_ms hidden_record_count end_offset"
_OF_TRANSACTION = "txn_start_offset is_txn_start_exact outcome max_producer_epoch last_marker_ms evidence_gaps"
_OF_FINDING = "verdict rule lateness_basis idle_ms late_by_ms transactional_id blocks_partition producer_may_return"
_OF_RECORD = (
    "producer_epoch coordinator_epoch coordinator_epoch_basis transaction_result txn_start_offset not_before_ms"
)
_WIDTH = 118


def walk(tables: RunTables) -> str:
    """The stations, one paragraph each."""
    ingests = tables.finished.evidence.ingests
    here: dict[str, Any] = {"topic": [TOPIC], "partition": [PARTITION]}
    batch = next(
        r for r in listed(tables.warehouse, LOG_BATCHES, **here, ingest_id=ingests) if r["base_offset"] == OFFSET
    )
    piece = next(iter(listed(tables.warehouse, LOG_PIECES, **here, ingest_id=ingests)))
    (fragment,) = (p["lead"] for p in piece["producers"] if p["producer_id"] == PRODUCER_ID)
    (opened,) = listed(tables, TRANSACTIONS, **here, outcome=["open"])
    (finding,) = listed(tables, FINDINGS, **here)
    (record,) = listed(tables, ABORT_PLAN, **here)
    stations = (
        ("a line of the file", _folded(_line())),
        ("log_batches", _values(batch, _OF_BATCH)),
        ("log_pieces", _values(piece, _OF_PIECE)),
        (f"log_pieces, producers: {PRODUCER_ID}, lead", _values(fragment, _OF_FRAGMENT)),
        ("transactions", _values(opened, _OF_TRANSACTION)),
        ("findings", _values(finding, _OF_FINDING) + [f"evidence: {line}" for line in finding["evidence"]]),
        ("abort_plan", _values(record, _OF_RECORD)),
        ("abort-plan --format commands", _sent(commands([AbortRecord.model_validate(record)]))),
    )
    return "\n".join(f"{name}\n" + "".join(f"    {line}\n" for line in lines) for name, lines in stations)


def _line() -> str:
    text = (ROOT / FILE).read_text(encoding="utf-8")
    return next(line for line in text.splitlines() if line.startswith(f"baseOffset: {OFFSET} "))


def _sent(script: str) -> list[str]:
    """The lines of a plan's script that ask and send; the record's name, another in each run, is left out."""
    lines = script[script.index("if begin ") :].partition("fi\n")[0].splitlines()
    return [re.sub(r"begin [0-9a-f]{16}", "begin RECORD", line) for line in lines]


def _values(row: dict[str, Any], names: str) -> list[str]:
    return _folded(", ".join(f"{name}: {row[name]}" for name in names.split()))


def _folded(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) + 1 > _WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return lines
