import json
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.tools import report_rows as rows
from tests.tools.program import program
from tests.unit.cli.stubs import Library
from txn_analysis.errors import AuditError, InputError
from txn_analysis.pipeline.ingest import Ingested
from txn_analysis.report.figures import MOST_FINDINGS, Reader
from txn_analysis.report.model import AuditReport
from txn_analysis.report.pictures import Pictures
from txn_analysis.report.text_report import text_report
from txn_analysis.spark.interrupts import Interrupted

pytestmark = pytest.mark.usefixtures("library")

READ_MS = rows.AS_OF_MS + 60_000


def report_with(*verdicts: str) -> AuditReport:
    """One finding a verdict, each of a producer of its own."""
    found = (rows.finding(verdict=one, finding_id=f"f{n}", producer_id=n) for n, one in enumerate(verdicts))
    return rows.report(*found)


@pytest.fixture(autouse=True)
def read_a_minute_after_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn_analysis.cli.audit_verbs.now_ms", lambda: READ_MS)


def text_read_now(report: AuditReport) -> str:
    return text_report(report, reader=Reader(now_ms=READ_MS))


@pytest.mark.parametrize(
    ("verdicts", "words", "code"),
    [
        ((), (), 0),
        (("suspect", "inconclusive"), (), 3),
        (("suspect", "inconclusive"), ("--accept-inconclusive",), 0),
        (("suspect", "inconclusive"), ("--exit-zero",), 0),
        (("suspect",), (), 0),
        (("hanging",), (), 1),
        (("hanging",), ("--exit-zero",), 0),
        (("suspect",), ("--fail-on", "suspect"), 1),
        (("inconclusive",), ("--fail-on", "suspect"), 3),
        (("inconclusive",), ("--fail-on", "inconclusive"), 1),
        (("hanging", "inconclusive"), ("--accept-inconclusive",), 1),
        (("in_progress",), ("--fail-on", "in_progress"), 1),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_exit_code_of_audit(
    library: Library,
    dump: str,
    verdicts: tuple[str, ...],
    words: tuple[str, ...],
    code: int,
    form: str,
) -> None:
    library.returns("audit", report_with(*verdicts))
    assert program("audit", dump, "--format", form, *words).code == code


def test_report_goes_to_stdout_alone(library: Library, dump: str) -> None:
    library.returns("audit", report_with("hanging"))
    done = program("audit", dump)
    assert done.out == text_read_now(report_with("hanging"))
    assert done.err == "txn-analysis: finding files: 1 file, 76 B ... 0.0 s\n"


def test_a_quiet_audit_says_nothing_of_its_progress(library: Library, dump: str) -> None:
    library.returns("audit", report_with("hanging"))
    assert program("audit", dump, "--quiet").err == ""
    assert program("audit", dump, "-q").out == text_read_now(report_with("hanging"))
    assert program("audit", dump).err != ""


def test_depth_is_still_understood(library: Library, dump: str) -> None:
    library.returns("audit", report_with("hanging"))
    done = program("audit", dump, "-q", "--depth", "quick")
    assert (done.code, done.out) == (1, text_read_now(report_with("hanging")))
    assert done.err == "note: --depth: no effect here; every batch is kept\n"


def test_commands_in_the_report_find_the_warehouse(library: Library, dump: str) -> None:
    library.returns("audit", report_with("hanging"))
    assert "abort-plan --run run-1 --warehouse 'my audits'" in program("audit", dump, "--warehouse", "my audits").out


def test_flags_reach_the_settings(library: Library, dump: str) -> None:
    library.returns("audit", report_with())
    flags = "--cluster c --capture n --as-of 2026-11-21T03:00:00Z --transaction-max-timeout-ms 1 --max-clock-skew-ms 0"
    words = "--transaction-state-partitions 4 --transaction-state-complete --state-copied-last --skip-unrecognised"
    assert program("audit", dump, *flags.split(), *words.split()).code == 0
    _, paths, settings, _ = library.calls[0]
    assert paths == [dump]
    assert (settings.cluster, settings.capture, settings.as_of_ms) == ("c", "n", rows.AS_OF_MS)
    assert (settings.transaction_max_timeout_ms, settings.max_clock_skew_ms) == (1, 0)
    assert settings.transaction_state_partitions == 4
    assert settings.transaction_state_complete and settings.state_copied_last and settings.skip_unrecognised  # noqa: PT018 - the three flags are one line


def test_flags_beat_the_environment_and_the_file(
    library: Library, dump: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.returns("audit", report_with())
    file = tmp_path / "audit.toml"
    file.write_text('cluster = "file"\ncapture = "file"\nwarehouse = "file"\nstate_copied_last = true\n')
    monkeypatch.setenv("TXN_ANALYSIS_CLUSTER", "environment")
    monkeypatch.setenv("TXN_ANALYSIS_CAPTURE", "environment")
    program("audit", dump, "--config", str(file), "--cluster", "flag", "--no-state-copied-last")
    settings = library.calls[0][2]
    assert (settings.cluster, settings.capture, settings.warehouse) == ("flag", "environment", "file")
    assert settings.state_copied_last is False


def test_every_bad_input_has_its_own_line(library: Library, dump: str) -> None:
    library.returns("audit", InputError(["a.txt: offset 7: no dump", "b\x1b[2J.txt: empty"]))
    done = program("audit", dump)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(" s\nerror: a.txt: offset 7: no dump\nerror: b\\x1b[2J.txt: empty\n")


def test_a_bug_keeps_its_traceback_and_does_not_end_as_if_something_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txn_analysis.cli.plan_verbs._checked", Mock(side_effect=KeyError("a bug")))
    done = program("abort-plan", "--check", "plan.ndjson")
    assert (done.code, done.out) == (2, "")
    assert done.err.rstrip().endswith("KeyError: 'a bug'")


def test_debug_shows_the_traceback(library: Library, dump: str) -> None:
    library.returns("audit", AuditError("no"))
    assert "Traceback" not in program("audit", dump).err
    done = program("audit", dump, "--debug")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.endswith("error: no\n")


def test_typer_makes_no_error_of_an_interrupt(library: Library, dump: str) -> None:
    library.returns("audit", KeyboardInterrupt())
    with pytest.raises(Interrupted):
        program("audit", dump)


def test_report_of_a_named_run(library: Library) -> None:
    library.returns("load_report", report_with("hanging"))
    done = program("report", "--run", "run-1")
    assert (done.code, library.calls[0][2]) == (1, "run-1")
    assert done.out == text_read_now(report_with("hanging"))


@pytest.mark.parametrize("verb", ["audit", "report"])
def test_old_files_are_said_to_be_old_whatever_the_form(library: Library, dump: str, tmp_path: Path, verb: str) -> None:
    for name in ("audit", "load_report"):
        library.returns(name, report_with("hanging"))
    library.returns("pictures", Pictures())
    page = tmp_path / "page.html"
    words = [verb, *([dump] if verb == "audit" else []), "-o", str(page), "-o", "-"]
    done = program(*words, "--now", "2028-11-21T03:00:00Z")
    assert done.code == 1
    for shown in (done.out, page.read_text()):
        assert "731 d 0 h ago" in shown
        assert "a plan from these files has expired" in shown
        assert "abort-plan" not in shown
    tonight = program(*words).out
    assert "txn-analysis abort-plan" in tonight
    assert "copied at         2026-11-21T03:00:00.000Z, 1 min 0 s ago: " in tonight


def test_a_moment_that_is_none_is_refused(library: Library) -> None:
    library.returns("load_report", report_with("hanging"))
    done = program("report", "--now", "yesterday")
    assert (done.code, done.out) == (2, "")
    assert "Error: Invalid value for '--now': yesterday: is neither" in done.err


def test_the_json_report_has_a_schema(library: Library) -> None:
    library.returns("load_report", report_with("hanging", "inconclusive"))
    schema = json.loads(program("report", "--schema").out)
    report = json.loads(program("report", "--format", "json").out)
    assert schema["properties"]["schema_version"]["const"] == report["schema_version"]
    assert_described(report, schema, schema)


def assert_described(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> None:
    """Each object has just the fields that its schema has, all of them, as deep as they go."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    for other in schema.get("anyOf", []):
        if value is not None and other.get("type") != "null":
            assert_described(value, other, whole)
    if isinstance(value, dict) and "properties" in schema:
        assert list(value) == list(schema["properties"])
        assert set(schema["required"]) == value.keys()
        for name, part in value.items():
            assert_described(part, schema["properties"][name], whole)
    for item in value if isinstance(value, list) else ():
        assert_described(item, schema["items"], whole)


def test_report_of_some_topics(library: Library) -> None:
    library.returns("load_report", report_with("hanging"))
    program("report", "--topic", "orders", "--topic", "payments")
    assert library.calls[0][3] == ("orders", "payments")


def test_reading_verbs_note_flags_without_effect(library: Library) -> None:
    library.returns("load_report", report_with())
    done = program("report", "--max-clock-skew-ms", "0", "--state-copied-last")
    assert done.code == 0
    assert done.err.startswith("note: --state-copied-last, --max-clock-skew-ms: no effect here")


def test_ingest_says_what_it_read(library: Library, dump: str) -> None:
    library.returns("ingest", Ingested("tonight", 2, 1, text_bytes=48_000, parsed_bytes=47_990, rejected_bytes=10))
    done = program("audit", "--no-judge", dump)
    assert done.code == 0
    assert (
        done.out
        == "capture tonight: 2 inputs, 1 new to the warehouse; 47990 parsed + 10 rejected = 48000 bytes of text\n"
    )
    assert json.loads(program("audit", "--no-judge", dump, "--format", "json").out)["input_count"] == 2


def test_output_file_is_written_whole(library: Library, dump: str, tmp_path: Path) -> None:
    library.returns("audit", report_with("hanging"))
    target = tmp_path / "report.json"
    target.write_text("old")
    done = program("audit", dump, "--format", "json", "-o", str(target))
    assert (done.code, done.out) == (1, "")
    assert json.loads(target.read_text())["schema_version"] == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["orders-0.txt", "report.json"]


def test_one_audit_writes_every_form_by_its_suffix(library: Library, dump: str, tmp_path: Path) -> None:
    library.returns("audit", report_with("hanging"))
    library.returns("pictures", Pictures())
    files = {suffix: tmp_path / f"night.{suffix}" for suffix in ("txt", "json", "ndjson", "csv", "html", "prom")}
    done = program("audit", dump, *(word for file in files.values() for word in ("-o", str(file))))
    assert (done.code, done.out) == (1, "")
    begins = {"txt": "HANGING: 1", "json": "{\n", "csv": "verdict,rule", "html": "<!doctype html>", "prom": "# HELP"}
    for suffix, beginning in begins.items():
        assert files[suffix].read_text().startswith(beginning)
    assert json.loads(files["ndjson"].read_text()) == json.loads(files["json"].read_text())["findings"][0]


@pytest.mark.parametrize(
    "words",
    [("-o", "-", "-o", "night.prom", "-o", "night.html"), ("--prometheus", "night.prom", "--html=night.html")],
    ids=["now", "as scripts have it"],
)
def test_stdout_has_the_form_that_is_asked_for_beside_files_of_other_forms(
    library: Library,
    dump: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    library.returns("audit", report_with("hanging"))
    library.returns("pictures", Pictures())
    monkeypatch.chdir(tmp_path)
    done = program("audit", dump, "--format", "json", *words)
    assert json.loads(done.out)["schema_version"] == 3
    assert (tmp_path / "night.prom").read_text().startswith("# HELP")
    assert (tmp_path / "night.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(("verb", "name"), [("audit", "night"), ("audit", "night.xlsx"), ("report", "night.prom")])
def test_a_file_whose_suffix_says_nothing_needs_a_format(
    library: Library, dump: str, tmp_path: Path, verb: str, name: str
) -> None:
    library.returns("audit", report_with())
    library.returns("load_report", report_with())
    words = (verb, dump) if verb == "audit" else (verb,)
    done = program(*words, "-o", str(tmp_path / name))
    assert (done.code, library.calls) == (2, [])
    assert f"{name}: its suffix says no form of this verb (.txt, .json" in done.err
    assert program(*words, "-o", str(tmp_path / name), "--format", "json").code == 0
    assert json.loads((tmp_path / name).read_text())["schema_version"] == 3


def test_output_file_survives_a_failed_audit(library: Library, dump: str, tmp_path: Path) -> None:
    library.returns("audit", AuditError("no"))
    target = tmp_path / "report.json"
    target.write_text("old")
    assert program("audit", dump, "-o", str(target)).code == 2
    assert target.read_text() == "old"


def test_output_device_is_written_to(library: Library, dump: str) -> None:
    library.returns("audit", report_with())
    assert program("audit", dump, "-o", os.devnull).code == 0


@pytest.mark.parametrize("form", ["text", "html", "prometheus"])
def test_output_that_cannot_be_written_is_named(library: Library, dump: str, form: str) -> None:
    library.returns("audit", report_with())
    library.returns("pictures", Pictures())
    done = program("audit", dump, "--format", form, "-o", "/dev/full")
    assert done.code == 2
    assert done.err.endswith(
        "error: -o /dev/full: cannot be written: No space left on device; fix that, or give another FILE\n"
    )


@pytest.mark.parametrize("verb", ["audit", "report"])
def test_report_as_page(library: Library, dump: str, verb: str) -> None:
    library.returns("audit", report_with("hanging"))
    library.returns("load_report", report_with("hanging"))
    library.returns("pictures", Pictures())
    done = program(verb, *([dump] if verb == "audit" else []), "--format", "html", "--warehouse", "/data/my audit")
    assert done.code == 1
    shown = re.sub("</?span[^>]*>", "", done.out)
    assert "abort-plan --run run-1 --warehouse &#x27;/data/my audit&#x27; --format commands" in shown


def test_page_that_cannot_hold_all_links_a_table_of_all(library: Library, tmp_path: Path) -> None:
    library.returns("load_report", report_with(*["hanging"] * (MOST_FINDINGS + 1)))
    library.returns("pictures", Pictures())
    program("report", "--format", "html", "-o", str(tmp_path / "tonight.html"))
    assert 'href="tonight.findings.csv"' in (tmp_path / "tonight.html").read_text()
    assert len((tmp_path / "tonight.findings.csv").read_text().splitlines()) == MOST_FINDINGS + 2


def test_a_text_that_cannot_hold_all_says_how_many_more_there_are_and_where(library: Library) -> None:
    library.returns("load_report", report_with(*["hanging"] * (MOST_FINDINGS + 30)))
    said = " ".join(program("report", "--warehouse", "/data/audit").out.split())
    assert "485 more open transactions not shown: 485 hanging; 485 of orders." in said
    assert "txn-analysis report --run run-1 --warehouse /data/audit --format ndjson" in said


def test_findings_are_printed_one_a_line(library: Library) -> None:
    library.returns("load_report", report_with("hanging", "suspect"))
    lines = [json.loads(line) for line in program("report", "--format", "ndjson").out.splitlines()]
    whole = json.loads(program("report", "--format", "json").out)
    assert lines == whole["findings"]
