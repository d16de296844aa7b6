"""They happen again on brokers of today: the cases `busy`, `upgrade` and `mixed` of `data/cases`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.captures import OF_MIXED, PARAMETERS, TRUE_WORDS
from tests.e2e import busy, mixed, upgrade
from tests.e2e.kept import made_anew
from tests.log_dir.at_hand import answer_for
from txn_analysis.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.lengthy]


@pytest.mark.parametrize(
    ("make", "words"),
    [(busy.make, TRUE_WORDS), (upgrade.make, TRUE_WORDS), (mixed.make, OF_MIXED)],
    ids=["busy", "upgrade", "mixed"],
)
def test_verdicts_are_what_happened(
    tmp_path: Path, make: Callable[[Path, Path], None], words: tuple[tuple[str, Any], ...]
) -> None:
    case = tmp_path / "case"
    made_anew(case, make)
    names = ("topic", "partition", "producer_id", "verdict", "rule")
    for capture in sorted(case.glob("capture-*")):
        rows = json.loads((capture / "expected.json").read_text())["open_transactions"]
        answer = answer_for(capture / "log-dirs", Settings.model_validate(PARAMETERS | dict(words)))
        found = {(f.topic, f.partition, f.producer_id, f.verdict.value, f.rule) for f in answer.findings}
        assert found == {tuple(row[name] for name in names) for row in rows}
