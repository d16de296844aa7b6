"""Summaries made again from rows of `log_batches`, as where a snapshot cuts a log, are those that the scan made."""

import random
from pathlib import Path

import pyarrow as pa

from tests.tools.dump_texts import plan
from tests.tools.log_evidence import batches_of as scanned
from tests.tools.repository import CASES
from txn_analysis.kafka.names import LOG_KINDS
from txn_analysis.log.segments import UNCUT, Cuts
from txn_analysis.log.summarize import SUMMARIZED_COLUMNS, BatchSummaries, summarize_parts
from txn_analysis.tables.batches import Batches, batches_of

DUMPS = sorted(path for path in CASES.rglob("*.txt") if path.read_bytes().startswith(b"Dumping "))
IN_ONE_RANGE = 1 << 30


def batches_in(path: Path) -> list[Batches]:
    """The batches of each log that a dump of a real broker holds."""
    text = path.read_bytes()
    sections = [section for section in plan(text).sections if section.kind in LOG_KINDS]
    return scanned(sections, text, range_bytes=IN_ONE_RANGE, input_id=str(path.relative_to(CASES)))


def plain(*summaries: BatchSummaries) -> list[list[dict[str, object]]]:
    return [
        [row for found in summaries for row in getattr(found, name).to_pylist()] for name in ("pieces", "transactions")
    ]


def test_the_logs_of_one_dump() -> None:
    for path in DUMPS:
        if logs := batches_in(path):
            uncut = [UNCUT] * len(logs)
            assert plain(summarize_parts(anew(logs), uncut)) == plain(summarize_parts(logs, uncut)), path


def test_all_logs_of_all_captures_at_once_and_each_alone() -> None:
    logs = sorted((log for path in DUMPS for log in batches_in(path)), key=lambda log: log.section)
    cuts = {log.section: Cuts(sorted(log.columns["base_offset"][::7].tolist())) for log in logs}
    alone = [summarize_parts([log], [cuts[log.section]]) for log in logs]
    assert plain(summarize_parts(anew(logs), [cuts[log.section] for log in logs])) == plain(*alone)
    assert sum(len(found.transactions) for found in alone) > 0


def anew(logs: list[Batches]) -> list[Batches]:
    """The batches as Spark hands their rows back: those columns that a summary needs, in any order."""
    rows = pa.Table.from_batches([log.rows() for log in logs]).select(SUMMARIZED_COLUMNS)
    order = random.Random(1).sample(range(len(rows)), len(rows))
    return list(batches_of(rows.take(order).combine_chunks().to_batches()[0]))
