from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.report import rows
from txn_analysis.advise.abort_plan import AbortRecord, abort_plan
from txn_analysis.advise.renderings import commands, ndjson
from txn_analysis.config import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done

PLAN = list(
    abort_plan([rows.finding(coordinator_epoch_basis="unknown"), rows.live_finding()], Settings(), rows.AS_OF_MS)
)


@pytest.fixture(autouse=True)
def plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def records(settings: Settings, run_id: str | None) -> list[AbortRecord]:
        return [] if run_id == "clean" else PLAN

    monkeypatch.setattr("txn_analysis.cli.plan_verb._records", records)


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_request_goes_to_stdout_and_what_is_left_out_to_stderr(command: Callable[..., Done], api_version: int) -> None:
    done = command("abort-plan", "--api-version", str(api_version))
    (marker,) = json.loads(done.out)["markers"]
    assert (done.code, marker["producerId"], "transactionVersion" in marker) == (0, 3, api_version == 2)
    assert done.err.startswith("left out: orders-2, producer id 987654321")


@pytest.mark.parametrize("flag", ["--format", "--rendering"])
def test_other_renderings(command: Callable[..., Done], flag: str) -> None:
    assert command("abort-plan", flag, "ndjson").out == ndjson(PLAN)
    assert command("abort-plan", flag, "commands").out == commands(PLAN)


def test_empty_plan_is_a_valid_request(command: Callable[..., Done]) -> None:
    done = command("abort-plan", "--run", "clean")
    assert (done.code, json.loads(done.out)) == (0, {"markers": []})
