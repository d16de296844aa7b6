"""What a shell offers at a tab, asked of the shells themselves."""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

from txn_analysis.cli.main import app

# What each shell is asked with the typed words, of which the last one is completed.
ASKED = {
    "bash": """source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _txn_analysis; printf '%s\\n' "${COMPREPLY[@]}" """,
    "zsh": """compdef() { : }
_describe() { print -l -- ${(P)2%%:*} }
_arguments() { for each; do case $each in
    ("*$words[CURRENT-1]["*":("*) print -l -- ${(z)${${each##*:\\(}%\\)}} ;;
    ("*-"*) print -- ${${each#\\*}%%\\[*} ;;
    ("1:"*) print -l -- ${(z)${${each##*:\\(}%\\)}} ;;
esac; done }
source "$1"; shift; words=("$@"); CURRENT=$#; _txn_analysis""",
    "fish": """source $argv[1]; complete -C (string join -- ' ' $argv[2..])""",
}
SHELLS = pytest.mark.parametrize("shell", ASKED)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The script for a shell, as it is printed."""
    folder = tmp_path_factory.mktemp("completion")

    @cache
    def script(shell: str) -> Path:
        with redirect_stdout(StringIO()) as said, pytest.raises(SystemExit):
            app(["completion", shell], prog_name="txn-analysis")
        path = folder / f"completion.{shell}"
        path.write_text(said.getvalue())
        return path

    return script


@pytest.fixture
def offered(printed: Callable[[str], Path]) -> Callable[..., set[str]]:
    """What a shell offers in place of the last of some words, and what begins like it."""

    def ask(shell: str, *words: str) -> set[str]:
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} on this machine")
        script = printed(shell)
        clean = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
        names = [] if shell == "fish" else ["ask"]
        done = subprocess.run(
            [shell, *clean, "-c", ASKED[shell], *names, str(script), "txn-analysis", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        found = {line.partition("\t")[0] for line in done.stdout.splitlines()}
        return {word for word in found if word.startswith(words[-1]) and word}

    return ask


@SHELLS
def test_verbs(offered: Callable[..., set[str]], shell: str) -> None:
    assert offered(shell, "ab") == {"abort-plan"}
    assert {"audit", "help", "completion"} <= offered(shell, "")


@SHELLS
def test_options_of_a_verb(offered: Callable[..., set[str]], shell: str) -> None:
    assert offered(shell, "audit", "--state-c") == {"--state-copied-last"}
    assert offered(shell, "list", "--coord") == {"--coordinator"}


@SHELLS
def test_no_option_that_means_nothing_to_the_verb(offered: Callable[..., set[str]], shell: str) -> None:
    assert offered(shell, "list", "--exit") == set()
    assert "--exit-zero" in offered(shell, "report", "--exit")


@SHELLS
def test_values_of_an_option(offered: Callable[..., set[str]], shell: str) -> None:
    assert offered(shell, "audit", "--format", "h") == {"html"}
    assert offered(shell, "abort-plan", "--format", "") >= {"commands", "ndjson", "write-txn-markers"}


@SHELLS
def test_words_behind_a_verb(offered: Callable[..., set[str]], shell: str) -> None:
    assert offered(shell, "help", "verif") == {"verify"}
    assert offered(shell, "completion", "f") == {"fish"}
