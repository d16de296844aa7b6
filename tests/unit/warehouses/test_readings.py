"""What an earlier reading believed makes no answer firmer than the files do: given again a file is read again, and
without it what was read counts against `hanging`."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import PARAMETERS
from tests.tools.program import program
from tests.tools.repository import CASES
from tests.tools.sessions import no_session, opened
from tests.unit.warehouses.kept import CUT, FORGED, NIGHTS, unpacked
from txn_analysis.errors import InputError
from txn_analysis.pipeline import steps
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.report.model import AuditReport
from txn_analysis.runs.past_run import sections_of
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings
from txn_analysis.tables import INPUTS, RUNS, TRANSACTION_STATES, readings
from txn_analysis.tables.inputs import ReadInput
from txn_analysis.tables.readings import ChangedReading
from txn_analysis.verdict import Verdict
from txn_analysis.warehouse.commits import inputs_of

NIGHT = CASES / "kafka-2.8"
COMPLETE = {"transaction_state_complete": True, "capture": "night-1"}
VICTIM = ("orders", 0, 5)  # its id, billing-worker-17, is alive; the export of 1.0.0's warehouse "removes" it


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """A night of 1.0.0, whose reader believed a line that a client forged."""
    return unpacked(FORGED, tmp_path)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """The file with the forged line."""
    file = tmp_path / "forged-state.txt"
    text = (NIGHT / "console/transaction-state.txt").read_bytes()
    file.write_bytes(text + b"a::NULL\nbilling-worker-17::NULL\n")
    return file


def audited(folder: Path, *files: Path, **said: Any) -> AuditReport:
    given = [str(NIGHT / "capture-1/segments"), *map(str, files)]
    settings = Settings.model_validate(PARAMETERS | COMPLETE | {"warehouse": str(folder)} | said)
    return steps.audit(no_session, given, settings)


def answers(report: AuditReport) -> dict[tuple[str, int, int], tuple[Verdict, str, bool]]:
    return {(f.topic, f.partition, f.producer_id): (f.verdict, f.rule, f.producer_may_return) for f in report.findings}


def stored(folder: Path, run_id: str | None = None) -> AuditReport:
    settings = Settings.model_validate({"warehouse": str(folder)})
    return load_report(opened(folder), settings, run_id)


def test_1_0_0_believed_it_and_took_the_guard_from_the_abort(forged: Path) -> None:
    verdict, _, may_return = answers(stored(forged))[VICTIM]
    assert (verdict, may_return) == (Verdict.HANGING, False)


def test_with_the_file_the_answers_are_those_of_the_files(forged: Path, export: Path, tmp_path: Path) -> None:
    expected = answers(audited(tmp_path / "anew", export))
    assert answers(audited(forged, export)) == expected
    assert expected[VICTIM][2]


def test_what_is_read_again_is_read_once_and_counts_in_every_capture(forged: Path, export: Path) -> None:
    warehouse = opened(forged)
    before = {row["input_id"]: row["ingest_id"] for row in warehouse.rows(INPUTS).to_pylist()}
    for name in ("night-1", "night-1", "another"):
        audited(forged, export, capture=name)
    after = warehouse.rows(INPUTS).to_pylist()
    again = {row["input_id"] for row in after if row["ingest_id"] != before[row["input_id"]]}
    assert again == {row["input_id"] for row in after if row["path"].endswith("forged-state.txt")}
    assert {row["reading_version"] for row in after if row["input_id"] in again} == {readings.READING_VERSION}
    assert len({row["ingest_id"] for row in after}) == 2
    assert {row["capture"] for row in after} == {"night-1", "another"}


def test_without_the_file_nothing_hangs(forged: Path) -> None:
    found = audited(forged)
    assert {f.verdict for f in found.findings} & {Verdict.HANGING, Verdict.SUSPECT} == set()
    assert answers(found)[VICTIM][:2] == (Verdict.INCONCLUSIVE, "state_incomplete")
    missing = {text for f in found.findings if f.rule == "state_incomplete" for text in f.missing_evidence}
    assert any("was read by an earlier version" in text and "audit the file again" in text for text in missing)


def test_without_the_file_a_later_night_is_no_firmer_than_from_the_files(
    forged: Path, export: Path, tmp_path: Path
) -> None:
    """The next night has another export; the forged one lies behind it."""
    clean = NIGHT / "console/transaction-state.txt"
    later = tmp_path / "later.txt"
    later.write_bytes(clean.read_bytes() + b"somebody-else::NULL\n")
    anew = tmp_path / "anew"
    audited(anew, export)
    expected = answers(audited(anew, later, capture="night-2"))
    found = answers(audited(forged, later, capture="night-2"))
    firm = {Verdict.HANGING, Verdict.SUSPECT}
    for place, (verdict, rule, may_return) in found.items():
        assert verdict not in firm or (verdict, rule, may_return) == expected[place], place


def test_no_plan_of_the_run_of_1_0_0_is_printed(forged: Path) -> None:
    for verb, code in (("abort-plan", 2), ("report", 1), ("list", 0)):
        done = program(verb, "--warehouse", forged)
        assert (done.code, bool(done.out)) == (code, verb != "abort-plan")
        assert "in forged-state.txt: audit its files again" in " ".join(done.err.split())


def test_a_run_of_the_files_read_again_prints_its_plan(forged: Path, export: Path) -> None:
    audited(forged, export)
    done = program("abort-plan", "--expired", "--warehouse", forged, "--format", "ndjson")
    assert (done.code, bool(done.out), "earlier version" in done.err) == (0, True, False)


@pytest.mark.parametrize("kind", ["log", "state"])
def test_a_doubt_of_batches_leaves_nothing_of_them_hanging(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """Should a later version find that dumps were read too trustingly."""
    doubt = ChangedReading(readings.READING_VERSION + 1, kind, "believes lines that a client can have made")
    monkeypatch.setattr(readings, "CHANGED_READINGS", (doubt,))
    nights = unpacked(NIGHTS, tmp_path)
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(nights), "capture": "night-2"})
    steps.reconstruct(no_session, settings)
    report = stored(nights, steps.judge(no_session, settings).run_id)
    assert {f.verdict for f in report.findings} & {Verdict.HANGING, Verdict.SUSPECT} == set()
    assert any("was read by an earlier version" in text for f in report.findings for text in f.missing_evidence)


def test_where_the_reading_is_the_same_nothing_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(readings, "CHANGED_READINGS", ())
    nights = unpacked(NIGHTS, tmp_path)
    night = CASES / "kafka-4.2/capture-2"
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(nights), "capture": "night-2"})
    before = opened(nights).versions([TRANSACTION_STATES])
    steps.audit(no_session, [str(night / part) for part in ("segments", "transaction-state")], settings)
    assert opened(nights).versions([TRANSACTION_STATES]) == before


def test_of_what_was_not_understood_another_reading_is_asked(tmp_path: Path) -> None:
    """Text that 1.0.0 rejected can be names of states, which it counted as undecodable, or the end of a run."""
    warehouse = opened(unpacked(NIGHTS, tmp_path))
    state = next(row for row in warehouse.records(ReadInput, INPUTS) if row.kind == "transaction_state_dump")
    assert not state.is_read_otherwise
    cut = state._replace(rejected_bytes=1, parsed_bytes=state.parsed_bytes - 1)
    assert cut.is_read_otherwise
    assert not cut._replace(reading_version=readings.READING_VERSION).is_read_otherwise
    assert all("behind a line that says that the tool stopped" in (one.doubt or "") for one in sections_of(cut))
    assert not any(one.doubt for one in sections_of(state))
    assert not any(one.doubt for one in sections_of(cut._replace(reading_version=readings.READING_VERSION)))


def test_a_run_says_which_reading_it_knew(forged: Path) -> None:
    audited(forged)
    warehouse = opened(forged)
    assert warehouse.rows(RUNS, "reading_version")["reading_version"].to_pylist()[-1] == readings.READING_VERSION


CUT_HANG = ("payments", 0, 3)  # it hangs before the cut, and 1.0.0 took what lies behind the cut for not written
CUT_LINES = 349


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A night of 1.0.0, which took a deep dump that was cut inside a batch for a whole one."""
    return unpacked(CUT, tmp_path)


def judged_again(folder: Path) -> AuditReport:
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(folder), "capture": "night-1"})
    steps.reconstruct(no_session, settings)
    return stored(folder, steps.judge(no_session, settings).run_id)


def test_a_dump_that_shows_its_cut_leaves_nothing_of_its_partition_hanging(cut: Path) -> None:
    assert answers(stored(cut))[CUT_HANG][0] == Verdict.HANGING
    report = judged_again(cut)
    assert answers(report)[CUT_HANG][0] == Verdict.INCONCLUSIVE
    missing = {text for f in report.findings if f.topic == "payments" for text in f.missing_evidence}
    assert any("goes on where a dump shows that it was cut" in text for text in missing)


def test_what_is_whole_beside_a_cut_dump_is_believed(cut: Path) -> None:
    """The dump of orders-1 shows no cut, nor do those of the state."""
    warehouse = opened(cut)
    doubted = {item.path for item in held_inputs_of(cut) for section in sections_of(item) if section.doubt}
    assert doubted == {"cut-payments-0.txt"}
    assert {item.path for item in held_inputs_of(cut) if item.is_read_otherwise} == doubted
    assert len(warehouse.rows(INPUTS)) > len(doubted)


def test_no_plan_that_rests_on_a_cut_dump_is_printed(cut: Path) -> None:
    done = program("abort-plan", "--expired", "--warehouse", cut)
    assert (done.code, done.out) == (2, "")
    assert "in cut-payments-0.txt: audit its files again" in " ".join(done.err.split())


@pytest.fixture
def again(tmp_path: Path) -> Path:
    """The file that was cut."""
    file = tmp_path / "cut-payments-0.txt"
    whole = CASES / "kafka-4.2/capture-1/segments/n2.payments-0.txt"
    file.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:CUT_LINES]))
    return file


def test_a_cut_dump_that_is_given_again_is_refused(cut: Path, again: Path) -> None:
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(cut), "capture": "night-1"})
    with pytest.raises(InputError, match="the dump ends inside this batch"):
        steps.audit(no_session, [str(again)], settings)


def test_a_run_rests_on_what_it_believed_also_where_the_cut_dump_was_read_again(cut: Path, again: Path) -> None:
    warehouse = opened(cut)
    (run_id,) = warehouse.rows(RUNS, "run_id")["run_id"].to_pylist()
    another = {"skip_unrecognised": True, "max_clock_skew_ms": 1}  # by which it is another run
    settings = Settings.model_validate(PARAMETERS | {"warehouse": str(cut), "capture": "night-1"} | another)
    report = steps.audit(no_session, [str(again)], settings)
    assert answers(report)[CUT_HANG][0] == Verdict.INCONCLUSIVE
    assert not any(item.is_read_otherwise for item in held_inputs_of(cut))
    believed = run_tables(opened(cut), "default", run_id).believed_inputs
    assert [file.rpartition("/")[2] for file in believed] == ["cut-payments-0.txt"]


def held_inputs_of(folder: Path) -> list[ReadInput]:
    return inputs_of(opened(folder))
