from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from txn_analysis import __version__
from txn_analysis.cli.options import JUDGING, Request
from txn_analysis.settings import Settings, flag_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done

VERBS = (
    "audit",
    "ingest",
    "report",
    "find-hanging",
    "list",
    "describe",
    "describe-producers",
    "explain",
    "ended",
    "abort-plan",
    "verify",
)
CONTRACT_FLAGS = (
    "--warehouse", "--as-of", "--transaction-max-timeout-ms", "--transaction-state-partitions",
    "--transaction-state-complete", "--state-copied-last", "--no-records-lost", "--max-clock-skew-ms", "--cluster",
    "--capture", "--transactional-id-expiration-ms", "--format", "-o", "--config", "--master", "--exit-zero",
    "--fail-on", "--skip-unrecognised",
)  # fmt: skip


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_bare_command_prints_help_that_names_every_verb(command: Callable[..., Done], words: tuple[str, ...]) -> None:
    done = command(*words)
    assert (done.code, done.err) == (0, "")
    assert all(f"\n  {verb} " in done.out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_has_an_example(command: Callable[..., Done], verb: str) -> None:
    done = command(verb, "--help")
    assert done.code == 0
    assert f"Example:\n  txn-analysis {verb} " in done.out.replace("\n    ", "\n  ").replace("  Example", "Example")


def test_audit_help_shows_the_options_of_the_contract(command: Callable[..., Done]) -> None:
    shown = command("audit", "--help").out
    assert [flag for flag in CONTRACT_FLAGS if flag not in shown] == []


def test_verbs_that_read_a_run_hide_what_only_a_new_run_could_follow(command: Callable[..., Done]) -> None:
    shown = command("list", "--help").out
    assert "--as-of" not in shown
    assert "--warehouse" in shown


def test_flags_are_named_after_the_settings() -> None:
    request_fields = set(Request.__dataclass_fields__)
    settings_fields = {"as_of" if name == "as_of_ms" else name for name in Settings.model_fields}
    assert request_fields - settings_fields == {"config", "output", "debug", "quiet"}
    assert settings_fields - request_fields == {"range_bytes", "plan_valid_ms", "plan_max_partitions"}  # in a file
    assert flag_name("as_of_ms") == "--as-of"
    assert set(JUDGING) <= request_fields


def test_version(command: Callable[..., Done]) -> None:
    assert command("--version").out == f"txn-analysis {__version__}\n"


def test_help_does_not_import_spark() -> None:
    code = (
        "import sys; from txn_analysis.cli.main import app\n"
        "try: app(['audit', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pyspark', 'pyarrow', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


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
def test_wrong_usage_exits_with_two(command: Callable[..., Done], words: tuple[str, ...]) -> None:
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert "Error" in done.err
