"""Paths, modules and options that stand between backticks on a page exist."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.tools.docs.commands import KAFKA_OPTIONS, blocks_of, inline_code, verb_options
from tests.tools.docs.examples import DOCUMENTS
from tests.tools.repository import ROOT
from txn_analysis.cli.main import app

_PATH = re.compile(r"(?:txn_analysis|jobs|tests|benchmarks|docs|conf|deploy|data|\.ci)/[\w./-]*|[a-z_]+/[\w/]+\.py")
_NOT_IN_GIT = {"docs/decisions"}  # what is made; and where decisions were
_OF_OTHERS = {
    "--conf",
    "--deploy-mode",
    "--producer.config",
    "--skip-message-on-error",
}  # of spark-submit and of Kafka's tools


def options_of_ours() -> set[str]:
    """Every option of the verbs, of the scripts that they write, of txn-capture and of the test programs."""
    folders = (
        "txn_analysis/plan",
        "txn_analysis/capture",
        "txn_analysis/cli",
        "tests/proof",
        "tests/systems/e2e",
        "benchmarks",
    )
    files = [file for folder in folders for end in ("py", "sh") for file in (ROOT / folder).rglob(f"*.{end}")]
    named = {one for file in files for one in re.findall(r"--[a-z][a-z-]+", file.read_text(encoding="utf-8"))}
    return named.union(*(verb_options(verb) or set() for verb in app.commands))


def named_on(page: Path, pattern: re.Pattern[str]) -> set[str]:
    """What matches at the beginning of a word of code."""
    text = page.read_text(encoding="utf-8")
    words = (word for code in [*inline_code(text), *blocks_of(text)] for word in code.split())
    return {found[0] for word in words if (found := pattern.match(word))}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_every_path_is_there(page: Path) -> None:
    names = {name.rstrip("./") for name in named_on(page, _PATH)} - _NOT_IN_GIT
    roots = (ROOT, ROOT / "txn_analysis", ROOT / "data/cases", page.parent)
    assert [name for name in sorted(names) if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_every_module_that_python_runs_is_there(page: Path) -> None:
    names = re.findall(r"python -m ((?:tests|benchmarks|txn_analysis)[\w.]*)", page.read_text(encoding="utf-8"))
    assert [name for name in sorted({*names}) if importlib.util.find_spec(name.rstrip(".")) is None] == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_every_option_that_is_named_alone_is_some_programs(page: Path) -> None:
    known = options_of_ours() | _OF_OTHERS | set().union(*KAFKA_OPTIONS.values())
    alone = (code for code in inline_code(page.read_text(encoding="utf-8")) if code.startswith("--"))
    names = {word.partition("=")[0] for code in alone for word in code.split() if word.startswith("--")}
    assert sorted(names - known) == []
