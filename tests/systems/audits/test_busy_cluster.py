"""A healthy, busy cluster of transaction version 2: its state names no producer id that was used up long ago."""

import json
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.systems.e2e.busy import QUIET, TRAFFIC, USED_UP
from tests.tools.captures import PARAMETERS, TRUE_WORDS
from tests.tools.inputs import ReadInput
from tests.tools.log_dirs.at_hand import answer_for, inputs_of
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

CASE = CASES / "kafka-4.3-busy"
FOLDER = CASE / "capture-1/log-dirs"
STATE = "__transaction_state-*"


def audited(folder: Path, **settings: Any) -> Answer:
    return answer_for(folder, Settings.model_validate(PARAMETERS | settings))


@cache
def read() -> list[ReadInput]:
    return inputs_of(FOLDER)


def used_up() -> dict[int, int]:
    """Each producer id that was used up, and how many of its transactions were committed."""
    told = json.loads((CASE / "clients.json").read_text())
    return {each["producer_id"]: each["committed"] for own in told.values() for each in own[:USED_UP]}


def test_in_a_partition_that_fell_quiet_before_the_cleaner_came_nothing_is_proven() -> None:
    (finding,) = [f for f in audited(FOLDER).findings if (f.topic, f.partition) == QUIET]
    assert finding.rule == "log_may_end_early"


def test_the_logs_have_commits_that_no_record_of_the_state_can_confirm() -> None:
    """So it is on every such cluster, however healthy."""
    named = {row[name] for each in read() for row in each.records for name in row if name.endswith("producer_id")}
    batches = (row for each in read() for part in each.batches for row in part.rows().to_pylist())
    commits = Counter(row["producer_id"] for row in batches if row["marker"] == "COMMIT")
    assert len(used_up()) == 6
    for producer_id, committed in used_up().items():
        assert commits[producer_id] == committed * len(TRAFFIC)
    first = [own[0]["producer_id"] for own in json.loads((CASE / "clients.json").read_text()).values()]
    assert named.isdisjoint(first)


@pytest.mark.parametrize("other", ["kafka-4.2-rotation", "kafka-4.3-find-hanging", "kafka-4.4-upgrade"])
def test_the_state_of_another_cluster_proves_nothing(tmp_path: Path, other: str) -> None:
    """Their ids are as many, and their producer ids overlap; both words are false of such a copy."""
    for folder in [*FOLDER.glob("n1/orders-*"), *(CASES / other / "capture-1/log-dirs/n1").glob(STATE)]:
        shutil.copytree(folder, tmp_path / "n1" / folder.name)
    answer = audited(tmp_path, **dict(TRUE_WORDS))
    assert len(answer.findings) == 5
    assert not answer.hanging
