"""What a shell offers at a tab."""

from collections.abc import Callable

import pytest

from tests.tools.program import program

pytestmark = pytest.mark.usefixtures("library")

COMPLETE = "_TXN_ANALYSIS_COMPLETE"


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """What bash is offered in place of the last of some words."""

    def ask(*words: str) -> set[str]:
        monkeypatch.setenv(COMPLETE, "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("txn-analysis", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return {word.removeprefix("plain,") for word in program().out.split()}

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv(COMPLETE, f"{shell}_source")
    script = program().out
    assert COMPLETE in script
    assert "complete" in script


def test_verbs(offered: Callable[..., set[str]]) -> None:
    assert offered("ab") == {"abort-plan"}
    assert {"audit", "explain"} <= offered("")


def test_options_of_a_verb(offered: Callable[..., set[str]]) -> None:
    assert offered("audit", "--state-c") == {"--state-copied-last"}
    assert offered("list", "--coord") == {"--coordinator"}


def test_no_option_that_means_nothing_to_the_verb(offered: Callable[..., set[str]]) -> None:
    assert offered("list", "--exit") == set()
    assert "--exit-zero" in offered("report", "--exit")


def test_values_of_an_option(offered: Callable[..., set[str]]) -> None:
    assert offered("audit", "--format", "h") == {"html"}
