"""Words of 1.0 are still understood, and say their new form on stderr; the changelog has them all in a table."""

import re

import pytest

from tests.tools.program import program
from tests.tools.repository import ROOT
from tests.unit.cli.stubs import Library
from txn_analysis.cli.old_words import of_today
from txn_analysis.pipeline.ingest import Ingested

pytestmark = pytest.mark.usefixtures("library")

NEW_FORMS = {
    "help audit": "audit --help",
    "help": "--help",
    "version": "--version",
    "version --verbose": "--version --verbose",
    "ingest copies/": "audit --no-judge copies/",
    "who --producer-id 1002": "explain --producer-id 1002",
    "at-risk --within 15 --format json": "report --format json",
    "stats": "ended --by application",
    "stats --by id": "ended --by id",
    "prune --keep 90d --dry-run": "forget --older-than 90d --dry-run",
    "prune --keep=90d": "forget --older-than=90d",
}


@pytest.mark.parametrize(("old", "new"), NEW_FORMS.items())
def test_an_old_command_is_the_new_one(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert of_today(old.split()) == new.split()
    assert f"note: {old.split(maxsplit=1)[0]} is an old name: txn-analysis " in capsys.readouterr().err


def test_the_changelog_has_a_table_of_old_words() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(.*?)` \| `(.*?)`.* \|$", text, re.MULTILINE))
    assert {old: rows.get(old) for old in NEW_FORMS} == NEW_FORMS


@pytest.mark.parametrize("words", ["audit copies/", "explain --topic orders", "--version", ""])
def test_words_of_today_stay_as_they_are(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert of_today(words.split()) == words.split()
    assert capsys.readouterr().err == ""


def test_help_of_a_verb() -> None:
    done = program("help", "audit")
    assert done.out == program("audit", "--help").out
    assert done.err == "note: help is an old name: txn-analysis VERB --help\n"


def test_a_capture_is_read_by_its_old_name(dump: str, library: Library) -> None:
    library.returns("ingest", Ingested("tonight", 1, 1, 2, 2, 0))
    done = program("ingest", dump, "--capture", "tonight")
    assert (done.code, done.out.split(":")[0]) == (0, "capture tonight")
    assert "note: ingest is an old name: txn-analysis audit --no-judge\n" in done.err


def test_a_bashrc_that_sources_the_completion_of_1_0() -> None:
    assert program("completion", "bash").out == 'eval "$(_TXN_ANALYSIS_COMPLETE=bash_source txn-analysis)"\n'


def test_the_runbook_is_the_page_of_the_docs() -> None:
    assert program("runbook").out == (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
