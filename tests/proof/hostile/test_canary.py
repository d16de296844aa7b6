from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.proof.hostile.canary import CanaryReport, Secrets, _search, run_canary

SEED = 4


@pytest.mark.cluster
def test_no_key_payload_or_header_leaves_the_text(tmp_path: Path) -> None:
    # Other verbs print what is in the tables, which are searched here; `make proof` asks them all.
    report = run_canary(tmp_path, SEED, verbs=())
    assert report.planted > 100
    assert report.searched_files > 100
    assert report.problems == [], f"seed {SEED}"


def test_the_search_looks_into_packed_columns_and_statistics(tmp_path: Path) -> None:
    secrets, report = Secrets(SEED), CanaryReport()
    words = [secrets.new("word") for _ in range(3)]
    table = pa.table({"a": [{"nested": [words[0]]}], "b": [words[1]]})
    pq.write_table(table, tmp_path / "x.parquet", compression="zstd")
    (tmp_path / "log.err").write_text(words[2])
    _search(tmp_path, secrets, report)
    assert len(report.problems) >= len(words) + 2
