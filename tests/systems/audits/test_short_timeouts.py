"""Where `transaction.max.timeout.ms` is 20 s brokers refuse Kafka's own tool as it is: each fence asks for less."""

from pathlib import Path

import pytest

from tests.tools.program import program
from tests.tools.repository import CASES
from txn_analysis.cli import plan_verbs
from txn_analysis.plan.plan_file import read_plan


def test_each_verb_prints_a_fence_that_asks_for_less_than_the_runs_maximum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said_by(*words: str) -> str:
        return "".join(program(*words, "--warehouse", tmp_path / "warehouse")[1:])

    plan = tmp_path / "plan.ndjson"
    night = str(CASES / "kafka-4.2/capture-1/log-dirs")
    said_by("audit", night, "--max-clock-skew-ms", "0", "--transaction-max-timeout-ms", "20000")
    planned = said_by("abort-plan", "--expired", "--format", "ndjson", "-o", str(plan))
    due_ms = read_plan(plan.read_text(), "plan")[0].not_before_ms
    monkeypatch.setattr(plan_verbs, "now_ms", lambda: due_ms)
    said = {
        "report": said_by("report", "--now", "2026-11-21T03:00:00Z"),
        "explain": said_by("explain", "--format", "json"),
        "who": said_by("explain", "--transactional-id", "inventory-sync"),
        "abort-plan": planned,
        "--check": said_by("abort-plan", "--check", str(plan)),
    }
    fences = {name: [line for line in text.splitlines() if "forceTerminate" in line] for name, text in said.items()}
    assert {name for name, lines in fences.items() if not lines} == set()
    assert [
        line for lines in fences.values() for line in lines if "--command-config fence.properties" not in line
    ] == []
