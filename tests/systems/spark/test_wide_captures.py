"""Wide captures that are made with their answer: an audit finds exactly what hangs, in each form of the state."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.wide.__main__ import worse
from benchmarks.wide.capture import StateForm, write_capture
from benchmarks.wide.cases import cases
from benchmarks.wide.history import LIVE, Hanging, History, Width, java_partitions
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


def test_every_capture_can_be_made_at_every_scale() -> None:
    for scale in (0.002, 0.1, 0.25, 1):
        for case in cases(scale).values():
            History(case.width)


def test_ids_lie_in_the_partition_of_their_hash() -> None:
    names = ["a", "writer-00000007", "late-00000123", "x" * 40]
    assert java_partitions(names, 50).tolist() == [state_partition(java_hash(name), 50) for name in names]
    assert np.unique(java_partitions([f"late-{n:08d}" for n in range(1500)], 50)).tolist() == list(range(50))


@pytest.mark.parametrize(
    ("found", "is_worse"), [({"ids": 1.24}, False), ({"ids": 1.26}, True), ({}, True), ({"ids": 0.2, "new": 9}, False)]
)
def test_a_ratio_that_is_a_quarter_above_the_committed_one_is_named(found: dict[str, float], is_worse: bool) -> None:
    assert bool(worse(found, {"ids": 1.0})) is is_worse
