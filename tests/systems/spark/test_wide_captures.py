"""Wide captures that are made with their answer: an audit finds exactly what hangs, in each form of the state."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.captures import StateForm, write_capture
from benchmarks.page import PAGE, RESULTS, Result, needs_of, page
from benchmarks.wide_history import LIVE, Hanging, History, Width, java_partitions
from tests.tools.sessions import no_session
from txn_analysis.kafka.names import java_hash, state_partition
from txn_analysis.pipeline import steps
from txn_analysis.settings import Settings

WIDTH = Width(partitions=60, batches=8, producers=40, ids=90, hanging=21, expired=70, first_offset=20_000_000_000)


@pytest.mark.parametrize("form", StateForm)
def test_an_audit_finds_what_hangs_and_nothing_else(tmp_path: Path, form: StateForm) -> None:
    # A tombstone of an export has no time: whose producers it may have been, no log is known to reach.
    history = History(replace(WIDTH, expired=0) if form is StateForm.CONSOLE_JSON else WIDTH)
    written = write_capture(history, tmp_path / "capture", form)
    assert written.log_bytes + written.state_bytes == sum(
        file.stat().st_size for file in (tmp_path / "capture").rglob("*") if file.is_file()
    )
    settings = Settings(
        warehouse=str(tmp_path / "warehouse"),
        transaction_state_partitions=WIDTH.state_partitions,
        max_clock_skew_ms=0,
        transaction_state_complete=form is StateForm.CONSOLE_JSON,
    )
    report = steps.audit(no_session, [str(tmp_path / "capture")], settings)
    found = {Hanging(f.partition, f.producer_id, f.txn_start_offset, f.rule) for f in report.hanging}
    assert found == history.hanging()
    assert len(found) == WIDTH.hanging
    assert min(hanging.txn_start_offset for hanging in found) > WIDTH.first_offset
    assert [f.verdict for f in report.findings if f not in report.hanging] == ["in_progress"] * LIVE


def test_ids_lie_in_the_partition_of_their_hash() -> None:
    names = ["a", "writer-00000007", "late-00000123", "x" * 40]
    assert java_partitions(names, 50).tolist() == [state_partition(java_hash(name), 50) for name in names]
    assert np.unique(java_partitions([f"late-{n:08d}" for n in range(1500)], 50)).tolist() == list(range(50))


@pytest.mark.parametrize(("mine", "is_missed"), [(1.1, False), (1.3, True)])
def test_a_row_beyond_its_limit_is_missed(mine: float, is_missed: bool) -> None:
    result = Result("deep", 1.2, mine, 1.0, "s")
    assert result.is_missed is is_missed
    assert ("MISSED" in str(result)) is is_missed


def test_the_page_of_measurements_is_made_of_the_last_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(RESULTS.read_text(encoding="utf-8")))


def test_what_a_log_needs_grows_with_its_batches() -> None:
    # 2 s per GiB on 4 cores beside 20 of start-up; a line of 256 bytes for each batch; a tenth of the text is kept.
    figures = {"s_per_gib": 2, "start_s": 20, "cores": 4, "text_bytes_per_batch": 256, "warehouse_share": 0.1}
    assert needs_of(figures, 16384) == ["16 KiB", "671 million", "160 GiB", "16 GiB", "1.7", "0.7", "0.4"]
