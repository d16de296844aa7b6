import subprocess
import sys

import pytest

from tests.tools.program import program
from tests.unit.cli.stubs import Library
from txn_analysis import __version__
from txn_analysis.pipeline.ingest import Ingested
from txn_analysis.runs.ask import views
from txn_analysis.settings import Settings, flag_name
from txn_analysis.tables import ALL_TABLES

pytestmark = pytest.mark.usefixtures("library")

VERBS = (
    "audit",
    "report",
    "find-hanging",
    "list",
    "describe",
    "describe-producers",
    "explain",
    "ended",
    "query",
    "abort-plan",
    "verify",
    "accept",
    "captures",
    "forget",
    "demo",
    "copy-kit",
    "doctor",
)
GROUPS = ("Input", "What you assert", "Output", "Exit code", "Running")
OF_JUDGING = ("--as-of", "--state-copied-last", "--skip-unrecognised", "--capture")
OF_THE_EXIT_CODE = ("--fail-on", "--exit-zero", "--ok-inconclusive", "--accepted")
CONTRACT_FLAGS = (
    "--warehouse", "--as-of", "--transaction-max-timeout-ms", "--transaction-state-partitions",
    "--transaction-state-complete", "--state-copied-last", "--no-records-lost", "--max-clock-skew-ms", "--cluster",
    "--capture", "--transactional-id-expiration-ms", "--format", "-o", "--config", "--master", "--exit-zero",
    "--fail-on", "--skip-unrecognised",
)  # fmt: skip


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_bare_command_prints_help_that_names_every_verb(words: tuple[str, ...]) -> None:
    done = program(*words)
    assert (done.code, done.err) == (0, "")
    assert all(f"\n  {verb} " in done.out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_has_an_example(verb: str) -> None:
    done = program(verb, "--help")
    assert done.code == 0
    assert f"Example:\n  txn-analysis {verb}" in done.out.replace("\n    ", "\n  ").replace("  Example", "Example")


def test_audit_help_shows_the_options_of_the_contract() -> None:
    shown = program("audit", "--help").out
    assert [flag for flag in CONTRACT_FLAGS if flag not in shown] == []


def test_verbs_that_read_a_run_hide_what_only_a_new_run_could_follow() -> None:
    shown = program("list", "--help").out
    assert "--as-of" not in shown
    assert "--warehouse" in shown


def test_what_each_verb_does_is_said_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = program("--help").out
    said = {line.split()[0]: line for line in shown.partition("\nCommands:\n")[2].splitlines() if line[2:3].strip()}
    assert [verb for verb in VERBS if not said[verb].endswith(".") or said[verb].endswith("...")] == []


def test_the_options_of_an_audit_stand_in_groups() -> None:
    shown = program("audit", "--help").out
    heads = [line.rstrip(":") for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["Positional arguments", *GROUPS]
    asserted = shown.partition("\nWhat you assert:\n")[2].partition("\n\n")[0]
    assert "--state-copied-last" in asserted
    assert "--warehouse" not in asserted


@pytest.mark.parametrize(
    ("verb", "offered"),
    [
        ("audit", {*OF_JUDGING, *OF_THE_EXIT_CODE}),
        ("report", {*OF_THE_EXIT_CODE}),
        ("find-hanging", {*OF_THE_EXIT_CODE}),
        ("verify", {"--exit-zero", "--ok-inconclusive", "--accepted"}),
        ("explain", {"--exit-zero", "--ok-inconclusive"}),
        ("accept", {"--accepted"}),
        ("forget", {"--capture"}),
        *(
            (verb, set[str]())
            for verb in (
                "list",
                "describe",
                "describe-producers",
                "ended",
                "query",
                "abort-plan",
            )
        ),
    ],
)
def test_a_verb_offers_the_options_that_mean_something_to_it(verb: str, offered: set[str]) -> None:
    listed = {word for line in program(verb, "--help").out.splitlines() for word in line.split()[:1]}
    assert listed & {*OF_JUDGING, *OF_THE_EXIT_CODE} == offered


def test_an_option_that_means_nothing_to_a_verb_is_taken_and_said_to_do_nothing(dump: str, library: Library) -> None:
    library.returns("ingest", Ingested("tonight", 1, 1, 2, 2, 0))
    done = program("audit", "--no-judge", dump, "--exit-zero", "--state-copied-last")
    assert done.code == 0
    assert [line for line in done.err.splitlines() if line.startswith("note: ")] == [
        "note: --state-copied-last: no effect here",
        "note: --exit-zero: no effect here",
    ]


def test_settings_without_a_flag_stand_in_a_file() -> None:
    shown = program("audit", "--help").out
    hidden = {name for name in Settings.model_fields if f" {flag_name(name)} " not in shown}
    assert hidden == {
        "range_bytes",
        "plan_valid_ms",
        "plan_max_partitions",
        "pseudonym_key",
        "keep_ms",
        "prune_grace_ms",
    }
    assert flag_name("as_of_ms") == "--as-of"


@pytest.mark.parametrize("verb", VERBS)
def test_help_names_no_type_of_python(verb: str) -> None:
    shown = program(verb, "--help").out
    assert [word for word in ("<str>", "list[", "<int", "range>") if word in shown] == []


@pytest.mark.parametrize(
    ("verb", "suffixes"),
    [
        ("list", "(.txt, .json, .ndjson, .csv)"),
        ("explain", "(.txt, .json)"),
        ("report", "(.txt, .json, .ndjson, .csv, .html, .md)"),
        ("abort-plan", "(.ndjson, .sh)"),
    ],
)
def test_help_names_the_forms_that_a_verb_writes(verb: str, suffixes: str) -> None:
    assert f"Write to FILE {suffixes}, whole" in " ".join(program(verb, "--help").out.split())


def test_help_of_query_names_every_table_and_view() -> None:
    shown = program("query", "--help").out
    assert {name for name in (*views(), *(table.name for table in ALL_TABLES)) if f"`{name}`" not in shown} == set()


def test_version() -> None:
    assert program("--version").out == f"txn-analysis {__version__}\n"


def test_a_report_of_a_bug_has_its_versions_from_one_command() -> None:
    first, *others = program("--version", "--verbose").out.splitlines()
    assert first == program("--version").out.strip()
    assert {"Python", "system", "pyarrow", "deltalake", "pyspark", "Java"} <= {line.split()[0] for line in others}


def printed_by(code: str) -> list[str]:
    """The lines that a Python of its own prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_version_is_there_before_any_verb_is_read() -> None:
    code = (
        "import sys; from txn_analysis.__main__ import main\n"
        "sys.argv = ['txn-analysis', '--version']; main()\n"
        "print([m for m in ('click', 'pydantic') if m in sys.modules])"
    )
    assert printed_by(code) == [f"txn-analysis {__version__}", "[]"]


def test_no_command_waits_for_pandas() -> None:
    code = (
        "import sys; from txn_analysis.__main__ import main\n"
        "sys.argv = ['txn-analysis', 'copy-kit']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import pyarrow; print(len(pyarrow.array([7])), 'pandas' in sys.modules)"
    )
    assert printed_by(code)[-1] == "1 False"


def test_help_does_not_import_spark() -> None:
    code = (
        "import sys; from txn_analysis.cli.main import app\n"
        "try: app(['audit', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pyspark', 'pyarrow', 'rich') if m in sys.modules])"
    )
    assert printed_by(code)[-1] == "[]"


def test_a_verb_imports_no_other_verbs() -> None:
    code = (
        "import sys; from txn_analysis.cli.main import app\n"
        "try: app(['list', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('txn_analysis.cli.') and m.endswith('_verbs')])"
    )
    assert printed_by(code)[-1] == "['txn_analysis.cli.query_verbs']"


@pytest.mark.parametrize(
    "words",
    [
        ("nope",),
        ("audit",),
        ("audit", "x", "--nope"),
        ("audit", "x", "--format", "pdf"),
        ("list", "--format", "html"),
        ("audit", "x", "--fail-on", "never"),
        ("describe",),
        ("describe-producers", "--topic", "orders"),
        ("describe-producers", "--topic", "orders", "--partition", "-1"),
        ("abort-plan", "--api-version", "3"),
        ("abort-plan", "--format", "text"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_two(words: tuple[str, ...]) -> None:
    done = program(*words)
    assert (done.code, done.out) == (2, "")
    assert "Error" in done.err
