"""The man page says what the command line says, and every reader of man pages takes it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.docs.man_page import man_page
from tests.unit.cli.test_help import VERBS


def test_it_has_every_verb_and_the_options_of_all() -> None:
    text = man_page().replace("\\-", "-")
    assert all(f".SS {verb}\n" in text for verb in VERBS)
    assert text.count("--warehouse DIR") == text.count("--config FILE") == 1
    assert "txn-analysis explain orders-0@161" in text


@pytest.mark.parametrize(
    "words", [("groff", "-man", "-ww", "-Tutf8"), ("mandoc", "-T", "lint", "-W", "warning")], ids=["groff", "mandoc"]
)
def test_no_formatter_complains(words: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]} on this machine")
    page = tmp_path / "txn-analysis.1"
    page.write_text(man_page(), encoding="utf-8")
    done = subprocess.run([*words, str(page)], capture_output=True, text=True, check=False)
    complaints = (done.stderr + done.stdout if words[0] == "mandoc" else done.stderr).splitlines()
    # It has no date: what is made is the same on every day.
    assert [line for line in complaints if "missing date" not in line] == []
