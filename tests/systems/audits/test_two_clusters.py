"""The files of two clusters, in one pile or one after another: said with their paths, and what to do."""

import re
import shutil
from pathlib import Path

from tests.tools.captures import run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from txn_analysis.pipeline import steps
from txn_analysis.report.model import AuditReport
from txn_analysis.report.text_report import text_report
from txn_analysis.runs.run_tables import forget
from txn_analysis.settings import Settings

OLD, NEW = "kafka-2.8/capture-1", "kafka-4.2/capture-1"
PARTS = ("segments", "transaction-state")


def audited(folder: Path, *clusters: str) -> AuditReport:
    """Captures of clusters, in folders named like their Kafka."""
    paths = []
    for name in clusters:
        for part in PARTS:
            place = folder / "pile" / name.replace("/", "-") / part
            shutil.copytree(CASES / name / part, place, dirs_exist_ok=True)
            paths.append(str(place))
    return run_audit(no_session, str(folder / "w"), paths, cluster="mine")


def words(report: AuditReport) -> str:
    return " ".join(text_report(report).split())


def test_in_one_pile_they_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    report = audited(tmp_path, OLD, NEW)
    assert report.hanging == ()
    said = words(report)
    folders = [f"{tmp_path}/pile/{name.replace('/', '-')}" for name in (OLD, NEW)]
    assert f"look like those of two clusters: {folders[0]} beside {folders[1]} (they share no batch in 11 of" in said
    assert "audit these folders apart, each with its own `--cluster` or `--warehouse`" in said
    assert "copy all files of" not in said
    assert re.findall(r"\b[0-9a-f]{32}\b", said) == []


def test_one_after_another_the_earlier_capture_is_named_and_the_way_out_works(tmp_path: Path) -> None:
    audited(tmp_path, NEW)
    spoiled = audited(tmp_path, OLD)
    (earlier,) = spoiled.run.earlier_captures
    said = words(spoiled)
    assert (
        f"and capture {earlier} ({tmp_path}/pile/kafka-4.2-capture-1) in this warehouse look like those of two" in said
    )
    assert f"`txn-analysis forget --cluster mine --capture {earlier}`" in said
    forget(opened(tmp_path / "w"), "mine", earlier)
    again = audited(tmp_path, OLD)
    assert len(again.hanging) == 4
    assert "two clusters" not in words(again)


def test_nights_of_one_cluster_are_not_taken_for_two(tmp_path: Path) -> None:
    audited(tmp_path, NEW)
    assert "two clusters" not in words(audited(tmp_path, "kafka-4.2/capture-3"))


def test_an_export_alone_is_audited_behind_a_capture_with_logs(tmp_path: Path) -> None:
    settings = Settings(warehouse=str(tmp_path / "w"))
    for paths in ([str(CASES / NEW / part) for part in PARTS], [str(CASES / "kafka-4.2/console")]):
        report = steps.audit(no_session, paths, settings)
    assert len(report.run.earlier_captures) == 1
    assert "two clusters" not in words(report)
