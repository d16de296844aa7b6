"""Age takes no capture that holds what disproves an answer: an election that lost a commit's marker, months ago."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.forms.dump_writer import Tool
from tests.tools.sessions import no_session, opened
from tests.tools.world.evidence import BEGAN_MS, evidence_of
from tests.tools.world.model import Log, Step, World
from tests.tools.world.steps import after
from tests.tools.world.texts import copy_of
from txn_analysis.pipeline import steps
from txn_analysis.questions.pruning import PrunedItem, prune
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.tables import INPUTS
from txn_analysis.verdict import Verdict

PLACE, PAYERS_ID = ("orders", 0), 1
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
WORDS = {"no_records_lost": True, "state_copied_last": True, "transaction_state_complete": True}


class History:
    """A world, each of whose nights is copied into a folder and audited into one warehouse; `a` pays."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.world = World(BEGAN_MS, 1, (Log(), Log()))

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def happens(self, *happening: Step) -> None:
        for step in happening:
            following = after(self.world, step)
            assert following is not None, step
            self.world = following

    def commit(self, name: str, *partitions: int) -> None:
        written = (Step(kind, name, n) for n in partitions for kind in ("begin", "write"))
        marked = (Step("marker", name, n) for n in partitions)
        self.happens(*written, Step("commit", name), *marked, Step("complete", name))

    def lose_the_marker(self) -> None:
        """An unclean election: a broker leads that has the payer's data alone, and goes on at a higher leader epoch."""
        self.happens(*(Step("lose", "", 0) for _ in self.world.logs[0].batches[1:]))

    def compact_the_state(self) -> None:
        """The cleaner leaves the newest record of each id."""
        self.happens(Step("compact", "", 0))

    def copied(self, without: str = "\0") -> Path:
        """A copy, without the files whose names have some word; and a day goes by."""
        self.number += 1
        night = self.folder / f"night-{self.number}"
        night.mkdir()
        logs = tuple(replace(log, copy=log.batches) for log in self.world.logs)
        states = tuple(replace(state, copy=state.rows) for state in self.world.states)
        copied = evidence_of(replace(self.world, logs=logs, states=states), says_last=False, draws_together=False)
        for name, text in copy_of(copied.copies()).files(Tool((4, 1), deep=True)).items():
            if without not in name:
                (night / name).write_bytes(text)
        self.world = replace(self.world, now_ms=self.world.now_ms + DAY_MS)
        return night

    def audited(self, *copies: Path, **said: Any) -> AuditReport:
        """Copies as one capture, of the first one's name."""
        usual = {"warehouse": str(self.warehouse), "capture": copies[0].name, "max_clock_skew_ms": 0}
        settings = Settings.model_validate(WORDS | usual | {"transaction_state_partitions": 1} | said)
        return steps.audit(no_session, [str(night) for night in copies], settings)

    def night(self) -> AuditReport:
        """Copied, audited, and a day goes by."""
        return self.audited(self.copied())

    def pruned(self, keep_ms: int) -> PrunedItem:
        (item,) = prune(opened(self.warehouse), keep_ms, 2_000_000_000_000, 0).clusters
        return item


def verdict(report: AuditReport) -> tuple[Verdict, str]:
    (found,) = (f for f in report.findings if (f.topic, f.partition) == PLACE and f.producer_id == PAYERS_ID)
    return found.verdict, found.rule


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Night 1 has the COMMIT marker of `a`; then it is lost, and the log goes on by others."""
    history = History(tmp_path)
    history.commit("a", 0)
    history.commit("b", 0, 1)
    assert [f for f in history.night().findings if f.producer_id == PAYERS_ID] == []
    history.lose_the_marker()
    for _ in range(3):
        history.commit("b", 0, 1)
    return history


def test_the_capture_with_the_marker_stays_as_long_as_the_row_is_open(history: History) -> None:
    history.night()
    history.compact_the_state()
    for _ in range(3):
        history.commit("b", 0, 1)
        expected = verdict(history.night())
    assert expected == (Verdict.SUSPECT, "commit_marker_missing")
    item = history.pruned(DAY_MS)
    assert "night-1" not in item.captures
    assert "night-1" in item.captures_kept
    history.commit("b", 0, 1)
    assert verdict(history.night()) == expected


def test_without_that_capture_the_commit_would_be_aborted(history: History, tmp_path: Path) -> None:
    """What the capture is kept from: nothing else disproves that no records were lost."""
    history.night()
    history.compact_the_state()
    for _ in range(3):
        history.commit("b", 0, 1)
        history.night()
    last = tmp_path / f"night-{history.number}"
    said = WORDS | {"warehouse": str(tmp_path / "alone"), "max_clock_skew_ms": 0, "transaction_state_partitions": 1}
    assert verdict(steps.audit(no_session, [str(last)], Settings.model_validate(said)))[0] is Verdict.HANGING


def test_a_capture_that_is_needed_stays_whole_and_says_why(history: History) -> None:
    history.night()
    history.commit("b", 0, 1)
    history.night()
    item = history.pruned(DAY_MS)
    kept = {one.capture: one.why for one in item.kept}
    assert kept["night-1"] == "they disprove what you vouched for"
    held = opened(history.warehouse).rows(INPUTS, "capture", "path").to_pylist()
    files = {Path(row["path"]).name for row in held if row["capture"] == "night-1"}
    assert files == {file.name for file in (history.folder / "night-1").iterdir()}
