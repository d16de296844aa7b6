"""A capture is taken out of a warehouse: later audits judge as if it had never been there, earlier ones say so."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS, run_audit
from tests.tools.program import program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed
from txn_analysis.columns.records import records_of
from txn_analysis.errors import WarehouseError
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.run_tables import captures, forget
from txn_analysis.settings import Settings
from txn_analysis.tables import INPUTS, RUNS, Table
from txn_analysis.tables.inputs import ReadInput
from txn_analysis.warehouse.commits import commit_inputs, inputs_of

# The third night is after a repair; its files hold most of what those of the first night hold.
FIRST, SECOND, THIRD = (f"kafka-4.2/capture-{number}" for number in (1, 2, 3))
ANOTHER_CLUSTER = "kafka-2.8/capture-1"
PARTS = ("segments", "transaction-state")


def audited(folder: Path, night: str, cluster: str = "default") -> AuditReport:
    paths = [str(CASES / night / part) for part in PARTS]
    return run_audit(no_session, str(folder), paths, cluster=cluster, capture=name(night))


def name(night: str) -> str:
    return night.replace("/", "-")


def said(report: AuditReport) -> dict[str, Any]:
    """All of a report but which captures lie behind its run, and the paths of copies that are the same content."""
    return report.model_dump(exclude={"run": {"earlier_captures"}})


def test_what_is_audited_afterwards_is_judged_as_if_it_had_never_been_there(tmp_path: Path) -> None:
    with_it, without_it = tmp_path / "with it", tmp_path / "without it"
    audited(with_it, ANOTHER_CLUSTER)
    audited(with_it, FIRST)
    spoiled = audited(with_it, THIRD)
    forget(opened(with_it), "default", name(ANOTHER_CLUSTER))
    audited(without_it, FIRST)
    expected = said(audited(without_it, THIRD))
    assert said(audited(with_it, THIRD)) == expected
    assert said(spoiled) != expected


def test_the_runs_that_judged_it_are_gone_and_those_that_had_it_behind_them_say_so(tmp_path: Path) -> None:
    first, third = audited(tmp_path, FIRST), audited(tmp_path, THIRD)
    other = audited(tmp_path, FIRST, cluster="other")
    gone = forget(opened(tmp_path), "default", name(FIRST))
    assert (gone.runs, gone.resting_runs) == ((first.run.run_id,), (third.run.run_id,))
    assert gone.abort_count == len(first.hanging) > 0
    assert [(c.cluster, c.name, c.runs) for c in captures(opened(tmp_path))] == [
        ("default", name(THIRD), (third.run.run_id,)),
        ("other", name(FIRST), (other.run.run_id,)),
    ]
    again = load_report(opened(tmp_path), Settings(warehouse=str(tmp_path)))
    assert again.run.forgotten_captures == (name(FIRST),)
    assert again.findings == third.findings


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose last run rests on a capture that was forgotten."""
    folder = tmp_path_factory.mktemp("resting") / "warehouse"
    audited(folder, FIRST)
    audited(folder, THIRD)
    forget(opened(folder), "default", name(FIRST))
    return folder


@pytest.mark.parametrize(
    ("verb", "code", "notes"),
    [("report", 1, 0), ("explain", 0, 1), ("list", 0, 1), ("verify", 3, 1), ("abort-plan", 2, 1)],
)
def test_every_verb_says_what_a_run_rests_on_and_no_plan_of_it_is_printed(
    resting: Path, verb: str, code: int, notes: int
) -> None:
    ended, out, err = program(verb, "--warehouse", resting)
    assert ended == code
    words = "This run rests on capture kafka-4.2-capture-1, forgotten since: audit its own files again"
    assert " ".join((err if notes else out).split()).count(words) == (2 if verb == "abort-plan" else 1)
    assert bool(out) == (verb != "abort-plan")


def test_it_stays_forgotten_where_other_files_come_under_its_name(resting: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(resting, tmp_path / "warehouse")
    (run_id,) = (run["run_id"] for run in listed(opened(folder), RUNS))
    right_files = [str(CASES / SECOND / part) for part in PARTS]
    steps.ingest(no_session, right_files, Settings(warehouse=str(folder), capture=name(FIRST)))
    assert load_report(opened(folder), Settings(warehouse=str(folder)), run_id).run.forgotten_captures == (name(FIRST),)
    assert program("abort-plan", "--expired", "--run", run_id, "--warehouse", folder).code == 2
    again = audited(folder, THIRD)
    assert (again.run.run_id != run_id, again.run.forgotten_captures) == (True, ())


@pytest.mark.parametrize("nights", [(FIRST,), (FIRST, SECOND)], ids=["the only one", "one of two"])
def test_killed_in_the_middle_it_is_done_by_the_same_call_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nights: tuple[str, ...]
) -> None:
    for night in nights:
        audited(tmp_path, night)
    warehouse = opened(tmp_path)
    replace = warehouse.replace

    def killed_at_inputs(rows: Any, table: Table, **slice_of: str) -> None:
        if table is INPUTS:
            raise KeyboardInterrupt
        replace(rows, table, **slice_of)

    monkeypatch.setattr(warehouse, "replace", killed_at_inputs)
    with pytest.raises(KeyboardInterrupt):
        forget(warehouse, "default", name(FIRST))
    (left,) = [c for c in captures(opened(tmp_path)) if c.name == name(FIRST)]
    assert left.runs == ()
    assert len(listed(opened(tmp_path), RUNS)) == len(nights) - 1
    assert forget(opened(tmp_path), "default", name(FIRST)).runs == ()
    assert [c.name for c in captures(opened(tmp_path))] == [name(night) for night in nights[1:]]


def test_an_ingest_that_found_its_content_before_it_was_forgotten_still_has_it(tmp_path: Path) -> None:
    """What it names must be there: state that is named and missing would make strangers of its producers."""
    expected = audited(tmp_path, FIRST)
    warehouse = opened(tmp_path)
    inputs = [row._replace(capture="later") for row in records_of(ReadInput, warehouse.rows(INPUTS))]
    held = inputs_of(warehouse, input_id=[row.input_id for row in inputs])
    forget(opened(tmp_path), "default", name(FIRST))
    commit_inputs(warehouse, inputs, held)
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(tmp_path), "capture": "later"})
    steps.reconstruct(no_session, settings)
    steps.judge(no_session, settings)
    found = load_report(opened(tmp_path), settings)
    assert [(f.topic, f.partition, f.verdict, f.rule) for f in found.findings] == [
        (f.topic, f.partition, f.verdict, f.rule) for f in expected.findings
    ]


def test_a_capture_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    audited(tmp_path, FIRST)
    with pytest.raises(WarehouseError, match=r"has no capture nope; it has kafka-4.2-capture-1"):
        forget(opened(tmp_path), "default", "nope")
    with pytest.raises(WarehouseError, match=r"cluster other has no capture kafka-4.2-capture-1; it has none"):
        forget(opened(tmp_path), "other", name(FIRST))
