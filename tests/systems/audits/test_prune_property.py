"""Whatever is pruned, and when: no answer becomes firmer, neither of what is there nor of what is copied later."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.captures import answers
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.errors import WarehouseError
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.questions.pruning import prune
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings
from txn_analysis.verdict import Verdict

DAY_MS, START_MS = 86_400_000, 1_795_230_000_000
CLUSTERS = {
    "kafka-4.2": ("capture-1", "capture-2", "capture-3"),
    "kafka-4.2-lost-marker": ("capture-1", "capture-2"),
    "kafka-4.2-mixed": ("capture-1", "capture-2"),
}
# Dumps one by one; of log directories the folders of partitions and the files beside them.
PARTS = ("segments/*", "transaction-state/*", "log-dirs/*/*")
FILES = {
    (cluster, capture): sorted(path for part in PARTS[:2] for path in (CASES / cluster / capture).glob(part))
    or sorted((CASES / cluster / capture).glob(PARTS[2]))
    for cluster, captures in CLUSTERS.items()
    for capture in captures
}


class Night(NamedTuple):
    """The files of one night, and the day on which they were copied."""

    files: tuple[Path, ...]
    day: int


class History(NamedTuple):
    """Nights of one cluster; before the last one something is pruned."""

    nights: tuple[Night, ...]
    keep_days: int
    words: dict[str, bool]


def recognised(files: Sequence[Path]) -> Iterator[Path]:
    """Files of a log directory none of whose folders was copied are refused."""
    copied = {file.parent for file in files if file.is_dir()}
    return (file for file in files if file.is_dir() or file.suffix == ".txt" or file.parent in copied)


@st.composite
def histories(draw: st.DrawFn) -> History:
    cluster = draw(st.sampled_from(sorted(CLUSTERS)))
    count = draw(st.integers(3, 4))
    captures = sorted(draw(st.lists(st.sampled_from(CLUSTERS[cluster]), min_size=count, max_size=count)))
    days = sorted(draw(st.lists(st.integers(0, 60), min_size=count, max_size=count, unique=True)))
    nights = []
    for capture, day in zip(captures, days, strict=True):
        every = FILES[cluster, capture]
        without = draw(st.sets(st.sampled_from(every), max_size=len(every) // 2))
        nights.append(Night(tuple(recognised([file for file in every if file not in without])), day))
    words = draw(st.fixed_dictionaries({"state_copied_last": st.booleans(), "no_records_lost": st.booleans()}))
    return History(tuple(nights), draw(st.integers(1, 5)), words)


def audited(folder: Path, number: int, history: History) -> AuditReport:
    night = history.nights[number]
    said = {"warehouse": str(folder), "capture": f"night-{number}", "as_of_ms": START_MS + night.day * DAY_MS}
    asked = Settings.model_validate({"transaction_state_partitions": 4, "max_clock_skew_ms": 0} | history.words | said)
    return steps.audit(no_session, [str(file) for file in night.files], asked)


def rejudged(folder: Path, number: int, history: History) -> AuditReport:
    night = history.nights[number]
    said = {"warehouse": str(folder), "capture": f"night-{number}", "as_of_ms": START_MS + night.day * DAY_MS}
    asked = Settings.model_validate({"transaction_state_partitions": 4, "max_clock_skew_ms": 0} | history.words | said)
    steps.reconstruct(no_session, asked)
    run = steps.judge(no_session, asked)
    return load_report(opened(folder), asked, run.run_id)


@pytest.mark.cluster  # four audits for each example
@settings(max_examples=8)
@given(histories())
def test_no_answer_becomes_firmer(history: History) -> None:
    with tempfile.TemporaryDirectory(prefix="txn-analysis-") as made:
        whole, pruned = Path(made) / "whole", Path(made) / "pruned"
        for number in range(len(history.nights) - 1):
            latest = audited(whole, number, history)
        shutil.copytree(whole, pruned)
        now_ms = START_MS + 1000 * DAY_MS
        prune(opened(pruned), history.keep_days * DAY_MS, now_ms, 0)
        last = len(history.nights) - 1
        expected = answers(audited(whole, last, history))
        try:
            assert answers(rejudged(pruned, last - 1, history)) == answers(latest)
            found = answers(audited(pruned, last, history))
            for place, (verdict, rule) in found.items():
                assert verdict is Verdict.INCONCLUSIVE or (verdict, rule) == expected[place], (place, rule)
            assert found.keys() <= expected.keys()
            gone = expected.keys() - found.keys()  # a later capture that stays shows their end
            assert gone & answers(latest).keys() == set()
            assert all(expected[place] == (Verdict.INCONCLUSIVE, "evidence_broken") for place in gone)
        except WarehouseError as refusal:  # its brokers' clocks are behind those of the capture by which was pruned
            if "is older than the newest one when prune-" not in str(refusal):
                raise
