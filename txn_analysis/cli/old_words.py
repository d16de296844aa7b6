"""Commands of 1.0 whose words have changed: 2.x still understands them, and says the new form on stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

COMPLETE = "_TXN_ANALYSIS_COMPLETE"
"""The variable by which Click's completion of words is asked for."""
RUNBOOK = Path(__file__).with_name("runbook.md")


def of_today(words: Sequence[str]) -> list[str]:
    """The words behind `txn-analysis`, in the form of today.

    Two have no form of today, and are answered here: `runbook` by its page, `completion` by a line that a shell
    sources.
    """
    verb, rest = (words[0], [*words[1:]]) if words else ("", [])
    match verb:
        case "help":
            _note("help", "txn-analysis VERB --help")
            return [word for word in rest if not word.startswith("-")] + ["--help"]
        case "version":
            _note("version", "txn-analysis --version")
            return ["--version", *rest]
        case "ingest":
            _note("ingest", "txn-analysis audit --no-judge")
            return ["audit", "--no-judge", *rest]
        case "completion" if rest[:1] in (["bash"], ["zsh"], ["fish"]):
            script = f"{COMPLETE}={rest[0]}_source txn-analysis"
            _answered("completion", script, f"{script} | source" if rest[0] == "fish" else f'eval "$({script})"')
        case "runbook":
            _answered("runbook", "docs/runbook.md, which abort-plan --help names", RUNBOOK.read_text(encoding="utf-8"))
    return [*words]


def _answered(word: str, today: str, text: str) -> NoReturn:
    _note(word, today)
    print(text.removesuffix("\n"))
    raise SystemExit(0)


def _note(word: str, today: str) -> None:
    print(f"note: {word} is an old name: {today}", file=sys.stderr)
