"""They happen again on brokers of today: the cases `busy`, `upgrade` and `mixed` of `data/cases`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.systems.e2e import busy, mixed, upgrade
from tests.systems.e2e.kept import made_anew
from tests.tools.captures import OF_MIXED, TRUE_WORDS
from tests.tools.in_memory import audited

pytestmark = [pytest.mark.e2e, pytest.mark.lengthy]


@pytest.mark.parametrize(
    ("make", "words"),
    [(busy.make, TRUE_WORDS), (upgrade.make, TRUE_WORDS), (mixed.make, OF_MIXED)],
    ids=["busy", "upgrade", "mixed"],
)
def test_verdicts_are_what_happened(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    make: Callable[[Path, Path], None],
    words: tuple[tuple[str, Any], ...],
) -> None:
    case = tmp_path / "case"
    made_anew(case, make)
    names = ("topic", "partition", "producer_id", "verdict", "rule")
    for capture in sorted(case.glob("capture-*")):
        rows = json.loads((capture / "expected.json").read_text())["open_transactions"]
        report = audited(monkeypatch, [capture / "log-dirs"], **dict(words))
        found = {(f.topic, f.partition, f.producer_id, f.verdict, f.rule) for f in report.findings}
        assert found == {tuple(row[name] for name in names) for row in rows}
