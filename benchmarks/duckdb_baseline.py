"""What a capable user would write instead: DuckDB reads batch lines as CSV. Needs `pip install 'txn-analysis[bench]'`.

`python -m benchmarks.duckdb_baseline FOLDER PARQUET` keeps the batches of shallow dumps, and prints the number of open
transactions. It trusts every line: no position chain, no rejects, no coordinator.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import duckdb

_WORDS_OF_A_LINE = 36
_OPEN = "(c17 = 'true') AS is_transactional, (c19 = 'true') AS is_control"
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


def open_transactions(folder: Path, keep: Path) -> int:
    """How many transactions are open in the shallow dumps of a folder, each dump being one partition.

    Args:
        folder: the dumps, `*.txt`, two lines of heading in each.
        keep: where to write every batch as Parquet, from which the answer is taken.
    """
    columns = ", ".join(f"'c{number:02d}': 'VARCHAR'" for number in range(_WORDS_OF_A_LINE))
    options = "delim = ' ', quote = '', escape = '', header = false, skip = 2, null_padding = true, auto_detect = false"
    lines = f"read_csv('{folder}/*.txt', filename = true, {options}, columns = {{{columns}}})"
    database = duckdb.connect()
    database.execute(f"SET threads = {os.cpu_count()}")
    database.execute(f"COPY (SELECT {_KEPT} FROM {lines}) TO '{keep}' (FORMAT parquet)")
    (answer,) = database.execute(_COUNT_OPEN.format(source=f"'{keep}'")).fetchall()
    return int(answer[0])


if __name__ == "__main__":
    print(open_transactions(*map(Path, sys.argv[1:])))
