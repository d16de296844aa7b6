"""Commands of 1.0 whose words have changed: 2.x still understands them, and says the new form on stderr."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from txn_analysis.cli.output import note

_COMPLETE = "_TXN_ANALYSIS_COMPLETE"  # the variable by which Click is asked for what completes words
RUNBOOK = Path(__file__).with_name("runbook.md")


_NEW_FORMS: dict[str, tuple[str, Callable[[list[str]], list[str]]]] = {
    "help": ("VERB --help", lambda rest: [*(word for word in rest if not word.startswith("-")), "--help"]),
    "version": ("--version", lambda rest: ["--version", *rest]),
    "ingest": ("audit --no-judge", lambda rest: ["audit", "--no-judge", *rest]),
    "at-risk": ("report (its section `Upcoming`)", lambda rest: ["report", *_without(rest, "--within", "--limit")]),
    "who": ("explain", lambda rest: ["explain", *rest]),
    "stats": ("ended --by application", lambda rest: ["ended", *_by_default(rest), *rest]),
    "prune": (
        "forget --older-than AGE",
        lambda rest: ["forget", *(re.sub("^--keep(?==|$)", "--older-than", word) for word in rest)],
    ),
}


def of_today(words: Sequence[str]) -> list[str]:
    """The words behind `txn-analysis`, in the form of today.

    Two have no form of today, and are answered here: `runbook` by its page, `completion` by a line that a shell
    sources.
    """
    verb, rest = (words[0], [*words[1:]]) if words else ("", [])
    if verb == "runbook":
        _answered("runbook", "docs/runbook.md, which abort-plan --help names", RUNBOOK.read_text(encoding="utf-8"))
    if verb == "completion" and rest[:1] in (["bash"], ["zsh"], ["fish"]):
        script = f"{_COMPLETE}={rest[0]}_source txn-analysis"
        _answered("completion", script, f"{script} | source" if rest[0] == "fish" else f'eval "$({script})"')
    if verb not in _NEW_FORMS:
        return [*words]
    today, renewed = _NEW_FORMS[verb]
    _note(verb, f"txn-analysis {today}")
    return renewed(rest)


def _by_default(rest: list[str]) -> list[str]:
    return [] if any(word.partition("=")[0] == "--by" for word in rest) else ["--by", "application"]


def _without(rest: list[str], *options: str) -> list[str]:
    """The words without some options, each of which has one value."""
    words = [word for word in rest if word.partition("=")[0] not in options or "=" not in word]
    return [word for word, before in zip(words, ["", *words], strict=False) if not {word, before} & {*options}]


def _answered(word: str, today: str, text: str) -> NoReturn:
    _note(word, today)
    print(text.removesuffix("\n"))
    raise SystemExit(0)


def _note(word: str, today: str) -> None:
    note(f"{word} is an old name: {today}")
