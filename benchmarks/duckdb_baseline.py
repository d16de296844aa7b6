"""What a capable user would write instead: DuckDB reads batch lines as CSV. Needs `pip install 'txn-analysis[bench]'`.

`python -m benchmarks.duckdb_baseline FOLDER [--keep PARQUET]` prints the number of open transactions in shallow dumps;
`--lines FOLDER` keeps the lines of other dumps as well.
It trusts every line: no position chain, no rejects, no coordinator.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import duckdb

_WORDS_OF_A_LINE = 36
_OPEN = "(c17 = 'true') AS is_transactional, (c19 = 'true') AS is_control"
_NEEDED = f"filename AS file, c01::BIGINT AS base_offset, c11::BIGINT AS producer_id, {_OPEN}"
_KEPT = f"""filename AS file, c01::BIGINT AS base_offset, c03::BIGINT AS last_offset, c05::INT AS record_count,
    c07::INT AS base_sequence, c09::INT AS last_sequence, c11::BIGINT AS producer_id, c13::INT AS producer_epoch,
    c15::INT AS leader_epoch, {_OPEN}, c23::BIGINT AS position, c25::BIGINT AS max_timestamp_ms,
    c27::INT AS size_bytes"""
_COUNT_OPEN = """
    WITH batches AS (FROM {source} WHERE is_transactional),
    ended AS (SELECT file, producer_id, max(base_offset) AS end_offset FROM batches WHERE is_control GROUP BY ALL)
    SELECT count(*) FROM (
        SELECT file, producer_id, min(base_offset) FROM batches LEFT JOIN ended USING (file, producer_id)
        WHERE NOT is_control AND base_offset > coalesce(end_offset, -1) GROUP BY ALL
    )"""


def open_transactions(folder: Path, threads: int, keep: Path | None = None, others: Path | None = None) -> int:
    """How many transactions are open in the shallow dumps of a folder, each dump being one partition.

    Args:
        folder: the dumps, `*.txt`, two lines of heading in each.
        threads: how many DuckDB may use.
        keep: where to write every batch as Parquet, if anywhere; the answer is then taken from there.
        others: a folder of dumps whose lines are kept as words, beside the batches.
    """
    database = duckdb.connect()
    database.execute(f"SET threads = {threads}")
    columns = ", ".join(f"'c{number:02d}': 'VARCHAR'" for number in range(_WORDS_OF_A_LINE))
    options = "delim = ' ', quote = '', escape = '', header = false, skip = 2, null_padding = true, auto_detect = false"
    read = f"read_csv('{{}}/*.txt', filename = true, {options}, columns = {{{{{columns}}}}})"
    lines = read.format(folder)
    source = f"(SELECT {_NEEDED} FROM {lines})"  # noqa: S608 paths of the bench's own
    if keep:
        database.execute(f"COPY (SELECT {_KEPT} FROM {lines}) TO '{keep}' (FORMAT parquet)")  # noqa: S608 the same
        source = f"'{keep}'"
        if others:
            database.execute(f"COPY (FROM {read.format(others)}) TO '{keep}.lines' (FORMAT parquet)")
    (answer,) = database.execute(_COUNT_OPEN.format(source=source)).fetchall()
    return int(answer[0])


def main() -> None:
    """Print the number of open transactions."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.duckdb_baseline")
    options.add_argument("folder", type=Path)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--keep", type=Path)
    options.add_argument("--lines", type=Path)
    chosen = options.parse_args()
    print(open_transactions(chosen.folder, chosen.threads, chosen.keep, chosen.lines))


if __name__ == "__main__":
    main()
