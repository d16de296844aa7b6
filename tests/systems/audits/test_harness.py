"""The harness of the torture suite answers as the audit on Spark does, row by row."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.proof.hostile.mutations import Given, Mutator
from tests.proof.hostile.subjects import real_cases, simulated
from tests.tools.captures import PARAMETERS, VARIANTS, AuditOf, Variant, all_but_last, rows_of, run_audit
from tests.tools.harness import Answer, audit_files
from tests.tools.inputs import InputReader
from tests.tools.sessions import no_session
from txn_analysis.report.model import AuditReport
from txn_analysis.settings import Settings

# The harness reads texts; brokers' own files give the rows of dumps (tests/unit/log_dir).
OF_DUMPS = [v for v in VARIANTS if "log-dirs" not in v.parts]
# A simulated cluster with all kinds of damage, and a real case with captures behind the judged one.
MUTATED = (("simulated", 3), ("real", 2))
# The name of a run is not the core's; what an open transaction costs is asked of Spark's tables as well.
NOT_ASKED_HERE = {"finding_id": "", "impact": None, "ending": None}
OF_EXPLAIN = {"rules_asked", "would_change"}  # printed by that verb alone


def as_reported(answer: Answer, of_partitions: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Findings and partitions of the harness as the report prints them; of those it has some columns."""
    shown = [{name: row[name] for name in row if name not in OF_EXPLAIN} for row in answer.findings]
    findings = [row | NOT_ASKED_HERE for row in shown]
    partitions = [{name: row[name] for name in of_partitions} | {"impact": None} for row in answer.health]
    return _sorted(findings), _sorted(partitions)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row.get("txn_start_offset"), str(row)))


def assert_alike(report: AuditReport, answer: Answer) -> None:
    reported = json.loads(report.model_dump_json())["partitions"]
    shown = [name for name in (reported[0] if reported else ()) if name != "impact"]
    findings, partitions = as_reported(answer, shown)
    assert _sorted([row | NOT_ASKED_HERE for row in rows_of(report)]) == findings
    assert _sorted([item | {"impact": None} for item in reported]) == partitions


@pytest.mark.parametrize("variant", OF_DUMPS, ids=lambda v: v.name)
def test_real_captures(reader: InputReader, audit_of: AuditOf, variant: Variant) -> None:
    folders = [Path(path) for path in variant.paths]
    files = {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}
    settings = Settings.model_validate(PARAMETERS | dict(variant.settings))
    assert_alike(audit_of(variant), audit_files(reader, {"capture": files}, settings))


@pytest.mark.parametrize(("kind", "number"), MUTATED)
def test_mutated_captures(warehouse: str, tmp_path: Path, reader: InputReader, kind: str, number: int) -> None:
    given = mutated(kind, number)
    settings = given.settings | {"cluster": tmp_path.name, "skip_unrecognised": True}
    judged = all_but_last(no_session, warehouse, tmp_path, given.captures, settings)
    report = run_audit(no_session, warehouse, [str(tmp_path / judged)], capture=judged, **settings)
    answer = audit_files(reader, given.captures, Settings.model_validate(given.settings), judged=judged)
    assert_alike(report, answer)


def mutated(kind: str, number: int) -> Given:
    source = random.Random(f"alike/{kind}/{number}")
    subject = simulated(f"alike/{number}") if kind == "simulated" else source.choice(real_cases()[:3])
    mutator = Mutator(source, subject)
    return mutator.taken_away(mutator.start())
